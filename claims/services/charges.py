"""What a wish adds to each ResourceQuota of its namespace, and whether the API server will take it. Reads rows only.

Devices are charged when a resource claim is made, which is when a pod starts, whole ones even for a share; the template
itself only counts as one object (Kubernetes, "Resource Quotas").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from claims.services.fit.claim import claim_of
from claims.services.preview import Preview
from claims.wish import Owner
from dra.errors import InvalidQuantityError
from dra.extended import charges
from dra.objects import ResourceQuota
from dra.quantity import Quantity, parse_quantity
from gpuinventory.selectors.held import Held
from gpuinventory.selectors.quotas import resource_quotas

TEMPLATE_COUNT_KEY = "count/resourceclaimtemplates.resource.k8s.io"
_DEVICES = ".deviceclass.resource.k8s.io/devices"


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One limit that this wish touches: `used` of `limit` are charged; each pod `adds`, or the template."""

    quota: str
    key: str
    used: int
    adds: int
    limit: int
    for_template: bool

    @property
    def after(self) -> int:
        """What would be charged then."""
        return self.used + self.adds

    @property
    def over(self) -> bool:
        """Whether the API server will refuse it."""
        return self.after > self.limit


def quota_charges(seen: Preview, held: Held) -> tuple[Charge, ...]:
    """Every charge on a quota of the namespace, those over their limit first. One query."""
    if seen.files is None or seen.wish is None:
        return ()
    adds = charges(claim_of(seen.files).spec, held.snapshot.classes.values())
    if seen.wish.owner is Owner.OWN:
        adds |= {TEMPLATE_COUNT_KEY: 1}
    found = [each for quota in resource_quotas(seen.wish.namespace) for each in _charges(quota, adds)]
    return tuple(sorted(found, key=lambda each: not each.over))


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """A quota that lets no further device of a class be had: `used` of `limit` are charged."""

    quota: str
    used: int
    limit: int


def full_quotas(namespace: str) -> Mapping[str, Full]:
    """By DeviceClass, the first quota of the namespace that has no room for a device of it. One query."""
    found: dict[str, Full] = {}
    for quota in resource_quotas(namespace):
        for key, text in (quota.status.hard or quota.spec.hard).items():
            device_class = key.removesuffix(_DEVICES)
            used, limit = _number(quota.status.used.get(key, "0")) or 0, _number(text)
            if device_class != key and limit is not None and used >= limit:
                found.setdefault(device_class, Full(quota=quota.metadata.name, used=used, limit=limit))
    return found


def _charges(quota: ResourceQuota, adds: Mapping[str, int]) -> Iterator[Charge]:
    limits = quota.status.hard or quota.spec.hard
    for key, text in limits.items():
        if key in adds and (limit := _number(text)) is not None:
            yield Charge(
                quota=quota.metadata.name,
                key=key,
                used=_number(quota.status.used.get(key, "0")) or 0,
                adds=adds[key],
                limit=limit,
                for_template=key == TEMPLATE_COUNT_KEY,
            )


def _number(text: str) -> int | None:
    """Whole devices; None for what is no quantity, which the API server would not have stored."""
    try:
        amount: Quantity = parse_quantity(text)
    except InvalidQuantityError:
        return None
    return amount.value

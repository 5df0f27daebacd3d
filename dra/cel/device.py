"""A device as selectors see it: its attributes and capacity as CEL values, by domain and id.

Follows `DeviceMatches` and `getAttributeValue` of k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from dra.cel.errors import CelRuntimeError
from dra.cel.values import CelMap
from dra.errors import InvalidQuantityError, InvalidSemverError
from dra.objects import DeviceAttribute, DeviceCapacity
from dra.quantity import Quantity, parse_quantity
from dra.semver import Semver, parse_semver

type Domains = dict[str, dict[str, object]]


class DomainMap(CelMap):
    """Values by domain and id. A domain that is not there reads as an empty map, but is not `in`."""

    __slots__ = ()

    def find(self, key: object, default: object = None) -> object:
        """The ids of a domain, empty where there is none; never the default."""
        return super().find(key, _EMPTY)


class IdMap(CelMap):
    """Values of one domain by id."""

    __slots__ = ()


_EMPTY: Final = IdMap({})


class DeviceView:
    """The values behind the variable `device`, ready to be read."""

    __slots__ = ("allow_multiple", "attributes", "capacity", "driver")

    def __init__(self, driver: str, attributes: Domains, capacity: Domains, *, allow_multiple: bool) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.allow_multiple = allow_multiple

    def attribute_map(self) -> CelMap:
        """`device.attributes` as a value."""
        return domain_map(self.attributes)

    def as_map(self) -> CelMap:
        """`device` where it is used as a value: a map of its fields."""
        fields: dict[object, object] = {
            "driver": self.driver,
            "allowMultipleAllocations": self.allow_multiple,
            "attributes": self.attribute_map(),
            "capacity": domain_map(self.capacity),
        }
        return CelMap(fields)


def domain_map(domains: Domains) -> DomainMap:
    """`device.attributes` or `device.capacity` as a value."""
    return DomainMap({domain: IdMap.of(*ids.items()) for domain, ids in domains.items()})


@dataclass(slots=True)
class CelDevice:
    """One device, converted once. An attribute that cannot be converted is an error of every evaluation."""

    driver: str
    attributes: Mapping[str, DeviceAttribute]
    capacity: Mapping[str, DeviceCapacity]
    allow_multiple: bool
    _view: DeviceView | CelRuntimeError | None = None

    @classmethod
    def of(
        cls,
        driver: str,
        attributes: Mapping[str, DeviceAttribute],
        capacity: Mapping[str, DeviceCapacity],
        *,
        allow_multiple: bool = False,
    ) -> CelDevice:
        """Of what a ResourceSlice says; the driver is also the domain of names without one. Converts nothing yet."""
        return cls(driver, attributes, capacity, allow_multiple)

    def view(self) -> DeviceView:
        """The converted values, or CelRuntimeError for an attribute without value, a bad version or quantity."""
        if self._view is None:
            try:
                self._view = self._converted()
            except CelRuntimeError as error:
                self._view = error
        if isinstance(self._view, CelRuntimeError):
            raise self._view
        return self._view

    def _converted(self) -> DeviceView:
        return DeviceView(
            self.driver,
            _by_domain(self.driver, self.attributes, _attribute_value),
            _by_domain(self.driver, self.capacity, _capacity_value),
            allow_multiple=self.allow_multiple,
        )


def _by_domain[T](driver: str, named: Mapping[str, T], value_of: Callable[[str, T], object]) -> Domains:
    """The values by domain and id; the driver is the domain of names without one (`parseQualifiedName`).

    It runs for every device that is a shape of its own, so it is written for speed.
    """
    own: dict[str, object] = {}
    domains = {driver: own}
    for name, each in named.items():
        if "/" in name:
            domain, _, id_ = name.partition("/")
            domains.setdefault(domain, {})[id_] = value_of(name, each)
        else:
            own[name] = value_of(name, each)
    if not own:
        del domains[driver]
    return domains


def _attribute_value(name: str, attribute: DeviceAttribute) -> object:  # noqa: PLR0911 - one case a field, in order
    """Of several values that are set, the one that the scheduler takes."""
    if attribute.ints is not None:
        return attribute.ints
    if attribute.bools is not None:
        return attribute.bools
    if attribute.strings is not None:
        return attribute.strings
    if attribute.versions is not None:
        return tuple(_version(name, each) for each in attribute.versions)
    if attribute.int_ is not None:
        return attribute.int_
    if attribute.bool_ is not None:
        return attribute.bool_
    if attribute.string is not None:
        return attribute.string
    if attribute.version is not None:
        return _version(name, attribute.version)
    raise CelRuntimeError(f"attribute {name}: unsupported attribute value")


def _version(name: str, text: str) -> Semver:
    try:
        return parse_semver(text)
    except InvalidSemverError as error:
        raise CelRuntimeError(f"attribute {name}: parse semantic version: {error}") from None


def _capacity_value(name: str, capacity: DeviceCapacity) -> Quantity:
    try:
        return parse_quantity(capacity.value)
    except InvalidQuantityError as error:
        raise CelRuntimeError(f"capacity {name}: {error}") from None

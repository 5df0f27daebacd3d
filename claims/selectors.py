"""Reads for the form, for GPU requests and for claims. The cluster's side comes from `gpuinventory.selectors` only.

Nothing here names another team: every read is bounded by the namespaces of the person who asks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace

from django.core.paginator import Page, Paginator
from django.db.models import Q
from django.utils import timezone

from claims.lifecycle import EXISTING, FINAL, State
from claims.manifests import REQUEST_LABEL
from claims.models import GPUClassEvent, GpuRequest, GpuRequestEvent, PastedManifest
from claims.wish import OPEN, Bounds, ClassFacts, Owner, noun, summary
from dra.objects import DeviceClass
from dra.quantity import Format, Quantity
from gpuinventory import selectors as inventory
from gpuinventory.claimstate import BADGES, ClaimState
from gpuinventory.gpuclasses import GPUClassView, Made, expressions_of, offer_of
from gpuinventory.selectors import ClaimView
from gpuinventory.selectors.gpuclasses import Catalogue, catalogue
from gpuinventory.selectors.held import Held
from portal.badge import Badge
from portal.models import User
from portal.selectors import namespaces_of

PAGE = 50
LATEST = 20  # audit lines of GPU classes on a page
_DRIVER = re.compile(r'device\.driver\s*==\s*["\']([^"\']+)["\']')
_KEPT = SimpleNamespace()  # for all threads: options are asked for with each preview, and change seldom
_OF_STATE: Mapping[State, Badge] = {
    State.SUBMITTING: Badge("wait", "◔", "Being created"),
    State.NOT_CREATED: BADGES[ClaimState.NOT_CREATED],
    State.WITHDRAWN: Badge("others", "↩", "Withdrawn"),
    State.GONE: BADGES[ClaimState.GONE],
}
# Of several claims the one that a person must know of first.
_TELLING = (
    ClaimState.PREPARE_FAILED,
    ClaimState.DEVICE_UNHEALTHY,
    ClaimState.WAITING_FOR_DEVICES,
    ClaimState.WAITING_FOR_READY,
    ClaimState.IN_USE,
    ClaimState.ALLOCATED,
    ClaimState.RELEASING,
    ClaimState.WAITING_FOR_POD,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassOption:
    """A GPU class as the form offers it. `expressions` are the selectors of its DeviceClass."""

    view: GPUClassView
    facts: ClassFacts
    expressions: tuple[str, ...]
    configured: bool


@dataclass(frozen=True, slots=True)
class RequestView:
    """A GPU request and its claims, newest first: those made from its template, or the one that it made itself."""

    row: GpuRequest
    claims: tuple[ClaimView, ...]

    @property
    def badge(self) -> Badge:
        """The state that the person must know of."""
        state = State(self.row.state)
        if state not in EXISTING:
            return _OF_STATE[state]
        states = {claim.state for claim in self.claims} or {ClaimState.WAITING_FOR_POD}
        return BADGES[next(each for each in _TELLING if each in states)]

    @property
    def noun(self) -> str:
        """What was asked to be created, in a word."""
        return noun(self.row.wish)

    @property
    def shared(self) -> bool:
        """Whether all pods share the one claim."""
        return self.row.wish.owner is Owner.SHARED

    @property
    def settled(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.row.state in FINAL | {State.NOT_CREATED} and not self.claims

    @property
    def summary(self) -> str:
        """What each pod gets, or all share, in words."""
        return summary(self.row.wish)

    @property
    def exists(self) -> bool:
        """Whether its object is there, as far as is known."""
        return self.row.state in EXISTING


@dataclass(frozen=True, slots=True)
class RequestList:
    """One page of requests; `pager` is Django's, for the links."""

    rows: tuple[RequestView, ...]
    pager: Page[GpuRequest]


def class_options(fleet: Held) -> tuple[ClassOption, ...]:
    """Every GPU class, in the catalogue's order. One query; made anew where the catalogue was."""
    found = catalogue(fleet)
    known: tuple[Catalogue, tuple[ClassOption, ...]] | None = getattr(_KEPT, "options", None)
    if known is None or known[0] is not found:
        classes = fleet.snapshot.classes
        options = tuple(_option(view, classes.get(view.device_class)) for view in found.views)
        known = _KEPT.options = (found, options)
    return known[1]


def bounds_of(user: User, options: Iterable[ClassOption], fleet: Held) -> Bounds:
    """What this person may wish for in this cluster. One query."""
    seen = fleet.capabilities
    return Bounds(
        namespaces=frozenset(namespaces_of(user)),
        classes={option.view.name: option.facts for option in options},
        lacking={gate.name: seen.lacks(gate.name) for gate in seen.gates if gate.state == "off"},
        today=timezone.localdate(),
    )


def my_requests(user: User, page: int | str | None = None) -> RequestList:
    """What this person asked for, newest first, as far as the person still belongs to its namespaces; 50 a page."""
    rows = GpuRequest.objects.filter(user=user, namespace__in=namespaces_of(user)).select_related("user")
    pager = Paginator(rows, PAGE).get_page(page)
    return RequestList(_views(list(pager.object_list)), pager)


def request_view(user: User, pk: int) -> RequestView | None:
    """That request, if it is in one of the person's namespaces."""
    rows = GpuRequest.objects.filter(pk=pk, namespace__in=namespaces_of(user)).select_related("user", "team")
    return next(iter(_views(list(rows))), None)


def history_of(row: GpuRequest) -> tuple[GpuRequestEvent, ...]:
    """The audit lines of a request, oldest first. One query."""
    return tuple(row.events.all())


def class_history(name: str = "") -> tuple[GPUClassEvent, ...]:
    """The latest audit lines of the GPU class of that name, or of all, newest first; those of classes that are gone,
    too. One query.
    """
    lines = GPUClassEvent.objects.filter(name=name) if name else GPUClassEvent.objects.all()
    return tuple(lines.order_by("-at", "-pk")[:LATEST])


def pasted_manifest(user: User, digest: str) -> str | None:
    """The workload of that digest, if this person pasted it or somebody of the same team. One query."""
    theirs = Q(user=user) | Q(user__memberships__team__memberships__user=user)
    return PastedManifest.objects.filter(theirs, digest=digest).values_list("text", flat=True).first()


def claims_of(user: User, namespace: str = "") -> tuple[ClaimView, ...]:
    """The claims of the person's namespaces, or of that one of them."""
    mine = namespaces_of(user)
    return inventory.resource_claims([each for each in mine if each == namespace] if namespace else mine)


def object_uids(namespaces: Collection[str]) -> frozenset[str]:
    """The uids of the templates and claims that the read model has in these namespaces. One query."""
    return inventory.claim_uids(namespaces)


def _option(view: GPUClassView, device_class: DeviceClass | None) -> ClassOption:
    expressions = expressions_of(device_class) if device_class else ()
    offer = offer_of(view.taken)
    largest = offer.sizes[-1] if offer and offer.sizes else 0
    facts = ClassFacts(
        name=view.name,
        named=view.device_class,
        selectors=view.selectors,
        driver=_driver(view, expressions),
        extended_resource=device_class.spec.extended_resource_name if device_class else None,
        largest_memory=Quantity.of(largest, Format.BINARY_SI) if largest else None,
        offer=offer,
        spec=view.spec if view.made is Made.BY_ADMIN else OPEN,
        fault=view.fault,
    )
    configured = device_class is not None and bool(device_class.spec.config)
    return ClassOption(view=view, facts=facts, expressions=expressions, configured=configured)


def _driver(view: GPUClassView, expressions: tuple[str, ...]) -> str | None:
    """The one driver of its devices; where there are none, the one that its selectors name."""
    if view.drivers:
        return view.drivers[0] if len(view.drivers) == 1 else None
    return next((match[1] for each in expressions for match in _DRIVER.finditer(each)), None)


def _views(rows: list[GpuRequest]) -> tuple[RequestView, ...]:
    """One read of the claims for all rows."""
    made: dict[tuple[str, str], list[ClaimView]] = {}
    for claim in inventory.resource_claims({row.namespace for row in rows}) if rows else ():
        made.setdefault((claim.ref.namespace, claim.labels.get(REQUEST_LABEL, "")), []).append(claim)
    return tuple(RequestView(row, tuple(made.get((row.namespace, row.key), ()))) for row in rows)

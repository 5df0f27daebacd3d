"""Numbers of the fleet: what there is and what is free, without a name of any team."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from django.db.models import CharField, Count, Q, Value
from django.db.models.functions import Cast, Concat

from gpuinventory.models import Device
from gpuinventory.projection import DeviceState


@dataclass(frozen=True, slots=True)
class Piece:
    """So many devices of a state, and where they start in a bar."""

    state: str
    word: str
    number: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductTotals:
    """Whole devices of one product, by state."""

    product: str
    memory: int
    total: int
    free: int
    partly: int
    held: int
    excluded: int
    blocked: int
    unknown: int

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """States with their numbers, in the order of every legend; zeros left out."""
        numbers = (
            ("held", "held", self.held),
            ("partly", "partly held", self.partly),
            ("excluded", "cut into MIG parts", self.excluded),
            ("blocked", "blocked", self.blocked),
            ("unknown", "unknown", self.unknown),
            ("free", "free", self.free),
        )
        starts = accumulate((number for _, _, number in numbers), initial=0)
        pieces = (Piece(*row, start) for row, start in zip(numbers, starts, strict=False))
        return tuple(piece for piece in pieces if piece.number)


@dataclass(frozen=True, slots=True)
class ProfileTotals:
    """A MIG profile: how many instances exist, and on how many cards one more could be made now.

    Cards, not placements: placements of one card exclude each other, so their sum would promise too much.
    """

    product: str
    profile: str
    memory: int
    held: int
    cards: int


def totals_by_product() -> tuple[ProductTotals, ...]:
    """Whole devices by product. One query."""
    rows = Device.objects.filter(mig_profile="").values_list("product", "memory", "state")
    groups: dict[tuple[str, int], dict[str, int]] = {}
    for product, memory, state, number in rows.annotate(Count("pk")):
        groups.setdefault((product, memory), {})[state] = number
    return tuple(_totals(*key, groups[key]) for key in sorted(groups, key=lambda key: (key[0], -key[1])))


def _totals(product: str, memory: int, states: dict[str, int]) -> ProductTotals:
    def number(*wanted: DeviceState) -> int:
        return sum(states.get(state, 0) for state in wanted)

    return ProductTotals(
        product=product or "unnamed device",
        memory=memory,
        total=number(*DeviceState),
        free=number(DeviceState.FREE),
        partly=number(DeviceState.PARTLY_HELD),
        held=number(DeviceState.HELD),
        excluded=number(DeviceState.EXCLUDED),
        blocked=number(DeviceState.BLOCKED),
        unknown=number(DeviceState.UNKNOWN, DeviceState.MISSING),
    )


def totals_by_profile() -> tuple[ProfileTotals, ...]:
    """MIG profiles by product, largest first. One query."""
    card = Concat(Cast("pool_id", CharField()), Value("/"), "counter_set")
    held = Q(state__in=[DeviceState.HELD, DeviceState.PARTLY_HELD])
    rows = (
        Device.objects.exclude(mig_profile="")
        .values("product", "mig_profile", "memory")
        .annotate(held=Count("pk", filter=held))
        .annotate(cards=Count(card, filter=Q(state=DeviceState.FREE), distinct=True))
        .order_by("product", "-memory", "mig_profile")
    )
    return tuple(
        ProfileTotals(row["product"], row["mig_profile"], row["memory"], row["held"], row["cards"]) for row in rows
    )

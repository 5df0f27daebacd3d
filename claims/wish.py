"""What a person wishes for, its bounds, and the one codec between it and a URL's query.

Pure. `read` judges the shape of each value, `judge` what can only be said with facts of the cluster; both answer with
refusals, never with prose. Share and memory follow docs/dev/architecture.md, "A mode is a device": a share under 100 is
served by MPS, and `memory` consumed by a share only tightens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qsl, urlencode

from claims.refusals import Code, Refusal, quoted, refuse
from dra.errors import InvalidQuantityError
from dra.names import MAX_LABEL, is_dns_label, is_dns_subdomain
from dra.quantity import Format, Quantity, parse_quantity

MAX_COUNT: Final = 32  # devices that one ResourceClaim can take (resource.k8s.io/v1, AllocationResultsMaxSize)
LEAST_SHARE: Final = 5  # percent; steps of 5 keep within the 48 client contexts of an MPS server
SHARE_STEP: Final = 5
WHOLE: Final = 100
LEAST_MEMORY: Final = Quantity.of(2**20, Format.BINARY_SI)
MOST_MEMORY: Final = Quantity.of(2**44, Format.BINARY_SI)

EXAMPLES: Final = {"ns": ("Namespace", "ml-train"), "name": ("Name", "trainer"), "class": ("GPU class", "nvidia-h100")}
KEYS: Final = ("ns", "name", "class", "memory", "count", "share", "strategy")
_DEFAULTS: Final = {"count": "1", "share": "100"}


class Strategy(StrEnum):
    """How the processes of a pod share a whole device, where the person chooses."""

    MPS = "MPS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One request for GPUs. `memory` is bytes per device, `share` percent of each device (100: the whole)."""

    namespace: str
    name: str
    device_class: str
    memory: Quantity | None = None
    count: int = 1
    share: int = WHOLE
    strategy: Strategy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFacts:
    """What is known of a DeviceClass. `largest_memory` is the most that any device it could give has, in bytes."""

    name: str
    driver: str | None = None
    extended_resource: str | None = None
    largest_memory: Quantity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the cluster and the person's teams allow."""

    namespaces: frozenset[str]
    classes: Mapping[str, ClassFacts]


@dataclass(frozen=True, slots=True)
class Reading:
    """A query as read: values by key as text, keys that are not ours, what is wrong, and the wish if nothing is."""

    values: Mapping[str, str]
    extra: tuple[tuple[str, str], ...]
    refusals: tuple[Refusal, ...]
    wish: Wish | None

    @property
    def wrong(self) -> bool:
        """Whether a value was given that can't be; a value that still lacks is no mistake yet."""
        return any(refusal.code is not Code.FIELD_MISSING for refusal in self.refusals)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Our keys in their order, then the others as they came."""
        return tuple((key, self.values[key]) for key in KEYS if key in self.values) + self.extra

    @property
    def query(self) -> str:
        """The same query again."""
        return urlencode(self.pairs)


def read(query: str) -> Reading:
    """Read a URL's query. Of a key that comes twice the last counts; space around a value does not."""
    pairs = parse_qsl(query, keep_blank_values=True)
    values = {key: value.strip() for key, value in pairs if key in KEYS}
    extra = tuple(pair for pair in pairs if pair[0] not in KEYS)
    refusals = tuple(_misshapen(_DEFAULTS | values))
    return Reading(values, extra, refusals, None if refusals else _wish(_DEFAULTS | values))


def write(wish: Wish) -> str:
    """The query that reads as this wish; defaults are written too, so that a link keeps its meaning."""
    values = {
        "ns": wish.namespace,
        "name": wish.name,
        "class": wish.device_class,
        "memory": str(wish.memory) if wish.memory else "",
        "count": str(wish.count),
        "share": str(wish.share),
        "strategy": wish.strategy or "",
    }
    return urlencode({key: value for key, value in values.items() if value})


def judge(wish: Wish, bounds: Bounds) -> tuple[Refusal, ...]:
    """What the person's teams and the class can't give. A whole device too small is no refusal: nodes may be added."""
    return tuple(_impossible(wish, bounds))


def _misshapen(values: Mapping[str, str]) -> Iterator[Refusal]:
    for key, (label, example) in EXAMPLES.items():
        if not values.get(key):
            yield refuse(Code.FIELD_MISSING, key, label=label, example=example)
    yield from _misnamed(values)
    if _whole_number(values["count"], 1, MAX_COUNT) is None:
        yield refuse(Code.COUNT_BOUNDS, "count", value=quoted(values["count"]), least=1, most=MAX_COUNT)
    share = _whole_number(values["share"], LEAST_SHARE, WHOLE)
    if share is None or share % SHARE_STEP:
        yield refuse(
            Code.SHARE_BOUNDS, "share", value=quoted(values["share"]), least=LEAST_SHARE, most=WHOLE, step=SHARE_STEP
        )
    if values.get("memory"):
        yield from _misshapen_memory(values["memory"])
    if values.get("strategy") and values["strategy"] not in set(Strategy):
        yield refuse(Code.STRATEGY_UNKNOWN, "strategy", value=quoted(values["strategy"]), known=", ".join(Strategy))


def _misnamed(values: Mapping[str, str]) -> Iterator[Refusal]:
    name, device_class = values.get("name", ""), values.get("class", "")
    if name and not is_dns_label(name):
        yield refuse(Code.NAME_SHAPE, "name", value=quoted(name), most=MAX_LABEL, example=EXAMPLES["name"][1])
    if device_class and not is_dns_subdomain(device_class):
        yield refuse(Code.CLASS_UNKNOWN, "class", value=quoted(device_class))


def _misshapen_memory(text: str) -> Iterator[Refusal]:
    try:
        memory = parse_quantity(text)
    except InvalidQuantityError:
        yield refuse(Code.MEMORY_SHAPE, "memory", value=quoted(text))
        return
    if not LEAST_MEMORY <= memory <= MOST_MEMORY:
        yield refuse(Code.MEMORY_BOUNDS, "memory", value=quoted(text), least=LEAST_MEMORY, most=MOST_MEMORY)


def _whole_number(text: str, least: int, most: int) -> int | None:
    """The number, if it is one within its bounds; longer than any bound is none (and cheap to refuse)."""
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(most)):
        return None
    return int(text) if least <= int(text) <= most else None


def _wish(values: Mapping[str, str]) -> Wish:
    return Wish(
        namespace=values["ns"],
        name=values["name"],
        device_class=values["class"],
        memory=_whole_bytes(parse_quantity(values["memory"])) if values.get("memory") else None,
        count=int(values["count"]),
        share=int(values["share"]),
        strategy=Strategy(values["strategy"]) if values.get("strategy") else None,
    )


def _whole_bytes(memory: Quantity) -> Quantity:
    return Quantity.of(memory.value, memory.format)


def _impossible(wish: Wish, bounds: Bounds) -> Iterator[Refusal]:
    if wish.namespace not in bounds.namespaces:
        yield refuse(Code.NAMESPACE_FOREIGN, "ns", value=quoted(wish.namespace))
    if wish.share < WHOLE and wish.count > 1:
        yield refuse(Code.SHARE_OF_MANY, "share", count=wish.count, share=wish.share)
    facts = bounds.classes.get(wish.device_class)
    if facts is None:
        yield refuse(Code.CLASS_UNKNOWN, "class", value=quoted(wish.device_class))
        return
    if wish.strategy and not facts.driver:
        yield refuse(Code.STRATEGY_NO_DRIVER, "strategy", device_class=wish.device_class)
    if wish.memory and facts.largest_memory and wish.share < WHOLE:
        yield from _over_share(wish.memory, wish.share, facts.largest_memory)


def _over_share(memory: Quantity, share: int, total: Quantity) -> Iterator[Refusal]:
    """`memory` that a share can't have: prepare would fail for every pod of the template."""
    if memory.value * WHOLE <= total.value * share:
        return
    if memory.value > total.value:
        yield refuse(Code.MEMORY_OVER_DEVICE, "memory", memory=memory, total=gib(total.value))
        return
    steps = -(-memory.value * WHOLE // (total.value * SHARE_STEP))
    yield refuse(
        Code.MEMORY_OVER_SHARE,
        "memory",
        memory=memory,
        share=share,
        part=gib(total.value * share // WHOLE),
        total=gib(total.value),
        enough=steps * SHARE_STEP,
    )


def gib(amount: int) -> str:
    """Bytes as people read them, rounded down to a tenth of a GiB, so that what is said always fits."""
    tenths = amount * 10 // 2**30
    return f"{tenths // 10}.{tenths % 10} GiB" if tenths % 10 else f"{tenths // 10} GiB"

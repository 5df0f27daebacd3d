"""The one codec between a wish and a URL's query. Pure. Keys that are not ours are kept as they came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from claims.refusals import Code, Refusal
from claims.wish.keys import entry_of, is_ours, rank
from claims.wish.reading import wish_of
from claims.wish.values import Choice, Wish


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
        """Our keys in their order, then the others as they came. A form sends the empty fields of its lists as well;
        they say nothing, but for an emptied count.
        """
        ours = ((key, self.values[key]) for key in sorted(self.values, key=rank))
        return tuple((key, value) for key, value in ours if value or _says_something(key)) + self.extra

    @property
    def query(self) -> str:
        """The same query again."""
        return urlencode(self.pairs)


def _says_something(key: str) -> bool:
    """Whether the key without a value is not the same as no key."""
    entry = entry_of(key)
    return entry is None or entry[2] == "count"


def read(query: str) -> Reading:
    """Read a URL's query. Of a key that comes twice the last counts; space around a value does not."""
    pairs = parse_qsl(query, keep_blank_values=True)
    values = {key: value.strip() for key, value in pairs if is_ours(key)}
    extra = tuple(pair for pair in pairs if not is_ours(pair[0]))
    wish, refusals = wish_of(values)
    return Reading(values, extra, refusals, wish)


def write(wish: Wish) -> str:
    """The query that reads as this wish; the defaults of a choice are written, so that a link keeps its meaning."""
    values = {
        **_first(wish),
        "strategy": wish.strategy or "",
        "interval": wish.interval or "",
        "claim": wish.owner,
        "style": wish.style,
        **_workload(wish),
        **dict(_lists(wish)),
    }
    return urlencode({key: value for key, value in values.items() if value})


def _first(wish: Wish) -> dict[str, str]:
    return {"ns": wish.namespace, "name": wish.name, **_choice(wish)}


def _choice(choice: Choice) -> dict[str, str]:
    return {
        "class": choice.device_class,
        "mode": choice.mode,
        "memory": str(choice.memory) if choice.memory else "",
        "count": str(choice.count),
        "share": str(choice.share),
        "profile": choice.profile,
        "slots": _number(choice.slots),
    }


def _workload(wish: Wish) -> dict[str, str]:
    least, most = wish.autoscale or (None, None)
    return {
        "workload": wish.workload,
        "replicas": str(wish.replicas) if wish.replicas > 1 else "",
        "scale.min": _number(least),
        "scale.max": _number(most),
        "priority": wish.priority,
        "hours": _number(wish.hours),
        "until": wish.until.isoformat() if wish.until else "",
        "preset": wish.preset or "",
        "manifest": wish.manifest,
    }


def _lists(wish: Wish) -> Iterator[tuple[str, str]]:
    for number, choice in enumerate(wish.alternatives, 1):
        yield from ((f"alt.{number}.{key}", value) for key, value in _choice(choice).items())
    for number, expression in enumerate(wish.cel, 1):
        yield f"cel.{number}", expression
    for number, constraint in enumerate(wish.constraints, 1):
        yield f"constraint.{number}.kind", constraint.kind
        yield f"constraint.{number}.attribute", constraint.attribute
    for number, each in enumerate(wish.tolerations, 1):
        fields = {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
        yield from ((f"toleration.{number}.{key}", value) for key, value in fields.items())
        yield f"toleration.{number}.seconds", _number(each.seconds)


def _number(number: int | None) -> str:
    return "" if number is None else str(number)

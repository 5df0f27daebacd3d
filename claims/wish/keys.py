"""The keys of a wish's query: which are ours, in which order they are written, and what their fields are called. Pure.

Lists are numbered from 1, such as `alt.2.class` or `cel.1`; a gap in the numbers is closed when they are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from claims.wish.values import MAX_ALTERNATIVES

EXAMPLES: Final = {"ns": ("Namespace", "ml-train"), "name": ("Name", "trainer"), "class": ("GPU class", "nvidia-h100")}
KEYS: Final = (
    *("ns", "name", "class", "mode", "memory", "count", "share", "profile", "slots", "strategy", "interval", "claim"),
    *("style", "workload", "replicas", "scale.min", "scale.max", "priority", "hours", "until", "preset"),
    "manifest",
)
# Lists with their fields ("" where an entry is one text) and how many entries they take. The API takes 32 selectors,
# 32 constraints and 16 tolerations (resource.k8s.io/v1).
LISTS: Final[Mapping[str, tuple[tuple[str, ...], int]]] = {
    "alt": (("class", "mode", "memory", "count", "share", "profile", "slots"), MAX_ALTERNATIVES),
    "cel": (("",), 8),
    "constraint": (("kind", "attribute"), 8),
    "toleration": (("key", "operator", "value", "effect", "seconds"), 16),
}
LABELS: Final[Mapping[str, str]] = {
    **{key: label for key, (label, _) in EXAMPLES.items()},
    "count": "Devices",
    "share": "Share, in percent",
    "mode": "How much of a device",
    "profile": "Slice profile",
    "slots": "Slots",
    "interval": "Time slice",
    "claim": "Claim for each pod",
    "style": "Style",
    "workload": "Workload",
    "replicas": "Replicas",
    "scale.min": "Least replicas",
    "scale.max": "Most replicas",
    "priority": "Priority class",
    "hours": "Planned hours",
    "until": "Of no use after",
    "preset": "Preset",
    "manifest": "Manifest",
    "alt": "Alternatives",
    "cel": "Selectors",
    "constraint": "Constraints",
    "toleration": "Tolerations",
    "kind": "Constraint",
    "attribute": "Attribute",
    "key": "Taint key",
    "operator": "Operator",
    "value": "Taint value",
    "effect": "Effect",
    "seconds": "Seconds",
    "memory": "Memory",
    "strategy": "Sharing inside the pod",
    "constraints": "Constraints",
}
# An entry counts where one of these fields has a value: a form sends its hidden fields and choices, too.
TELLING: Final[Mapping[str, tuple[str, ...]]] = {
    "alt": ("class",),
    "cel": ("",),
    "constraint": ("attribute",),
    "toleration": ("key", "operator", "value", "effect", "seconds"),
}
_ENTRY = re.compile(r"(alt|cel|constraint|toleration)\.([1-9][0-9]?)(?:\.([a-z]+))?", re.ASCII)


def is_ours(key: str) -> bool:
    """Whether the key belongs to a wish; all others are kept as they came."""
    return key in KEYS or entry_of(key) is not None


def entry_of(key: str) -> tuple[str, int, str] | None:
    """List, number and field of a list's key; None for any other. Numbers above the list's bound are ours as well."""
    found = _ENTRY.fullmatch(key)
    if found is None or (found[3] or "") not in LISTS[found[1]][0]:
        return None
    return found[1], int(found[2]), found[3] or ""


def numbers_given(name: str, values: Mapping[str, str]) -> list[int]:
    """The numbers of a list's entries that were filled in, in order; those past its bound as well."""
    entries = (entry_of(key) for key, value in values.items() if value)
    return sorted({entry[1] for entry in entries if entry and entry[0] == name and entry[2] in TELLING[name]})


def rank(key: str) -> tuple[int, int, int]:
    """The place of one of our keys among the others."""
    entry = entry_of(key)
    if entry is None:
        return KEYS.index(key), 0, 0
    name, number, field = entry
    return len(KEYS) + list(LISTS).index(name), number, LISTS[name][0].index(field)

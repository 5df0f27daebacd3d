"""The part "Where": whether each pod gets devices of its own or all share them, and a free name where one is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final
from urllib.parse import urlencode

from claims.services.preview import Preview
from claims.views.desk.into import Option
from claims.wish import MAX_PODS, Owner
from dra.names import MAX_LABEL
from gpuinventory.selectors import claim_names

_OWNERS: Final[Mapping[Owner, tuple[str, str]]] = {
    Owner.OWN: ("Each pod its own", "A template: every pod that names it gets devices of its own."),
    Owner.SHARED: ("Pods share one", f"One claim: up to {MAX_PODS} pods of this namespace use the same devices."),
}


@dataclass(frozen=True, slots=True)
class FreeName:
    """A name that nothing has, and the address of the form with it."""

    name: str
    query: str


def where(seen: Preview) -> dict[str, Any]:
    """The values of the part's template. One query where the name is taken."""
    chosen = seen.reading.values.get("claim") or Owner.OWN
    return {
        "owners": tuple(
            Option(value=owner, title=title, text=text, chosen=owner == chosen)
            for owner, (title, text) in _OWNERS.items()
        ),
        "free_name": _free_name(seen) if seen.existing and not seen.done else None,
    }


def _free_name(seen: Preview) -> FreeName | None:
    """The name with the first number that makes it free."""
    if seen.wish is None:
        return None
    taken = claim_names(seen.wish.namespace)
    name = next(each for number in count(2) if (each := numbered(seen.wish.name, number)) not in taken)
    pairs = [pair for pair in seen.reading.pairs if pair[0] != "name"]
    return FreeName(name, urlencode([*pairs, ("name", name)]))


def numbered(name: str, number: int) -> str:
    """The name with a number behind it, still a DNS label."""
    suffix = f"-{number}"
    return name[: MAX_LABEL - len(suffix)].rstrip("-") + suffix

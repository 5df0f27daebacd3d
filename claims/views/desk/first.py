"""What a new form begins with: the first class that can be had, the class's own defaults, a name that nothing has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain, count
from typing import Final

from claims.selectors import ClassOption, class_options
from claims.services.charges import full_quotas
from claims.views.desk.where import numbered
from claims.wish import closed
from gpuinventory.selectors import claim_names
from gpuinventory.selectors.gpuclasses import class_numbers
from gpuinventory.selectors.held import Held, current

_NO_NAME: Final = re.compile(r"[^a-z0-9]+")
_MOST: Final = 40  # characters of a class's name
_WORD: Final = "job"


def first_values(namespace: str, given: Mapping[str, str]) -> Mapping[str, str]:
    """Values for the keys that the address lacks; no class where none can be had now. The namespace is the person's."""
    fleet = current()
    options = class_options(fleet)
    chosen = next((each for each in options if each.view.name == given.get("class")), None)
    if chosen is None and "class" not in given:
        chosen = _first(options, fleet, namespace)
    found = _defaults(chosen) | {"name": _name(chosen, namespace)} if chosen else {}
    return {key: value for key, value in found.items() if key not in given}


def _first(options: Iterable[ClassOption], fleet: Held, namespace: str) -> ClassOption | None:
    full = full_quotas(namespace)
    for option in options:
        shut = closed(option.facts, namespace) or option.facts.device_class in full
        if not shut and option.expressions and class_numbers(fleet, option.view).free:
            return option
    return None


def _defaults(option: ClassOption) -> dict[str, str]:
    """What an administrator says of the class, as far as it is not what every form begins with."""
    spec = option.facts.spec
    share = str(spec.share.default) if spec.mode == "share" else ""
    values = {"share": share, "memory": spec.memory.default or "", "count": str(spec.count.default)}
    return {"class": option.view.name, **{key: value for key, value in values.items() if value not in ("", "1")}}


def _name(option: ClassOption, namespace: str) -> str:
    slug = _NO_NAME.sub("-", option.view.name.rpartition(".")[2] or option.view.name).strip("-")[:_MOST].strip("-")
    name, taken = f"{slug}-{_WORD}", claim_names(namespace)
    return next(each for each in chain([name], (numbered(name, number) for number in count(2))) if each not in taken)

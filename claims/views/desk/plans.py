"""What a person plans: priority class, planned hours, the day after which it is of no use, and the time slice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.utils import timezone

from claims.services.preview import Preview
from claims.views.desk.fields import Fields
from claims.views.desk.otherwise import Option
from claims.wish import MAX_HOURS, Interval, Mode
from gpuinventory.selectors.held import Held
from gpuinventory.selectors.priorities import PriorityClassView, priority_classes

_KEYS: Final = ("priority", "hours", "until", "interval")


def plans(seen: Preview, fields: Fields, fleet: Held) -> dict[str, Any]:
    """The context of the plans in templates/claims/desk/advanced.html."""
    given = [key for key in _KEYS if fields[key].value]
    known = priority_classes(fleet.revision)
    priority = fields["priority"].value
    return {
        "plans_given": len(given),
        "plans_open": bool(given) or any(fields[key].error for key in _KEYS),
        "priorities": tuple(_priorities(known, priority)) if known else (),
        "priority_unknown": bool(known and priority) and priority not in {each.name for each in known},
        "intervals": tuple(_intervals(fields["interval"].value)) if _slices_time(seen, fields) else (),
        "most_hours": MAX_HOURS,
        "today": timezone.localdate().isoformat(),
    }


def _priorities(known: tuple[PriorityClassView, ...], chosen: str) -> Iterator[Option]:
    default = next((each.name for each in known if each.default), "")
    yield Option("", f"As the cluster says ({default})" if default else "None", chosen=not chosen)
    yield from (Option(each.name, f"{each.name} ({each.value:,})", chosen=each.name == chosen) for each in known)
    if chosen and chosen not in {each.name for each in known}:
        yield Option(chosen, f"{chosen} (not there)", chosen=True)


def _intervals(chosen: str) -> Iterator[Option]:
    yield Option("", "As the class says", chosen=not chosen)
    yield from (Option(each, each, chosen=each == chosen) for each in Interval)
    if chosen and chosen not in set(Interval):
        yield Option(chosen, chosen, chosen=True)


def _slices_time(seen: Preview, fields: Fields) -> bool:
    """Whether time slices can be asked for: only devices that are shared in time have them."""
    wish = seen.reading.wish
    return bool(fields["interval"].value) or (wish is not None and wish.mode is Mode.TIMESLICED)

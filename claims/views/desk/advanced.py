"""The folded parts of the form: conditions, constraints, tolerations and plans."""

from __future__ import annotations

from typing import Any

from claims.services.preview import Preview
from claims.views.desk.conditions import conditions
from claims.views.desk.fields import Fields
from claims.views.desk.plans import plans
from claims.views.desk.rules import constraints, tolerations
from gpuinventory.selectors.held import Held


def advanced(seen: Preview, fields: Fields, fleet: Held) -> dict[str, Any]:
    """The context of templates/claims/desk/advanced.html."""
    view = seen.chosen.view if seen.chosen else None
    return {
        **conditions(seen, fields, fleet, view),
        **constraints(seen, fields, fleet, view),
        **tolerations(seen, fields, fleet),
        **plans(seen, fields, fleet),
    }

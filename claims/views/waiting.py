"""Why the claims of a request wait, in the words of the form's fit panel: numbers, and no names of others."""

from __future__ import annotations

from claims.selectors import RequestView
from claims.services.fit import fit
from claims.services.preview import Preview
from claims.views.fitpanel import Panel, panel
from gpuinventory.claimstate import ClaimState


def waiting(view: RequestView, again: Preview) -> Panel | None:
    """What the fleet says of the request's wish while a claim of it waits for devices; nothing otherwise.

    `again` is the preview of the request's own query.
    """
    own = sum(claim.state is ClaimState.WAITING_FOR_DEVICES for claim in view.claims)
    return panel(fit(again, again.fleet, own=own), again.wish, again.reading.values) if own else None

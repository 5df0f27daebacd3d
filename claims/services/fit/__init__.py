"""Whether a wish fits the fleet, why not, and which one change would make it fit. Reads the fleet in memory only.

The claim that is asked about is read out of the very file that would be created.
"""

from claims.services.fit.answer import Change, Fit, Outcome, Proposal
from claims.services.fit.ask import fit
from claims.services.fit.claim import choice_of
from claims.services.fit.stop import Stop

__all__ = ["Change", "Fit", "Outcome", "Proposal", "Stop", "choice_of", "fit"]

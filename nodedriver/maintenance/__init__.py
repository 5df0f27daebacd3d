"""Cards that change their MIG mode by a reset: claims wait for it behind binding conditions (KEP-5007).

`awaited.py` reads which devices wait, `deciding.py` what to do and to say (both pure), `ledger.py` keeps it over
restarts, `following.py` hears of claims, `holders.py` looks who has a card open, `workshop.py` changes the mode,
`flow.py` is the thread that takes the steps.
"""

from nodedriver.maintenance.awaited import Naming
from nodedriver.maintenance.flow import Maintenance
from nodedriver.maintenance.following import AwaitedClaims
from nodedriver.maintenance.ledger import Ledger
from nodedriver.maintenance.modes import Present, with_present_modes
from nodedriver.maintenance.workshop import Workshop

__all__ = ["AwaitedClaims", "Ledger", "Maintenance", "Naming", "Present", "Workshop", "with_present_modes"]

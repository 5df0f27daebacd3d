"""Write simulator/scenarios/roles.yaml: the chart's accounts and roles for the teams of the demo, rendered by helm.

`python scripts/simulator_roles.py`, after a change of the chart's RBAC; a test holds the file to the chart.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulator.world import ROLES, SYSTEM
from tests.cluster.chart import ROLE_KINDS, render

TEAMS = ("ml-team", "inference-team")
ADMISSION = "ValidatingAdmissionPolicy"  # policies are not served by the simulator


def rendered() -> str:
    """The file's text."""
    import yaml  # noqa: PLC0415

    values = {"teams": [{"name": team, "namespaces": [team]} for team in TEAMS], "web": {"tryWorkloads": True}}
    objects = render(values, namespace=SYSTEM)
    kept = [each for each in objects if each["kind"] in ROLE_KINDS and not each["kind"].startswith(ADMISSION)]
    return yaml.safe_dump_all(kept, sort_keys=True)


if __name__ == "__main__":
    ROLES.write_text(rendered())

"""The time that the simulator's actors live by, over its own address (simulator/knobs.py)."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Final

from django.conf import settings

from dra.kube.errors import KubeError
from dra.kube.port import Cluster
from dra.kube.requests import Request
from portal.cluster import client_of

RATES: Final = {0: "Pause", 1: "×1", 10: "×10"}  # noqa: RUF001  # the sign that people read
_PATH: Final = "/simulator/clock"
_SECONDS: Final = 2.0  # every page of the demo waits for it


def rate() -> int | None:
    """How many seconds pass for the actors in each of ours; None where the simulator does not say."""
    try:
        answer = json.loads(_simulator(settings.DEMO).send(Request("GET", _PATH)))
    except (KubeError, ValueError):
        return None
    found = answer.get("rate") if isinstance(answer, dict) else None
    return found if found in RATES else None


def set_rate(wanted: int) -> None:
    """Go on at one of `RATES`; KubeError where the simulator does not take it."""
    headers = (("Content-Type", "application/json"),)
    _simulator(settings.DEMO).send(Request("PUT", _PATH, headers=headers, body=json.dumps({"rate": wanted}).encode()))


@lru_cache(maxsize=2)
def _simulator(kubeconfig: str) -> Cluster:
    return client_of(kubeconfig, timeout=_SECONDS)

"""Everything a driver has left on its node, in a form that is equal when the node is: silicon, checkpoint, CDI folder.

What differs from one time to the next by nature (UIDs, random UUIDs, process ids, times) is blanked.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Any

from simulator.silicon.hardware import Gpu
from tests.cluster.driver import NodeDriver

_RANDOM = re.compile(r"[0-9a-f]{8}([-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}")
_POOL_OF_PIPES = re.compile(r"/mps/[0-9a-f]+/")
_GENERATED = re.compile(r"(-extended-resources|-gpu)-[a-z0-9]{5}")


def footprint(driver: NodeDriver) -> dict[str, Any]:
    """What is there now."""
    silicon = driver.state.read()
    return {
        "cards": [_card(gpu) for gpu in silicon.gpus],
        "daemons": [
            (d.devices, d.default_active_thread_percentage, d.default_memory_limits) for d in silicon.mps_daemons
        ],
        "checkpoint": _checkpoint(driver),
        "cdi": sorted(_blank(path.read_text()) for path in driver.cdi_files()),
    }


def _card(gpu: Gpu) -> dict[str, Any]:
    card = asdict(gpu) | {"created": 0, "renewed": 0, "processes": len(gpu.processes)}
    for instance in card["gpu_instances"]:
        instance["created"] = 0
        for compute_instance in instance["compute_instances"]:
            compute_instance |= {"created": 0, "uuid": ""}
    return card


def _checkpoint(driver: NodeDriver) -> list[Any]:
    claims = json.loads(driver.checkpoint.read_bytes())["claims"].values()
    return [json.loads(_blank(json.dumps(claim | {"prepared_at": bool(claim["prepared_at"])}))) for claim in claims]


def _blank(text: str) -> str:
    return _GENERATED.sub(r"\1-X", _POOL_OF_PIPES.sub("/mps/X/", _RANDOM.sub("X", text)))

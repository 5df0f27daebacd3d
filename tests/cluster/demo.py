"""`make demo`, for now on a real control plane: one real node with the production driver, seven hollow ones, a portal.

Everything is on loopback in one folder and ends with Ctrl-C. The embedded demo takes this file's place when the
simulator exists.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import yaml

from dra.objects import OwnerReference, to_json
from dra.slices import PoolContent, changes
from nodedriver.facts import GpuFacts, GpuUUID
from nodedriver.inventory import take_inventory
from tests.cluster import build
from tests.cluster.chart import HelmError, apply_roles
from tests.cluster.cluster import Cluster, ClusterError
from tests.cluster.driver import NodeDriver
from tests.cluster.hardware import facts_of
from tests.cluster.hollow import HollowNodes
from tests.cluster.node import NEEDS_ROOT, Node
from tests.cluster.portal import Portal, PortalError
from tests.cluster.processes import ProgramError
from tests.cluster.waiting import WaitedInVainError

DRIVER_NAME = "gpu.portico.dev"
TEAMS = {"ml-team": ["ml-team"], "inference-team": ["inference-team"]}
HOLLOW = tuple(f"node-{number}" for number in range(2, 9))
CLASSES = Path(__file__).parent / "demo-classes.yaml"
PORT = 8000


def main() -> int:
    """Start everything, print one address, wait for Ctrl-C."""
    if os.geteuid() != 0:
        say(f"make demo needs root for now. {NEEDS_ROOT.split(';', maxsplit=1)[0]}")
        return 1
    for module in ("kubernetes", "containerd", "helm"):
        build.programs(module)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        with ExitStack() as stack:
            portal = start(stack)
            say(f"ready: {portal.url}   (Ctrl-C stops everything)")
            stop.wait()
    except KeyboardInterrupt:
        say("stopped")
    except (ProgramError, ClusterError, PortalError, HelmError, WaitedInVainError) as error:
        say(f"could not start: {error}")
        return 1
    return 0


def start(stack: ExitStack) -> Portal:
    """Cluster, roles, nodes, driver, portal, people; each ends with the stack."""
    say("starting a control plane …")
    cluster = stack.enter_context(Cluster())
    accounts = apply_roles(cluster, namespace="portico-system", teams=TEAMS, driver_name=DRIVER_NAME, prefix="portico:")
    cluster.apply(*(document for document in yaml.safe_load_all(CLASSES.read_text()) if document))
    say("starting a node with eight H100 of stand-in silicon and the node driver …")
    node = stack.enter_context(Node(cluster))
    driver = stack.enter_context(NodeDriver(node, accounts, DRIVER_NAME))
    say("adding seven hollow nodes …")
    facts = facts_of(driver.tree)
    HollowNodes(cluster).make(HOLLOW, lambda name: slices_of(cluster, name, facts), cordoned=True)
    say("starting the portal and its worker …")
    portal = stack.enter_context(Portal(cluster, accounts, port=PORT))
    say(portal.manage("seeddemo").strip())
    return portal


def slices_of(cluster: Cluster, node: str, facts: Sequence[GpuFacts]) -> list[Mapping[str, Any]]:
    """What the driver would publish for a node with the same cards under other UUIDs."""
    own = tuple(replace(gpu, uuid=GpuUUID(f"GPU-{uuid5(NAMESPACE_OID, f'{node}/{gpu.uuid}')}")) for gpu in facts)
    ranks = {gpu.pci_address: rank for rank, gpu in enumerate(own)}
    uid = cluster.call("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
    owner = OwnerReference(api_version="v1", kind="Node", name=node, uid=uid, controller=True)
    inventory = take_inventory(DRIVER_NAME, own, ranks)
    pool = PoolContent(driver=DRIVER_NAME, node=node, owner=owner, slices=inventory.slices)
    return [to_json(slice_) for slice_ in changes(pool, ()).create]


def say(text: str) -> None:
    """One line of progress."""
    print(f"portico: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())

"""`make demo CLUSTER=real`: a real control plane, a real node with the production driver, seven hollow ones, a portal.

Everything is on loopback in one folder and ends with Ctrl-C. `make demo` alone needs none of it (simulator/demo.py).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import yaml

from tests.cluster import build
from tests.cluster.chart import HelmError, apply_roles
from tests.cluster.cluster import Cluster, ClusterError
from tests.cluster.driver import NodeDriver
from tests.cluster.hardware import facts_of, slices_for
from tests.cluster.hollow import HollowNodes
from tests.cluster.node import NEEDS_ROOT, Node
from tests.cluster.portal import Portal, PortalError
from tests.cluster.processes import ProgramError
from tests.cluster.waiting import WaitedInVainError

DRIVER_NAME = "gpu.portico.dev"
TEAMS = {"ml-team": ["ml-team"], "inference-team": ["inference-team"]}
HOLLOW = tuple(f"node-{number}" for number in range(2, 9))
CLASSES = Path(__file__).parent / "demo-classes.yaml"
PORT = 8000  # where it is free


def main() -> int:
    """Start everything, print one address, wait for Ctrl-C."""
    if os.geteuid() != 0:
        say(f"make demo CLUSTER=real needs root. {NEEDS_ROOT.split(';', maxsplit=1)[0]}")
        return 1
    for module in ("kubernetes", "containerd", "helm"):
        build.programs(module)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in the background without it
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
    HollowNodes(cluster).make(HOLLOW, lambda name: slices_for(cluster, DRIVER_NAME, name, facts), cordoned=True)
    say("starting the portal and its worker …")
    portal = stack.enter_context(Portal(cluster, accounts, port=PORT if is_free(PORT) else 0))
    say(f"people, by name and password:\n{portal.manage('seeddemo').rstrip()}")
    return portal


def is_free(port: int) -> bool:
    """Whether nobody listens there now."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def say(text: str) -> None:
    """One line of progress."""
    print(f"portico: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())

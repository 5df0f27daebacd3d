"""A stand-in machine for driver tests: silicon, a real MPS supervisor process, a small API server, and the driver.

`Machine` drives the production verbs in this process; `tests/nodedriver/node.py` runs the whole driver as a process.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dra.kube.client import KubeClient
from dra.names import ClaimRef, ClaimUID
from dra.objects import ResourceClaim, to_json
from nodedriver.claimspecs import ClaimSpecs, ContainerFiles, NodePaths
from nodedriver.driver import Driver, Parts
from nodedriver.hands import Hands, Tools
from nodedriver.inventory import InventoryRules, take_inventory
from nodedriver.locks import Locks
from nodedriver.metadatafiles import MetadataFiles
from nodedriver.mps import MpsClient
from nodedriver.nvml import Nvml
from nodedriver.nvml.patience import SECONDS
from nodedriver.plan import PlanRules
from nodedriver.ports import Mps, MpsError
from nodedriver.prepared import PreparedClaims
from nodedriver.reconciler import Reconciler
from nodedriver.timeslices import NvidiaSmi
from nodedriver.vfio import Roots, VfioPci, all_cards, as_served
from simulator.silicon import nvml as silicon_nvml
from simulator.silicon import sysfs
from simulator.silicon.fleet import initialise
from simulator.silicon.hardware import Gpu
from simulator.silicon.state import State
from tests.nodedriver.apiserver import Store
from tests.nodedriver.claims import DRIVER, NODE
from tests.nodedriver.mps import offer_namespaces

CHECKOUT = Path(__file__).parents[2]
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/ml-team/resourceclaims"
READY_SECONDS = 20.0


def without_counters(gpu: Gpu) -> Gpu:
    """`created` and `renewed` never repeat, by design of the stand-in, and an MPS server is a new process each time."""
    instances = (
        replace(gi, created=0, compute_instances=tuple(replace(ci, created=0) for ci in gi.compute_instances))
        for gi in gpu.gpu_instances
    )
    processes = tuple(replace(process, pid=0, started=0) for process in gpu.processes)
    return replace(gpu, created=0, renewed=0, gpu_instances=tuple(instances), processes=processes)


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder whose sockets have short enough paths, which pytest's own may not."""
    folder = Path(tempfile.mkdtemp(prefix="nd-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def wait_until(condition: Callable[[], object], what: str, seconds: float = READY_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)


class Machine:
    """Eight H100, or the cards of another scenario. MPS has a supervisor after `start_supervisor` only."""

    def __init__(self, folder: Path, store: Store, patience: float = SECONDS, scenario: str = "h100x8") -> None:
        self.folder = folder
        self.store = store
        self.tree = initialise(folder / "machine", scenario)
        self.state = State(self.tree.state)
        self.plugin_dir = folder / "plugin"
        self.cdi_dir = folder / "cdi"
        self.plugin_dir.mkdir()
        self._supervisor: subprocess.Popen[bytes] | None = None
        silicon_nvml.install(self.tree.state)
        sysfs.answer(self.tree)
        self.gpus = Nvml(library=None, sys_root=self.tree.sys, patience=patience)
        self.mps: Mps = MpsClient(self.plugin_dir / "mps" / "mpsd.sock")
        self.wished: list[ClaimUID] = []
        self.driver = self.make_driver()

    def make_driver(self, *, keep_mig_mode: bool = False) -> Driver:
        """The driver as a process that starts now would have it, without the kubelet's sockets."""
        boot_id = (self.tree.proc / "sys/kernel/random/boot_id").read_text().strip()
        locks = Locks(self.plugin_dir / "locks", deadline=10)
        roots = Roots(self.tree.sys, self.tree.proc)
        known = all_cards(self.gpus.facts(), self.plugin_dir / "cards.json", roots)
        ranks = {gpu.pci_address: rank for rank, gpu in enumerate(known)}
        paths = NodePaths(
            cdi_dir=self.cdi_dir,
            proc_root=self.tree.proc,
            sys_root=self.tree.sys,
            dev_root=self.tree.dev,
            driver_root=self.tree.driver,
            host_driver_root=self.tree.driver,
        )
        records = take_inventory(InventoryRules(DRIVER, 10), known, ranks).records
        metadata = MetadataFiles(DRIVER, self.plugin_dir / "dra-device-metadata", records, enabled=False)
        vfio = VfioPci(roots, self.gpus)
        specs = ClaimSpecs(DRIVER, paths, self.gpus, vfio, ContainerFiles(metadata))
        times = NvidiaSmi(self.tree.driver)
        tools = Tools(
            gpus=self.gpus, mps=self.mps, time_slices=times, vfio=vfio, specs=specs, keep_mig_mode=keep_mig_mode
        )
        hands = Hands(tools)
        self.prepared = PreparedClaims(self.plugin_dir / "checkpoint.json", boot_id=boot_id, locks=locks)
        self.opened = self.prepared.open(specs.noted().values(), hands.look_for_unclean)
        facts = as_served(known, self.prepared.read().passed_through, roots)
        parts = Parts(
            cluster=KubeClient.from_environment(str(self.folder / "kubeconfig")),
            records=take_inventory(InventoryRules(DRIVER, 10), facts, ranks).records,
            rules=PlanRules(driver_name=DRIVER, pool=NODE, mps_reserve=512 * 2**20),
            locks=locks,
            prepared=self.prepared,
            hands=hands,
            statuses=self.wished.extend,
        )
        self.reconciler = Reconciler(parts, specs)
        return Driver(parts)

    def start_supervisor(self, protocol: int = 2) -> None:
        """Start `mpsd` and wait until it answers; `protocol`: what its daemons speak."""
        flags = ["--node-name", NODE, "--plugin-dir", str(self.plugin_dir), "--cdi-dir", str(self.cdi_dir)]
        flags += ["--mps-protocol", str(protocol)]
        if protocol == 3:
            offer_namespaces(self.state)
        command = [sys.executable, "-m", "simulator.node", "--root", str(self.tree.root), "mpsd", *flags]
        self._supervisor = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(CHECKOUT)})
        wait_until(self._supervisor_answers, "the MPS supervisor's answer", 60)

    def _supervisor_answers(self) -> bool:
        """Its socket is there a moment before it listens."""
        try:
            MpsClient(self.plugin_dir / "mps" / "mpsd.sock").list()
        except MpsError:
            return False
        return True

    def close(self) -> None:
        self.gpus.close()
        if self._supervisor is not None:
            self._supervisor.terminate()
            self._supervisor.wait(20)

    def allocate(self, claim: ResourceClaim) -> ClaimRef:
        """Put an allocated claim into the API server."""
        self.store.put(f"{CLAIMS}/{claim.metadata.name}", to_json(claim), "ADDED")
        return claim.ref

    def instances(self, card: int = 0) -> list[tuple[int, int]]:
        """Profile id and start of each GPU instance of a card."""
        return [(i.profile_id, i.start) for i in self.state.read().gpus[card].gpu_instances]

    def modes(self, card: int = 0) -> tuple[bool, str]:
        """MIG mode and compute mode of a card."""
        gpu = self.state.read().gpus[card]
        return gpu.mig_current, gpu.compute_mode.name

    def daemons(self) -> dict[str, tuple[float, list[int]]]:
        """By device UUID the default percentage and memory limits in MiB that each control daemon has."""
        return {
            daemon.devices[0]: (
                daemon.default_active_thread_percentage,
                [limit // 2**20 for limit in daemon.default_memory_limits.values()],
            )
            for daemon in self.state.read().mps_daemons
        }

    def everything(self) -> dict[str, Any]:
        """Silicon, checkpoint and CDI folder, without what differs from one time to the next."""
        claims = self.prepared.read().claims
        return {
            "cards": [without_counters(gpu) for gpu in self.state.read().gpus],
            "daemons": self.daemons(),
            "checkpoint": {
                uid: replace(claim, prepared_at=str(bool(claim.prepared_at))) for uid, claim in claims.items()
            },
            "cdi": self.specs(),
        }

    def specs(self) -> dict[str, Any]:
        """The CDI files by claim uid."""
        files = self.cdi_dir.glob("*.json")
        return {path.stem.removeprefix(f"{DRIVER}-claim-"): json.loads(path.read_bytes()) for path in files}

"""Clean up after clusters: our own at its end, and those whose owner was killed before it could.

It stops only what is recorded in the cluster's own folder (`processes.py`) and unmounts only below it.
"""

from pathlib import Path

from tests.cluster import folders
from tests.cluster.processes import Processes
from tests.cluster.runtime import Runtime


def sweep(base: Path = folders.BASE) -> None:
    """Remove every cluster below `base` whose owner is dead."""
    with folders.lock(base):
        for folder in folders.stale(base):
            remove_cluster(folder)


def remove_cluster(folder: Path) -> None:
    """Stop what is recorded in a cluster's folder, then remove the folder."""
    processes = Processes(folder)
    # 1. Kubelets, which would start containers again. 2. Containers and containerd. 3. The rest.
    for name in _with_prefix(processes, "kubelet-"):
        processes.stop_recorded(name)
    for name in _with_prefix(processes, "containerd-"):
        Runtime(processes, folder / name.removeprefix("containerd-")).stop()
    for name in processes.recorded():
        processes.stop_recorded(name, grace=2.0)
    folders.remove(folder)


def _with_prefix(processes: Processes, prefix: str) -> list[str]:
    return [name for name in processes.recorded() if name.startswith(prefix)]

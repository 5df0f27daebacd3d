"""Nothing remains: after a stop, and after the start that follows a run that was killed.

"Nothing" is asked of the kernel: processes by command line, folder and mounts, unix sockets, mount points, files.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cluster import folders
from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.cluster.processes import Processes, ProcessId
from tests.cluster.sweep import sweep
from tests.cluster.waiting import wait_until

ROOT = Path(__file__).parents[2]

# The pod sleeps for so long, and no other process of the machine does, so that it can be told by its command line.
POD_SECONDS = 10_000_000 + os.getpid()

CONTROL_PLANE = """
import sys, time
from pathlib import Path
from tests.cluster.cluster import Cluster
cluster = Cluster(Path(sys.argv[1]))
cluster.start()
print(cluster.folder, flush=True)
time.sleep(600)
"""

NODE_WITH_A_POD = """
import sys, time
from pathlib import Path
from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.cluster.pods import await_pod, busybox_pod, create_pod
cluster = Cluster(Path(sys.argv[1]))
cluster.start()
node = Node(cluster)
node.start()
create_pod(cluster, busybox_pod("left-behind", ["sleep", sys.argv[2]]))
await_pod(cluster, "left-behind")
print(cluster.folder, flush=True)
time.sleep(600)
"""


def traces(folder: Path) -> list[str]:
    """What the kernel still knows of a folder: processes that name it or mount from it, sockets, mounts."""
    name = str(folder)
    found = [f"process {process.name}" for process in Path("/proc").glob("[0-9]*") if _touches(process, name)]
    found += [f"socket {line}" for line in Path("/proc/net/unix").read_text().splitlines() if name in line]
    found += [f"mount {point}" for point in folders.mounts_below(folder)]
    return found


def _touches(process: Path, name: str) -> bool:
    with suppress(OSError):  # it may end while we look
        if int(process.name) != os.getpid():
            texts = [(process / file).read_text(errors="replace") for file in ("cmdline", "mountinfo")]
            return any(name in text for text in [*texts, str((process / "cwd").readlink())])
    return False


@pytest.fixture
def base() -> Iterator[Path]:
    """A place where no other run sweeps; short, as every base has to be."""
    with tempfile.TemporaryDirectory(prefix="portico-", dir="/tmp") as folder:
        yield Path(folder)
        sweep(Path(folder))


def killed_run(program: str, base: Path) -> Path:
    """The folder of a cluster whose owner was killed; what the owner started is alive."""
    command: list[str | Path] = [sys.executable, "-c", program, base, str(POD_SECONDS)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folder = owner.stdout.readline().strip()
        owner.send_signal(signal.SIGKILL)
    assert folder, "the run ended before its cluster was up"
    return Path(folder)


def _sleepers() -> int:
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            count += (process / "cmdline").read_bytes() == f"sleep\0{POD_SECONDS}\0".encode()
    return count


def test_stop_leaves_nothing(cluster: Cluster) -> None:
    with Cluster() as other:
        folder = other.folder
        assert len(traces(folder)) >= 4  # its four programs: this test can see what it looks for
    assert traces(folder) == []
    assert not folder.exists()
    assert cluster.raw("GET", "/readyz").status == 200  # a neighbour that lives is not touched


def test_the_next_start_cleans_up_after_a_killed_run(cluster: Cluster, base: Path) -> None:
    folder = killed_run(CONTROL_PLANE, base)
    assert len(traces(folder)) >= 4
    with Cluster(base) as following:
        assert traces(folder) == []
        assert not folder.exists()
        assert following.raw("GET", "/readyz").status == 200
    assert cluster.raw("GET", "/readyz").status == 200


def test_a_killed_run_with_a_node_leaves_no_container(node: Node, base: Path) -> None:
    folder = killed_run(NODE_WITH_A_POD, base)
    assert _sleepers() == 1
    sweep(base)
    assert traces(folder) == []
    assert _sleepers() == 0
    assert not folder.exists()
    assert node.runtime.ctr("version")


def test_containers_end_even_where_their_containerd_died_first(node: Node, base: Path) -> None:
    folder = killed_run(NODE_WITH_A_POD, base)
    containerd = ProcessId.read(Processes(folder).records / "containerd-node-1.stat")
    assert containerd is not None
    os.kill(containerd.pid, signal.SIGKILL)
    wait_until(lambda: not containerd.alive(), "the end of containerd")
    assert _sleepers() == 1
    sweep(base)
    assert traces(folder) == []
    assert _sleepers() == 0
    assert node.runtime.ctr("version")


def test_what_is_mounted_below_a_folder_is_unmounted_not_deleted(node: Node, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("still here")
    base = tmp_path / "base"
    folder = folders.create(base)
    (folder / "a place").mkdir()  # with a space, which mountinfo escapes
    subprocess.run(["mount", "--bind", tmp_path, folder / "a place"], check=True)
    assert folders.mounts_below(folder) == [folder / "a place"]
    folders.remove(folder)
    assert folders.mounts_below(folder) == []
    assert not folder.exists()
    assert (tmp_path / "precious").read_text() == "still here"
    assert node.folder.is_dir()


def test_only_folders_with_a_dead_owner_are_stale(tmp_path: Path) -> None:
    base = tmp_path / "base"
    mine = folders.create(base)
    assert folders.stale(base) == []
    stat = (mine / "owner.stat").read_text()
    known = ProcessId.of(os.getpid())
    assert known is not None
    (mine / "owner.stat").write_text(stat.replace(f" {known.started} ", f" {known.started - 1} "))
    assert folders.stale(base) == [mine]
    (mine / "owner.stat").unlink()
    assert folders.stale(base) == [mine]


def test_the_newest_logs_are_kept(tmp_path: Path) -> None:
    base = tmp_path / "base"
    made = [folders.create(base) for _ in range(folders.KEPT_LOGS + 2)]
    for age, folder in enumerate(reversed(made)):
        (folder / "log" / "etcd.log").write_text(folder.name)
        os.utime(folder / "log", (1_700_000_000 - age, 1_700_000_000 - age))
    kept = [folders.keep_logs(folder) for folder in made]
    assert [path.exists() for path in kept] == [False, False, *[True] * folders.KEPT_LOGS]
    assert (kept[-1] / "etcd.log").read_text() == made[-1].name


def test_a_base_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "base").symlink_to(tmp_path / "theirs")
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        folders.create(tmp_path / "base")

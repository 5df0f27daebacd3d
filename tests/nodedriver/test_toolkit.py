"""NVIDIA's Container Toolkit: its answer read strictly, kept by the driver's version, done without where it fails."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from nodedriver.cdi import DriverEdits, Hook, Mount
from nodedriver.toolkit import Roots, Toolkit, driver_edits
from nodedriver.toolkit.reading import ToolkitError, common_edits
from simulator.silicon import ctk
from simulator.silicon.fleet import initialise
from simulator.silicon.tree import Tree
from tests.nodedriver.cdirules import faults
from tests.nodedriver.claims import DRIVER, allocated, given
from tests.nodedriver.node import DriverNode

VERSION = "580.126.20"  # of the stand-in's driver
UID = "aaaaaaaa-0000-4000-8000-000000000000"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
READ_ONLY = ("ro", "nosuid", "nodev", "rbind", "rprivate")
MINIMAL = {"cdiVersion": "0.5.0", "kind": "a/b", "devices": []}
CUDA = {"hostPath": "/driver-root/lib/libcuda.so.1", "containerPath": "/lib/libcuda.so.1"}


def answer(**edits: object) -> bytes:
    return json.dumps(MINIMAL | {"containerEdits": {"mounts": [CUDA], **edits}}).encode()


def test_only_what_is_common_is_taken_and_paths_become_the_hosts() -> None:
    mps = {"hostPath": "/tmp/nvidia-mps", "containerPath": "/tmp/nvidia-mps"}
    socket = {"hostPath": "/run/s", "containerPath": "/run/s", "options": ["nosuid"], "type": "bind"}
    hook = {"hookName": "createContainer", "path": "/h", "args": ["h", "update-ldcache"], "env": ["A=b"], "timeout": 3}
    given = answer(
        mounts=[CUDA, mps, socket],
        env=["NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_CTK_LIBCUDA_DIR=/lib"],
        hooks=[hook],
        deviceNodes=[{"path": "/dev/nvidiactl"}],
        additionalGids=[44],
    )
    assert common_edits(given, "/driver-root", "/run/nvidia/driver") == DriverEdits(
        mounts=(
            Mount("/run/nvidia/driver/lib/libcuda.so.1", "/lib/libcuda.so.1"),
            Mount("/run/s", "/run/s", ("nosuid",)),
        ),
        env=("NVIDIA_CTK_LIBCUDA_DIR=/lib",),
        hooks=(Hook(name="createContainer", path="/h", args=("h", "update-ldcache"), env=("A=b",)),),
    )


@pytest.mark.parametrize(
    ("driver_root", "host", "path"),
    [
        ("/", "/", "/driver-root/lib/libcuda.so.1"),
        ("/driver-root", "/", "/lib/libcuda.so.1"),
        ("/driver", "/other", "/driver-root/lib/libcuda.so.1"),
    ],
)
def test_paths_below_the_driver_root(driver_root: str, host: str, path: str) -> None:
    assert common_edits(answer(), driver_root, host).mounts[0].host_path == path


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"", "no CDI specification that is known here"),
        (b"cdiVersion: 0.5.0\n", "no CDI specification that is known here"),
        (b"\xff{}", "no CDI specification that is known here"),
        (json.dumps(MINIMAL).encode(), "missing required field `containerEdits`"),
        (answer(surprise=1), "unknown field `surprise`"),
        (answer(mounts=[CUDA | {"rights": "all"}]), "unknown field `rights`"),
        (answer(hooks=[{"path": "/h"}]), "missing required field `hookName`"),
        (answer(env="A=b"), "Expected `array`, got `str`"),
        (answer(mounts=[]), "has 0 files and no libcuda.so among them"),
    ],
)
def test_anything_else_is_refused(given: bytes, why: str) -> None:
    with pytest.raises(ToolkitError) as refusal:
        common_edits(given, "/", "/")
    assert why in str(refusal.value)


@dataclass(frozen=True, slots=True)
class Bench:
    """A machine with nvidia-ctk below its driver root, and how the driver asks it."""

    tree: Tree
    program: Path
    toolkit: Toolkit

    def edits(self, version: str = VERSION, **changed: Any) -> tuple[DriverEdits | None, dict[str, Any]]:
        """What the driver gets, and the last line of its log."""
        with capture_logs() as log:
            found = driver_edits(replace(self.toolkit, **changed), version)
        return found, dict(log[-1])

    def write(self, script: str) -> None:
        self.program.write_text(f"#!/bin/sh\n{script}\n")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    tree = initialise(tmp_path / "machine")
    roots = Roots(tree.driver, Path("/run/nvidia/driver"), tree.root)
    folder = tmp_path / "plugin"
    folder.mkdir()
    kept = folder / "driver-files.json"
    return Bench(
        tree,
        ctk.install(tree),
        Toolkit(setting="auto", roots=roots, folder=folder, kept=kept, driver_name=DRIVER),
    )


def test_its_word_is_taken_and_its_hook_lies_where_the_node_has_it(bench: Bench) -> None:
    edits, log = bench.edits()
    assert (log["event"], log["program"], log["kept"]) == (
        "driver's files told by nvidia-ctk",
        str(bench.program),
        False,
    )
    assert edits is not None
    assert [mount.container_path for mount in edits.mounts] == [
        f"{LIBRARIES}/libcuda.so.{VERSION}",
        f"{LIBRARIES}/libnvidia-ml.so.{VERSION}",
        "/usr/bin/nvidia-smi",
        "/run/nvidia-persistenced/socket",
    ]
    assert edits.mounts[0] == Mount(
        f"/run/nvidia/driver{LIBRARIES}/libcuda.so.{VERSION}", f"{LIBRARIES}/libcuda.so.{VERSION}", READ_ONLY
    )
    hook = bench.toolkit.folder / "nvidia-cdi-hook"
    assert {each.path for each in edits.hooks} == {str(hook)}
    assert hook.stat().st_mode & 0o777 == 0o755
    assert hook.read_bytes() == bench.program.with_name("nvidia-cdi-hook").read_bytes()


def test_it_is_asked_once_a_version_of_the_driver(bench: Bench) -> None:
    first, _ = bench.edits()
    times = bench.program.stat()
    assert bench.edits()[1]["kept"]
    bench.write("exit 7")

    os.utime(bench.program, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert bench.edits()[0] == first
    found, log = bench.edits("581.1")
    assert found is None
    assert "ended with 7: it said nothing" in log["reason"]


def test_a_new_nvidia_ctk_is_asked_again(bench: Bench) -> None:
    bench.edits()

    os.utime(bench.program, ns=(1, 1))
    assert not bench.edits()[1]["kept"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"asked": {}, "edits": 3}', b"\xff"])
def test_a_kept_answer_that_can_not_be_read_is_set_aside(bench: Bench, content: bytes) -> None:
    first, _ = bench.edits()
    bench.toolkit.kept.write_bytes(content)
    again, log = bench.edits()
    assert (again, log["kept"]) == (first, False)
    (aside,) = bench.toolkit.folder.glob("driver-files.json.unreadable-*")
    assert aside.read_bytes() == content


def _gone(bench: Bench) -> None:
    bench.program.unlink()


def _hookless(bench: Bench) -> None:
    bench.program.with_name("nvidia-cdi-hook").unlink()


def _hanging(bench: Bench) -> None:
    bench.write("exec sleep 600")


def _no_program(bench: Bench) -> None:
    bench.program.chmod(0o644)


def _nonsense(bench: Bench) -> None:
    bench.write("echo '{}'")


def _failing(bench: Bench) -> None:
    bench.write("echo 'failed to initialize NVML: Driver Not Loaded' >&2; exit 1")


@pytest.mark.parametrize(
    ("breaks", "why"),
    [
        (_gone, "nvidia-ctk is neither below the driver root"),
        (_hookless, "nvidia-cdi-hook is not there"),
        (_hanging, "did not end within 0.5 s"),
        (_no_program, "can't be run: Permission denied"),
        (_nonsense, "its answer is no CDI specification that is known here"),
        (_failing, "ended with 1: failed to initialize NVML: Driver Not Loaded"),
    ],
)
def test_without_it_the_driver_finds_the_files_itself_and_says_why(
    bench: Bench, breaks: Callable[[Bench], None], why: str
) -> None:
    breaks(bench)
    found, log = bench.edits(seconds=0.5)
    assert (found, log["event"]) == (None, "driver's files found by the node driver itself")
    assert why in log["reason"]
    assert not bench.toolkit.kept.exists()


def test_the_setting_switches_it_off_or_says_where_it_is(bench: Bench, tmp_path: Path) -> None:
    assert bench.edits(setting="off")[0] is None
    elsewhere = tmp_path / "toolkit"
    elsewhere.mkdir()
    for name in ("nvidia-ctk", "nvidia-cdi-hook"):
        bench.program.with_name(name).rename(elsewhere / name)
    assert bench.edits()[0] is None
    found, log = bench.edits(setting=str(elsewhere / "nvidia-ctk"))
    assert found is not None
    assert log["program"] == str(elsewhere / "nvidia-ctk")


@pytest.mark.programs
def test_a_claims_file_has_its_files_and_hooks_and_our_own_device_nodes(driver_node: DriverNode) -> None:
    node = driver_node
    node.kill()
    ctk.install(node.tree)
    node.start("driver")
    assert not node.prepare(node.allocate(allocated(given("gpu-0", 100), uid=UID)))[UID].error
    content = (node.cdi_dir / f"{DRIVER}-claim-{UID}.json").read_bytes()
    assert faults(content) == []
    common = json.loads(content)["containerEdits"]
    assert f"NVIDIA_CTK_LIBCUDA_DIR={LIBRARIES}" in common["env"]
    assert common["env"].count("NVIDIA_VISIBLE_DEVICES=void") == 1
    assert [hook["args"][1] for hook in common["hooks"]] == [
        "create-symlinks",
        "enable-cuda-compat",
        "update-ldcache",
        "disable-device-node-modification",
    ]
    assert common["mounts"][0]["containerPath"] == f"{LIBRARIES}/libcuda.so.{VERSION}"
    assert [(each["path"], each["major"]) for each in common["deviceNodes"]] == [
        ("/dev/nvidiactl", 195),
        ("/dev/nvidia-uvm", 506),
        ("/dev/nvidia-uvm-tools", 506),
    ]

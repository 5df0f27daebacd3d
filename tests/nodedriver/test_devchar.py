"""Links in /dev/char, so that containers keep their devices; and that all of a claim stands before prepare answers."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from structlog.testing import capture_logs

from nodedriver.devchar import link_nodes
from nodedriver.facts import DeviceNode
from tests.nodedriver.claims import DRIVER, allocated, given
from tests.nodedriver.node import DriverNode

CARD = DeviceNode("/dev/nvidia0", 195, 0)
CAPABILITY = DeviceNode("/dev/nvidia-caps/nvidia-cap12", 237, 12)
UID = "aaaaaaaa-0000-4000-8000-000000000000"


def links(dev_root: Path) -> dict[str, str]:
    return {path.name: str(path.readlink()) for path in (dev_root / "char").iterdir()}


def test_each_node_gets_its_link(tmp_path: Path) -> None:
    link_nodes(tmp_path, (CARD, CAPABILITY))
    assert links(tmp_path) == {"195:0": "../nvidia0", "237:12": "../nvidia-caps/nvidia-cap12"}
    (tmp_path / "nvidia-caps").mkdir()
    (tmp_path / "nvidia-caps/nvidia-cap12").touch()
    assert (tmp_path / "char/237:12").samefile(tmp_path / "nvidia-caps/nvidia-cap12")


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "char").mkdir()
    (tmp_path / "char/195:0").symlink_to("/somewhere/nvidia0")
    link_nodes(tmp_path, (CARD, CAPABILITY))
    link_nodes(tmp_path, (CARD, CAPABILITY))
    assert links(tmp_path) == {"195:0": "/somewhere/nvidia0", "237:12": "../nvidia-caps/nvidia-cap12"}


def test_where_no_link_can_be_made_it_is_said_and_no_error(tmp_path: Path) -> None:
    with capture_logs() as log:
        link_nodes(tmp_path / "nothing", (CARD, CAPABILITY))
    assert [(line["node"], line["reason"]) for line in log] == [
        (CARD.path, "No such file or directory"),
        (CAPABILITY.path, "No such file or directory"),
    ]


@pytest.mark.programs
def test_a_mig_claim_has_its_links_and_its_file_before_prepare_answers(driver_node: DriverNode) -> None:
    """The driver dies with everything done and nothing said: at the last boundary before the answer."""
    node = driver_node
    claim = node.allocate(allocated(given("gpu-0-mig-3g40gb-4", 100), uid=UID))
    wish, passed = node.tree.root / "die-at", node.tree.root / "boundaries"
    wish.write_text("0")
    node.prepare(claim)
    last = passed.read_text().splitlines()
    wish.unlink()
    node.unprepare(claim)
    assert last[-1] == "answer"

    wish.write_text(str(len(last)))
    with pytest.raises(grpc.RpcError):
        node.prepare(claim)
    node.buried("driver")
    assert (node.cdi_dir / f"{DRIVER}-claim-{UID}.json").exists()
    (instance,) = node.state.read().gpus[0].gpu_instances
    table = (node.tree.proc / "driver/nvidia-caps/mig-minors").read_text().splitlines()
    folder = f"gpu0/gi{instance.id}"
    names = [f"{folder}/access", f"{folder}/ci{instance.compute_instances[0].id}/access"]
    minors = [line.split()[1] for line in table if line.split()[0] in names]
    assert links(node.tree.dev) == {
        "195:0": "../nvidia0",
        "195:255": "../nvidiactl",
        "506:0": "../nvidia-uvm",
        "506:1": "../nvidia-uvm-tools",
        **{f"237:{minor}": f"../nvidia-caps/nvidia-cap{minor}" for minor in minors},
    }
    assert len(minors) == 2
    node.start("driver")

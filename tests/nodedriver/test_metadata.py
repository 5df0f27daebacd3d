"""Device metadata (KEP-5304): what the files say, where containers have them; they come and go with the claim."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from dra.names import ClaimUID
from dra.objects import DeviceAttribute, ResourceClaim
from nodedriver.devicemetadata import container_path, texts_of
from nodedriver.facts import DeviceType, PciAddress
from nodedriver.holding import ClaimState, PreparedClaim, PreparedDevice
from nodedriver.inventory import DeviceRecord
from nodedriver.metadatafiles import MetadataFiles
from tests.nodedriver import apiserver
from tests.nodedriver.cdirules import faults
from tests.nodedriver.claims import DRIVER, NODE, allocated, given
from tests.nodedriver.machine import short_folder
from tests.nodedriver.node import DriverNode

UID = ClaimUID("aaaaaaaa-0000-4000-8000-000000000000")
CARD = PciAddress("0000:1b:00.0")
MIG = "gpu-0-mig-3g40gb-4"
ATTRIBUTES = {"vendor": DeviceAttribute(string="nvidia"), "cudaReady": DeviceAttribute(bool_=False)}
ROOT = "/var/run/kubernetes.io/dra-device-attributes"


def device(name: str, request: str, uuid: str) -> PreparedDevice:
    base = request.partition("/")[0]
    return PreparedDevice(device_request=base, request=request, pool=NODE, device=name, gpu=CARD, uuid=uuid)


CLAIM = PreparedClaim(
    namespace="ml-team",
    name="claim",
    uid=UID,
    state=ClaimState.STARTED,
    devices=(device("gpu-0", "main/large", "GPU-0"), device("gpu-1", "main/large", "GPU-1"), device(MIG, "part", "M")),
)


def of_template(claim: PreparedClaim) -> PreparedClaim:
    return replace(claim, pod_claim_name="gpu")


def objects(text: bytes) -> list[dict[str, Any]]:
    """The objects of a stream, as a reader takes them from it one after another."""
    decoder, rest, found = json.JSONDecoder(), text.decode().strip(), []
    while rest:
        content, end = decoder.raw_decode(rest)
        found.append(content)
        rest = rest[end:].strip()
    return found


def test_each_request_has_a_text_in_every_version_newest_first() -> None:
    texts = texts_of(DRIVER, CLAIM, lambda name: ATTRIBUTES if name == "gpu-0" else {})
    assert list(texts) == ["main", "part"]
    newest, older = objects(texts["main"])
    assert newest == {
        "kind": "DeviceMetadata",
        "apiVersion": "metadata.resource.k8s.io/v1beta1",
        "metadata": {"name": "claim", "namespace": "ml-team", "uid": UID, "generation": 1},
        "requests": [
            {
                "name": "main/large",
                "devices": [
                    {
                        "driver": DRIVER,
                        "pool": NODE,
                        "name": "gpu-0",
                        "attributes": {
                            "vendor": {"string": "nvidia"},
                            "cudaReady": {"bool": False},
                            "uuid": {"string": "GPU-0"},
                        },
                    },
                    {"driver": DRIVER, "pool": NODE, "name": "gpu-1", "attributes": {"uuid": {"string": "GPU-1"}}},
                ],
            }
        ],
    }
    assert older == newest | {"apiVersion": "metadata.resource.k8s.io/v1alpha1"}


def test_a_claim_of_a_template_goes_by_the_name_in_the_pods_spec() -> None:
    assert container_path(DRIVER, CLAIM, "main") == f"{ROOT}/resourceclaims/claim/main/{DRIVER}-metadata.json"
    template = of_template(CLAIM)
    path = f"{ROOT}/resourceclaimtemplates/gpu/main/{DRIVER}-metadata.json"
    assert container_path(DRIVER, template, "main") == path
    assert [each["podClaimName"] for each in objects(texts_of(DRIVER, template, lambda _: {})["main"])] == ["gpu"] * 2


def files_in(folder: Path, *, enabled: bool = True) -> MetadataFiles:
    record = DeviceRecord(
        name="gpu-0", type=DeviceType.PHYSICAL, gpu=CARD, placement=None, memory=0, attributes=ATTRIBUTES
    )
    return MetadataFiles(DRIVER, folder, {"gpu-0": record}, enabled=enabled)


def test_files_are_written_and_removed_again_and_again(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    mounts = files.write(CLAIM)
    assert files.write(CLAIM) == mounts
    assert set(mounts) == {"main", "part"}
    text = Path(mounts["main"].host_path).read_bytes()
    assert text == texts_of(DRIVER, CLAIM, lambda name: ATTRIBUTES if name == "gpu-0" else {})["main"]
    assert mounts["part"].container_path == container_path(DRIVER, CLAIM, "part")
    files.remove(UID)
    files.remove(UID)
    assert not list(tmp_path.iterdir())


def test_once_switched_off_they_still_go(tmp_path: Path) -> None:
    files_in(tmp_path).write(CLAIM)
    off = files_in(tmp_path, enabled=False)
    assert off.write(replace(CLAIM, uid=ClaimUID("other"))) == {}
    off.remove(UID)
    assert not list(tmp_path.iterdir())


def test_what_belongs_to_no_claim_is_swept_and_a_claim_that_just_came_is_not(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    files.write(CLAIM)
    files.write(replace(CLAIM, uid=ClaimUID("forgotten")))

    def claims() -> list[ClaimUID]:
        files.write(replace(CLAIM, uid=ClaimUID("new")))  # another driver prepares while this one starts
        return [UID]

    files.sweep(claims)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([UID, "new"])


@pytest.fixture
def node() -> Iterator[DriverNode]:
    """A driver that writes metadata."""
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        made = DriverNode(folder, store)
        try:
            made.start("driver", "--device-metadata", "yes")
            yield made
        finally:
            made.close()


def claim_of(*devices: str, annotations: dict[str, str] | None = None) -> ResourceClaim:
    claim = allocated(*(given(name, 100, request="main") for name in devices), uid=UID)
    claim.metadata.annotations.update(annotations or {})
    return claim


def mounts_of(node: DriverNode) -> list[list[tuple[str, str, list[str]]]]:
    """Per device of the claim's CDI file what is mounted beside the driver's own files."""
    content = (node.cdi_dir / f"{DRIVER}-claim-{UID}.json").read_bytes()
    assert faults(content) == []
    edits = [device["containerEdits"].get("mounts", []) for device in json.loads(content)["devices"]]
    return [[(m["hostPath"], m["containerPath"], m["options"]) for m in mounts] for mounts in edits]


@pytest.mark.programs
def test_the_first_device_of_a_request_brings_the_file(node: DriverNode) -> None:
    claim = claim_of("gpu-0", MIG.replace("gpu-0", "gpu-1"), annotations={"resource.kubernetes.io/pod-claim-name": "g"})
    asked = node.allocate(claim)
    assert not node.prepare(asked)[UID].error
    first, second = mounts_of(node)
    assert second == []
    ((host, container, options),) = first
    assert container == f"{ROOT}/resourceclaimtemplates/g/main/{DRIVER}-metadata.json"
    assert "ro" in options

    (request,) = objects(Path(host).read_bytes())[0]["requests"]
    whole, part = (each["attributes"] for each in request["devices"])
    gpus = node.state.read().gpus
    assert whole["uuid"] == {"string": gpus[0].uuid}
    assert whole["resource.kubernetes.io/pciBusID"] == {"string": gpus[0].pci_address}
    instance = gpus[1].gpu_instances[0].compute_instances[0]
    assert (part["uuid"], part["migProfile"]) == ({"string": instance.uuid}, {"string": "3g.40gb"})
    assert part["parentUUID"] == {"string": gpus[1].uuid}

    assert node.unprepare(asked) == {UID: ""}
    assert not list((node.plugin_dir / "dra-device-metadata").iterdir())


@pytest.mark.programs
def test_a_driver_that_dies_leaves_no_more_and_no_less(node: DriverNode) -> None:
    asked = node.allocate(claim_of("gpu-0"))
    folder = node.plugin_dir / "dra-device-metadata"
    wish, passed = node.tree.root / "die-at", node.tree.root / "boundaries"

    def dying(number: int, call: Any) -> None:
        wish.write_text(str(number))
        with pytest.raises(grpc.RpcError):
            call(asked)
        node.buried("driver")
        node.start("driver", "--device-metadata", "yes")

    wish.write_text("0")
    node.prepare(asked)
    forward = passed.read_text().splitlines()
    node.unprepare(asked)
    back = passed.read_text().splitlines()[len(forward) :]
    wish.unlink()
    write, remove = forward.index("WriteSpec") + 1, back.index("RemoveSpec") + 1
    for number in (write, write + 1):
        dying(number, node.prepare)
        assert node.unprepare(asked) == {UID: ""}
        assert not list(folder.glob("*"))
    for number in (remove, remove + 1):
        assert not node.prepare(asked)[UID].error
        dying(number, node.unprepare)
        assert not node.prepare(asked)[UID].error
        ((host, _, _),) = mounts_of(node)[0]
        assert objects(Path(host).read_bytes())[0]["metadata"]["uid"] == UID
        assert node.unprepare(asked) == {UID: ""}
        assert not list(folder.glob("*"))


@pytest.mark.programs
def test_by_default_there_is_none(driver_node: DriverNode) -> None:
    asked = driver_node.allocate(claim_of("gpu-0"))
    assert not driver_node.prepare(asked)[UID].error
    assert mounts_of(driver_node) == [[]]
    assert not (driver_node.plugin_dir / "dra-device-metadata").exists()

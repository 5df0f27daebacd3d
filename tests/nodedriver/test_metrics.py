"""What Prometheus is told: the text format, what a request counts for, and what is made of claims and slices."""

import re

import pytest

from dra.names import ClaimUID
from dra.objects import Device, DeviceTaint
from dra.slices import SliceContent
from nodedriver.exposition import Family, text
from nodedriver.facts import DeviceType, PciAddress
from nodedriver.gpuconfig import MpsLimits
from nodedriver.holding import ClaimState, PreparedClaim, PreparedDevice
from nodedriver.metrics import BUCKETS, PREPARE, UNPREPARE, Requests, of_prepared, of_published
from tests.nodedriver.claims import DRIVER

NODE = {"node": "node-1", "driver": DRIVER}


def values(shown: bytes) -> dict[str, float]:
    """Value by name and labels, as a scraper reads them."""
    lines = [line for line in shown.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_the_text_is_what_prometheus_reads() -> None:
    family = Family("things", "gauge", "Some things.", (("", {"a": 'x"y\\z\nw', "b": ""}, 2.0), ("_sum", {}, 0.5)))
    assert text([family]) == (
        b"# HELP portico_dra_things Some things.\n# TYPE portico_dra_things gauge\n"
        b'portico_dra_things{a="x\\"y\\\\z\\nw",b=""} 2\nportico_dra_things_sum{} 0.5\n'
    )


def test_a_request_is_counted_while_it_runs_and_once_it_ended() -> None:
    requests = Requests()
    with requests.running(PREPARE):
        during = values(text(requests.families(DRIVER)))
    after = values(text(requests.families(DRIVER)))

    labels = f'driver="{DRIVER}",operation="NodePrepareResources"'
    in_flight, total = f"portico_dra_requests_inflight{{{labels}}}", f"portico_dra_requests_total{{{labels}}}"
    assert (during[in_flight], during[total]) == (1, 0)
    assert (after[in_flight], after[total]) == (0, 1)
    assert after[f"portico_dra_request_duration_seconds_count{{{labels}}}"] == 1
    assert after[f'portico_dra_request_duration_seconds_bucket{{{labels},le="+Inf"}}'] == 1
    assert after[f"portico_dra_requests_total{{{labels.replace('Prepare', 'Unprepare')}}}"] == 0


def test_buckets_grow_by_two_and_add_up() -> None:
    requests = Requests()
    with requests.running(UNPREPARE):
        pass
    shown = text(requests.families(DRIVER)).decode()
    bounds = re.findall(rf'_bucket{{driver="{DRIVER}",operation="NodeUnprepareResources",le="([^"]+)"}} (\d+)', shown)
    assert [bound for bound, _ in bounds] == [*map(str, BUCKETS), "+Inf"]
    assert BUCKETS[3:] == (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
    counts = [int(count) for _, count in bounds]
    assert counts == sorted(counts)
    assert counts[-1] == 1


def test_an_error_ends_the_count_and_is_counted_by_its_type() -> None:
    requests = Requests()
    with pytest.raises(ValueError, match="no"), requests.running(PREPARE):
        raise ValueError("no")
    requests.failed(PREPARE, "GpuError")
    requests.failed(PREPARE, "GpuError")
    shown = values(text(requests.families(DRIVER)))
    assert shown[f'portico_dra_requests_inflight{{driver="{DRIVER}",operation="NodePrepareResources"}}'] == 0
    assert shown[f'portico_dra_node_prepare_errors_total{{driver="{DRIVER}",error_type="GpuError"}}'] == 2
    assert not [name for name in shown if "unprepare_errors" in name]


def test_devices_of_claims_by_type_and_the_daemons_they_need() -> None:
    gpu = PciAddress("0000:18:00.0")
    limits = MpsLimits(thread_percentage=25)
    shared = [
        PreparedDevice(device_request="r", pool="p", device="gpu-0", gpu=gpu, uuid="GPU-0", mps=limits, share=25)
        for _ in range(2)
    ]
    part = PreparedDevice(
        device_request="r", pool="p", device="gpu-1-mig-1g10gb-0", gpu=gpu, uuid="MIG-1", type=DeviceType.MIG
    )
    claims = [
        PreparedClaim(namespace="n", name=f"c{n}", uid=ClaimUID(f"u{n}"), state=ClaimState.COMPLETED, devices=(device,))
        for n, device in enumerate([*shared, part])
    ]
    shown = values(text(of_prepared(NODE, claims)))
    node = f'node="node-1",driver="{DRIVER}"'
    assert shown == {
        f'portico_dra_prepared_devices{{{node},device_type="MIG"}}': 1,
        f'portico_dra_prepared_devices{{{node},device_type="Physical"}}': 2,
        f"portico_dra_mps_daemons{{{node}}}": 1,
    }


def test_what_is_published_and_tainted() -> None:
    xid, unclean = (DeviceTaint(key=f"{DRIVER}/{key}", effect="NoSchedule") for key in ("xid", "unclean"))
    twice = Device(name="b", taints=(xid, DeviceTaint(key=xid.key, effect="NoExecute"), unclean))
    slices = [
        SliceContent(index=0, devices=(Device(name="a"), twice)),
        SliceContent(index=1, devices=(Device(name="c", taints=(xid,)),)),
    ]
    node = f'node="node-1",driver="{DRIVER}"'
    assert values(text(of_published(NODE, slices))) == {
        f"portico_dra_published_slices{{{node}}}": 2,
        f"portico_dra_published_devices{{{node}}}": 3,
        f'portico_dra_tainted_devices{{{node},key="{DRIVER}/unclean"}}': 1,
        f'portico_dra_tainted_devices{{{node},key="{DRIVER}/xid"}}': 2,
    }

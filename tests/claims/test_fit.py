"""The fit panel over a node with two H100: one sentence for each outcome, the steps, and proposals that do fit."""

from __future__ import annotations

import json
import re
from html import unescape
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest
from django.test import Client

from claims.services.fit import Change
from claims.views import fitwords
from claims.views.fitwords import Asked
from dra.advice.explanation import Code, Facts, Miss, Step, StepKind, WarningCode
from gpuinventory.selectors import held
from tests.claims.rows import KEY, QUERY, device_class, put
from tests.gpuinventory.fleet import claim, device, node_object, slices_of

pytestmark = pytest.mark.usefixtures("fleet")
MODEL = 'device.attributes["a.example"].model'
FLOOR = 'device.capacity["gpu.portico.dev"].memory.compareTo(quantity("40Gi")) >= 0'


def panel(client: Client, more: str = "") -> str:
    """The panel's HTML for the usual wish and what is added to its address."""
    html = client.get(f"/request/?{QUERY}{more}&form={KEY}").content.decode()
    found = re.search(r'<section class="card fit".*?</section>', html, re.DOTALL)
    return found[0] if found else ""


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def proposed(html: str) -> list[dict[str, str]]:
    """What each proposal's address asks for."""
    links = re.findall(r'<a href="(/request/\?[^"]+)"', html)
    return [{key: each[0] for key, each in parse_qs(urlsplit(unescape(link)).query).items()} for link in links]


def hold(*cards: int, pods: bool = True) -> None:
    """These cards are held by another team."""
    names = [(f"held-{card}", device("node-1", f"gpu-{card}")) for card in cards]
    put("ResourceClaim", *(claim("inference-team", name, [each], pods=["p"] if pods else []) for name, each in names))


def test_a_wish_that_fits_says_where_and_how_often(as_alice: Client) -> None:
    assert "Fits now on 1 node, 2 times in all. Best: node-1." in words(panel(as_alice))


def test_a_pod_that_would_wait_for_its_device_to_be_made_ready_is_told_so(as_alice: Client) -> None:
    late = "A device is made ready there first, such as by a reset of its card; the pod waits until it is."
    assert late not in words(panel(as_alice))
    slices = [json.loads(body) for body in slices_of("node-1", cards=2, version=2)]
    for device_ in (each for slice_ in slices for each in slice_["spec"].get("devices", ())):
        device_ |= {"bindsToNode": True, "bindingConditions": ["x/ready"], "bindingFailureConditions": ["x/failed"]}
    put("ResourceSlice", *(json.dumps(each).encode() for each in slices))
    assert f"Fits now on 1 node, 2 times in all. Best: node-1. {late}" in words(panel(as_alice))


def test_each_step_says_how_many_devices_are_left(as_alice: Client) -> None:
    """Two cards and the 50 slices that MIG could make of them, of which the class takes the cards."""
    said = words(panel(as_alice))
    assert "52 devices seen → 2" in said
    assert "The class physical-gpu takes it 50 of them:" in said


def test_devices_in_use_make_a_wish_wait_and_one_fewer_is_proposed(as_alice: Client) -> None:
    hold(0)
    html = panel(as_alice, "&count=2")
    assert "Will wait: 1 of 2 matching devices are free, and no claim is ahead." in words(html)
    assert "the most that one node has free now is 1" in words(html)
    assert [each["count"] for each in proposed(html)] == ["1"]


def test_no_name_of_who_holds_a_device_is_told(as_alice: Client) -> None:
    hold(0, 1)
    said = words(panel(as_alice))
    assert "0 of 2 matching devices are free" in said
    assert "2 of them: is in use" in said
    assert "inference-team" not in said
    assert "held-0" not in said


def test_claims_that_wait_are_counted_and_those_without_a_pod_are_not(as_alice: Client) -> None:
    hold(0, 1)
    owner = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]
    waiting = claim("inference-team", "waiting", ownerReferences=owner)
    put("ResourceClaim", waiting, claim("inference-team", "without-pod"))
    assert "and 1 claim is ahead" in words(panel(as_alice))


def test_more_than_any_node_has_never_fits(as_alice: Client) -> None:
    html = panel(as_alice, "&count=3")
    assert (
        "Cannot fit, even with nothing in use: no node has 3 of these. The largest number on one node is 2."
        in words(html)
    )
    assert [each["count"] for each in proposed(html)] == ["2"]


def test_memory_that_no_device_has_names_the_closest_and_less_is_proposed(as_alice: Client) -> None:
    """An H100 of 80 GB has 81559 MiB, which are 79 whole GiB."""
    html = panel(as_alice, "&memory=100Gi")
    assert "“It has at least 100 GiB of memory” leaves no device." in words(html)
    assert "Closest: gpu-0 of node-1 (has 79.6 GiB of memory, asked 100 GiB)." in words(html)
    assert "At least 79Gi instead of 100Gi: fits on 1 node" in words(html)
    assert [each["memory"] for each in proposed(html)] == ["79Gi"]


def test_a_share_is_proposed_that_a_shared_card_has_left(as_alice: Client) -> None:
    hold(1)
    put("ResourceClaim", claim("inference-team", "most", [device("node-1", "gpu-0", percent=70)], pods=["p"]))
    html = panel(as_alice, "&share=50")
    assert [each["share"] for each in proposed(html)] == ["30"]


def test_what_is_proposed_fits_when_followed_and_keeps_everything_else(as_alice: Client) -> None:
    hold(0)
    html = panel(as_alice, "&count=2&memory=40Gi&theme=mine&theme=dark")
    (link,) = re.findall(r'<a href="(/request/\?[^"]+)"', html)
    followed = as_alice.get(unescape(link))
    assert "Fits now on 1 node, once." in words(followed.content.decode())
    query = parse_qs(urlsplit(unescape(link)).query)
    assert query["theme"] == ["mine", "dark"]
    assert query["memory"] == ["40Gi"]
    assert query["form"] == [KEY]


def test_another_class_of_the_same_driver_is_proposed(as_alice: Client) -> None:
    slices = 'device.driver == "gpu.portico.dev" && device.attributes["gpu.portico.dev"].deviceType == "Nothing"'
    put("DeviceClass", device_class("h200", slices))
    html = panel(as_alice, "&class=h200")
    assert "“The class h200 takes it” leaves no device." in words(html)
    assert {each["class"] for each in proposed(html)} == {"physical-gpu", "h100-shared"}


def test_an_incomplete_pool_beside_one_that_fits_only_lowers_the_numbers(as_alice: Client) -> None:
    put("Node", node_object("node-2"))
    put("ResourceSlice", *slices_of("node-2", cards=1)[:1])
    said = words(panel(as_alice))
    assert "Fits now on 1 node" in said
    assert "Numbers may be low: pool gpu.portico.dev/node-2" in said


def test_a_closed_node_keeps_pods_off_free_devices(as_alice: Client) -> None:
    put("Node", node_object("node-1", unschedulable=True, version=2))
    assert "Devices are free, but 1 node with free devices is cordoned." in words(panel(as_alice))


def test_a_condition_that_fails_on_a_device_is_said_to_end_the_search(as_alice: Client) -> None:
    condition = quote_plus('device.attributes["gpu.portico.dev"].nothing == "x"')
    said = words(panel(as_alice, f"&cel.1={condition}"))
    assert (
        "Kubernetes would place such a pod nowhere: your condition 1 fails on NVIDIA H100 80GB HBM3, Physical, "
        '79.6 GiB, such as gpu-0 of node-1: “device.attributes["gpu.portico.dev"].nothing == "x"”, '
        "no such key: nothing. Guard the key with has(). The scheduler says: claim ml-team/trainer: "
        "selector #0 on device "
    ) in said


def test_an_object_that_cannot_be_read_does_not_hide_the_others(as_alice: Client) -> None:
    """A slice with an amount that is no quantity stays out of the fleet in memory, and is named there."""
    slices = [json.loads(body) for body in slices_of("node-3")]
    (broken,) = [each for each in slices if each["spec"].get("devices")]
    broken["spec"]["devices"][0]["capacity"] = {"memory": {"value": "lots"}}
    put("Node", node_object("node-3"))
    put("ResourceSlice", json.dumps(broken).encode())
    assert "Fits now on 1 node" in words(panel(as_alice))
    (problem,) = held.current().problems
    assert broken["metadata"]["name"] in problem


def test_there_is_no_panel_without_a_wish(as_alice: Client) -> None:
    assert panel(as_alice, "&count=0") == ""


def test_the_panel_says_what_it_was_computed_from(as_alice: Client) -> None:
    said = words(panel(as_alice))
    assert re.search(r"Computed at revision \d+, the cluster as of", said)


def test_a_change_of_the_fleet_is_seen_at_once(as_alice: Client) -> None:
    assert "2 times in all" in words(panel(as_alice))
    hold(0)
    assert "Fits now on 1 node, once." in words(panel(as_alice))


@pytest.mark.parametrize("code", list(Code))
def test_every_reason_has_words(code: Code) -> None:
    assert code in fitwords.MISSES
    assert "{" not in fitwords.miss_words(Miss(code=code))


def test_every_step_warning_and_change_has_words() -> None:
    assert set(fitwords.STEPS) == set(StepKind)
    assert set(fitwords.WARNINGS) == set(WarningCode)
    assert set(fitwords.CHANGES) == set(Change)


def test_a_long_foreign_text_is_cut() -> None:
    miss = Miss(code=Code.SELECTOR_FALSE, facts={"conjunct": "x" * 5_000})
    assert len(fitwords.miss_words(miss)) < 120


@pytest.mark.parametrize(
    ("condition", "seen", "said"),
    [
        ('device.driver == "a.example"', ['device.driver = "b.example"'], "its driver is b.example, asked a.example"),
        (FLOOR, ['device.capacity["gpu.portico.dev"].memory = 20Gi'], "has 20 GiB of memory, asked 40 GiB"),
        (FLOOR, ['device.capacity["gpu.portico.dev"].memory = absent'], "has no memory, asked 40Gi"),
        ("has(device.capacity[device.driver].memory)", [], "has no memory"),
        (f'{MODEL} == "A100"', [f'{MODEL} = "H100"'], "its model is H100, asked A100"),
        (f"{MODEL} > 80", [f"{MODEL} = 70"], "its model is 70, asked more than 80"),
        (
            'device.attributes["a.example"].?kind.orValue("") == "x \\"y\\""',
            ['device.attributes["a.example"].?kind = absent'],
            'has no kind, asked x "y"',
        ),
        ("device.allowMultipleAllocations", [], "“device.allowMultipleAllocations” is false"),
        (f'{MODEL} in ["a"]', [f'{MODEL} = "b"'], f'“{MODEL} in ["a"]” is false ({MODEL} = "b")'),
    ],
)
def test_a_condition_that_did_not_hold_is_said_with_what_was_found(condition: str, seen: list[str], said: str) -> None:
    miss = Miss(code=Code.SELECTOR_FALSE, facts={"conjunct": condition, "values": tuple(seen)})
    assert fitwords.miss_words(miss) == said


def test_amounts_of_a_capacity_are_said_in_their_unit() -> None:
    share: Facts = {"capacity": "sharePercent", "needed": "50", "left": "30", "value": "100"}
    memory: Facts = {"capacity": "gpu.portico.dev/memory", "requested": "81559Mi"}
    assert (
        fitwords.miss_words(Miss(code=Code.CAPACITY_SHORT, facts=share))
        == "needs 50 % of sharePercent, 30 % left of 100 %"
    )
    said = fitwords.miss_words(Miss(code=Code.CAPACITY_ABSENT, facts=memory))
    assert said == "has no gpu.portico.dev/memory, asked for 79.6 GiB"


def test_a_condition_of_the_form_is_said_in_words_and_another_by_its_number() -> None:
    step = Step(kind=StepKind.SELECTOR, index=1, evaluated=True, left=1, fell=0, facts={"expression": FLOOR})
    assert fitwords.step_words(step, Asked(memory="40Gi")) == "It has at least 40 GiB of memory"
    assert fitwords.step_words(step, Asked(memory="80Gi", cel={"true": 1, FLOOR: 2})) == "Your condition 2 holds"
    assert fitwords.step_words(step, Asked(memory="80Gi")) == "It is of the GPU class"
    facts: Facts = {
        "expression": 'has(device.attributes[device.driver].p) &&\ndevice.attributes[device.driver].p == "1g.10gb"'
    }
    profile = Step(kind=StepKind.SELECTOR, evaluated=True, left=1, fell=0, facts=facts)
    assert fitwords.step_words(profile, Asked(profile="1g.10gb")) == "It is a slice 1g.10gb"


def cards(client: Client) -> dict[str, str]:
    """What each class card says of its room."""
    html = client.get(f"/request/?{QUERY}&form={KEY}").content.decode()
    found = re.findall(
        r'class="class-name">([^<]+)</span>\s*<span class="class-room[^"]*">(.*?)</span>', html, re.DOTALL
    )
    return {name: words(room).strip() for name, room in found}


def test_each_class_says_what_it_has_free_and_the_most_on_one_node(as_alice: Client) -> None:
    hold(0)
    put("DeviceClass", device_class("careless", 'device.attributes["gpu.portico.dev"].nothing == "x"'))
    said = cards(as_alice)
    assert said["physical-gpu"] == "1 of 2 free, at most 1 on one node"
    assert said["careless"].startswith("careless can't be served. Kubernetes would place no pod that asks for it: ")


def test_a_class_that_is_full_says_how_many_wait(as_alice: Client) -> None:
    hold(0, 1)
    owner = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]
    put("ResourceClaim", claim("inference-team", "waiting", ownerReferences=owner))
    assert cards(as_alice)["physical-gpu"] == "0 of 2 free, 1 waiting"

"""Whole, slice, share, time-sliced: what the published devices make possible, what enforces it, what it amounts to."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from tests.claims.desk import form_page, value_of, words
from tests.claims.pages import code_of
from tests.claims.rows import KEY, device_class, put, put_gpu_class
from tests.gpuinventory.fleet import claim, device, node_object

pytestmark = pytest.mark.usefixtures("fleet")
MIG = 'device.driver == "gpu.portico.dev" && device.attributes["gpu.portico.dev"].deviceType == "MIG"'
WHOLE_ONLY = "No device of this class publishes sharePercent."


def modes(html: str) -> dict[str, str]:
    """The words of each mode; those that can't be chosen begin with a dash, the chosen one with a plus."""
    found: dict[str, str] = {}
    for label in re.findall(r'<label class="kind[^"]*"><input type="radio" name="mode".*?</label>', html, re.DOTALL):
        (value,) = re.findall(r'value="([^"]+)"', label)
        radio = re.search(r"<input [^>]*>", label)
        assert radio
        mark = "- " if "disabled" in radio[0] else "+ " if "checked" in radio[0] else ""
        found[value] = mark + words(label)
    return found


def profiles(html: str) -> dict[str, str]:
    """What is said of each profile."""
    (select,) = re.findall(r'<select id="field-profile".*?</select>', html, re.DOTALL)
    return {value: unescape(text) for value, text in re.findall(r'<option value="([^"]*)"[^>]*>([^<]*)<', select)}


def amount(html: str) -> str:
    (found,) = re.findall(r'<p class="amount".*?</p>', html, re.DOTALL)
    return words(found)


def put_slice(driver: str, *devices: dict[str, Any]) -> None:
    """A node with these devices of another driver, and a class of all of that driver's."""
    metadata = {"name": f"{driver}-slice", "uid": f"uid-{driver}", "resourceVersion": "1"}
    pool = {"name": f"node-{driver}", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": f"node-{driver}", "pool": pool, "devices": list(devices)}
    put("Node", node_object(f"node-{driver}"))
    put("ResourceSlice", json.dumps({"kind": "ResourceSlice", "metadata": metadata, "spec": spec}).encode())
    put("DeviceClass", device_class(driver, f'device.driver == "{driver}"'))


def test_whole_cards_can_be_shared_and_hold_no_slices(as_alice: Client) -> None:
    said = modes(form_page(as_alice))

    assert said["whole"] == "+ Whole The device is for this pod alone."
    assert said["slice"].endswith("No device of this class is a slice of a card (MIG).")
    assert said["share"].startswith("Share A percentage of a device. MPS holds each process to its part")
    assert said["timesliced"].endswith("No device of this class publishes slots.")
    assert [value for value, text in said.items() if text.startswith("- ")] == ["slice", "timesliced"]


def test_a_class_of_slices_gives_any_of_them_or_one_by_its_profile(as_alice: Client) -> None:
    put("DeviceClass", device_class("slices", MIG))
    said = modes(form_page(as_alice, "&class=slices"))

    assert said["whole"].startswith("+ Any slice")
    assert said["slice"].startswith("Slice A MIG instance")


def test_a_mode_that_the_class_does_not_give_is_refused_in_an_address(as_alice: Client) -> None:
    said = words(form_page(as_alice, "&mode=slice&profile=1g.10gb", status=422))
    assert "physical-gpu has no slices. No device of this class is a slice of a card (MIG)." in said


@pytest.mark.parametrize(
    ("mode", "query", "said"),
    [
        ("whole", "&mode=share&share=50", "It is for whole devices only."),
        ("share", "&mode=slice&profile=1g.10gb", "It is for shares only."),
        ("slice", "&mode=share&share=50", "It is for slices only."),
    ],
)
def test_an_administrator_may_give_a_class_in_one_mode_only(as_alice: Client, mode: str, query: str, said: str) -> None:
    put_gpu_class("it", mode=mode, share={"min": 5, "max": 50, "step": 5, "default": 25})
    assert said in words(form_page(as_alice, f"&class=it{query}", status=422))


def test_an_address_without_a_mode_gets_the_one_of_the_class(as_alice: Client) -> None:
    put("DeviceClass", device_class("slices", MIG))
    put_gpu_class("parts", mode="slice", deviceClass={"name": "slices"})
    put_gpu_class("shares", mode="share", deviceClass={"name": "h100-shared"})
    address = f"/request/?ns=ml-team&name=trainer&form={KEY}"
    slice_ = words(as_alice.get(f"{address}&class=parts&memory=15Gi").content.decode())
    assert "Each pod gets 1 slice 1g.20gb of parts, with at least 15Gi" in slice_
    share = as_alice.get(f"{address}&class=shares").content.decode()
    assert "Each pod gets 50 % of one device of shares" in words(share)
    assert modes(share)["share"].startswith("+ ")
    clicked = words(as_alice.get(f"{address}&class=parts&mode=whole&share=50").content.decode())
    assert "Each pod gets 1 slice 1g.10gb of parts" in clicked


def test_all_of_a_device_is_a_share_of_it(as_alice: Client) -> None:
    put_gpu_class("shares", mode="share", deviceClass={"name": "h100-shared"})
    assert "1 whole device of shares" in words(form_page(as_alice, "&class=shares"))


def test_profiles_say_the_memory_that_they_really_have_and_how_many_can_be_had(as_alice: Client) -> None:
    """Two H100: seven 1g on each, one 7g. A held 4g leaves three compute slices of its card, and no 7g."""
    put("DeviceClass", device_class("slices", MIG))
    assert profiles(form_page(as_alice, "&class=slices&mode=slice"))["1g.10gb"] == "1g.10gb, 9.8 GiB, obtainable 14"
    put("ResourceClaim", claim("inference-team", "held", [device("node-1", "gpu-0-mig-4g40gb-0")], pods=["p"]))
    found = profiles(form_page(as_alice, "&class=slices&mode=slice"))
    assert found["1g.10gb"] == "1g.10gb, 9.8 GiB, obtainable 10"
    assert found["7g.80gb"] == "7g.80gb, 79.2 GiB, obtainable 1"
    put("ResourceClaim", claim("inference-team", "more", [device("node-1", "gpu-1")], pods=["p"]))
    assert profiles(form_page(as_alice, "&class=slices&mode=slice"))["7g.80gb"].endswith("offered, none left")


def test_the_smallest_slice_with_the_memory_is_chosen_and_stands_in_the_link(as_alice: Client) -> None:
    put("DeviceClass", device_class("slices", MIG))
    html = form_page(as_alice, "&class=slices&mode=slice&memory=15Gi")

    assert value_of(html, "profile") == "1g.20gb"
    assert profiles(html)["1g.10gb"].startswith("1g.10gb, 9.8 GiB, too small")
    assert "profile=1g.20gb" in unescape(html)
    assert 'migProfile == "1g.20gb"' in code_of(html)["text-template"]
    assert "Each pod gets 1 slice 1g.20gb of slices, with at least 15Gi" in words(html)


def test_a_profile_that_the_class_lacks_is_refused_with_those_it_has(as_alice: Client) -> None:
    put("DeviceClass", device_class("slices", MIG))
    html = form_page(as_alice, "&class=slices&mode=slice&profile=1g.5gb", status=422)
    assert "slices has no slices of the profile 1g.5gb. Its devices have 1g.10gb, 1g.10gb+me, 1g.20gb" in words(html)
    assert value_of(html, "profile") == "1g.5gb"


def test_without_published_devices_a_profile_is_typed_and_nothing_is_promised(as_alice: Client) -> None:
    put("DeviceClass", device_class("empty", 'device.driver == "nobody.example.com"'))
    html = form_page(as_alice, "&class=empty&mode=slice&profile=1g.5gb")
    assert "What can be had is unknown: no slice of this class is published." in words(html)


def test_a_share_says_what_is_scheduled_and_who_enforces_it(as_alice: Client) -> None:
    html = form_page(as_alice, "&share=50")
    assert "Scheduled: 50 % of 79.6 GiB = 39.8 GiB. Enforced by: MPS holds each process to its part" in words(html)
    assert amount(html) == "Each pod: 0.5 of a card, 39.8 GiB"


@pytest.mark.parametrize(
    ("more", "said"),
    [("", "1 whole card, 79.6 GiB"), ("&count=2", "2 whole cards, 159.2 GiB"),
     ("&count=2&memory=100Gi", "2 whole cards"),
     ("&share=25&memory=10Gi", "0.25 of a card, 10 GiB")],
)  # fmt: skip
def test_what_it_amounts_to(as_alice: Client, more: str, said: str) -> None:
    assert amount(form_page(as_alice, more)) == f"Each pod: {said}"


def test_a_share_is_rounded_up_as_the_devices_policy_says(as_alice: Client) -> None:
    policy = {"default": "100", "validValues": ["20", "60", "100"]}
    capacity = {"sharePercent": {"value": "100", "requestPolicy": policy}, "memory": {"value": "40Gi"}}
    put_slice("gpu.acme.io", {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": capacity})
    said = words(form_page(as_alice, "&class=gpu.acme.io&share=50"))
    assert "Scheduled: 50 %, rounded up to 60 % of 40 GiB = 24 GiB." in said


def test_slots_are_offered_where_devices_publish_them_and_nothing_isolates_memory(as_alice: Client) -> None:
    slots = {"value": "4", "requestPolicy": {"default": "1", "validRange": {"min": "1"}}}
    put_slice("gpu.acme.io", {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"slots": slots}})
    html = form_page(as_alice, "&class=gpu.acme.io&mode=timesliced&slots=2")
    assert modes(html)["timesliced"].startswith(
        "+ Time-sliced Pods take turns on the device; nothing keeps their memory"
    )
    assert 'slots: "2"' in code_of(html)["text-template"]
    assert amount(html) == "Each pod: 2 slots of a card"


def test_memory_is_offered_in_published_sizes_and_each_finds_the_device_it_stands_for(as_alice: Client) -> None:
    html = form_page(as_alice)
    assert '<option value="79Gi">devices with 79.6 GiB</option>' in html
    assert "Fits now on 1 node" in words(form_page(as_alice, "&memory=79Gi"))


def test_the_count_says_the_most_on_one_node(as_alice: Client) -> None:
    assert "1 to 32 for each pod, all on one node. At most 2 on one node now." in words(form_page(as_alice))
    put("ResourceClaim", claim("inference-team", "held", [device("node-1", "gpu-0"), device("node-1", "gpu-1")]))
    assert "all on one node. None is free now." in words(form_page(as_alice))

"""The cards of GPU classes: what each says, which can't be chosen and why, and what an address that names it reads."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from django.test import Client

from tests.claims.desk import form_page, words
from tests.claims.pages import code_of
from tests.claims.rows import CLASS_KEY, device_class, put, put_gpu_class, quota
from tests.gpuinventory.fleet import claim, device

pytestmark = pytest.mark.usefixtures("fleet")
MIG = 'device.driver == "gpu.portico.dev" && device.attributes["gpu.portico.dev"].deviceType == "MIG"'


def cards(html: str) -> dict[str, str]:
    """The words of each card by its class; those that can't be chosen begin with a dash."""
    found: dict[str, str] = {}
    for card in re.findall(r'<div class="class-card.*?</div>', html, re.DOTALL):
        (name,) = re.findall(r'name="class" value="([^"]+)"', card)
        radio = re.search(r"<input [^>]*>", card)
        found[name] = ("- " if radio and "disabled" in radio[0] else "") + words(card)
    return found


def faults(html: str) -> str:
    """What is said to be wrong with the class."""
    found = re.search(r'<p class="fault" id="error-class">(.*?)</p>', html, re.DOTALL)
    return words(found[1]) if found else ""


def test_a_card_says_title_model_memory_and_what_is_free(as_alice: Client) -> None:
    put("ResourceClaim", claim("inference-team", "held", [device("node-1", "gpu-0", percent=100)], pods=["p"]))
    put_gpu_class("training", title="H100 for training", pricePerHour="2.50")
    said = cards(form_page(as_alice, "&class=training"))

    assert said["training"] == (
        "H100 for training 1 of 2 free, at most 1 on one node training NVIDIA H100 80GB HBM3 79.6 GiB "
        "2.50 an hour for a whole device"
    )
    assert "physical-gpu" not in said  # an administrator has named its devices anew


def test_a_card_of_shares_counts_shares(as_alice: Client) -> None:
    put("ResourceClaim", claim("inference-team", "held", [device("node-1", "gpu-0", percent=100)], pods=["p"]))
    put_gpu_class("quarter", title="A quarter", mode="share", share={"default": 25})
    assert cards(form_page(as_alice, "&class=quarter"))["quarter"].startswith("A quarter 4 shares of 25 % free quarter")


def test_kinds_are_folded_under_their_device_class_and_chosen_by_name(as_alice: Client) -> None:
    put("DeviceClass", device_class("slices", MIG))
    html = form_page(as_alice, "&class=slices.nvidia-h100-80gb-hbm3-1g-10gb")

    assert "7 kinds of slices" in words(html)
    assert '<details class="class-kinds" id="kinds-slices" open>' in html
    template = yaml.safe_load(code_of(html)["text-template"])
    (asked,) = template["spec"]["spec"]["devices"]["requests"]
    assert asked["exactly"]["deviceClassName"] == "slices"
    assert '.?migProfile.orValue("") == "1g.10gb"' in asked["exactly"]["selectors"][0]["cel"]["expression"]


CLOSED: dict[str, tuple[dict[str, Any], str]] = {
    "foreign": ({"namespaces": ["inference-team"]}, "it can't be asked for in “ml-team”."),
    "paused": ({"state": "paused", "message": "Until Monday."}, "it is paused. An administrator says: “Until Monday.”"),
    "replaced": ({"state": "replaced", "replacedBy": "h100-shared"}, "h100-shared has taken its place."),
    "fault": ({"deviceClass": {"name": "gone"}}, "it can't be served. Kubernetes would place no pod"),
}


@pytest.mark.parametrize("state", CLOSED)
def test_a_class_that_is_closed_to_me_can_not_be_chosen_and_says_why(as_alice: Client, state: str) -> None:
    spec, said = CLOSED[state]
    put_gpu_class("it", **({"deviceClass": {"name": "physical-gpu"}} | spec))
    (card,) = [card for name, card in cards(form_page(as_alice, "&class=h100-shared")).items() if name == "it"]

    assert card.startswith("- ")
    assert said in card


@pytest.mark.parametrize("state", CLOSED)
def test_an_address_that_names_such_a_class_gets_the_sentence(as_alice: Client, state: str) -> None:
    spec, said = CLOSED[state]
    put_gpu_class("it", **({"deviceClass": {"name": "physical-gpu"}} | spec))
    html = form_page(as_alice, "&class=it", status=422)

    assert said in faults(html)
    assert not cards(html)["it"].startswith("- ")  # what was sent stays


def test_a_class_that_was_replaced_leads_to_the_other_with_all_else_kept(as_alice: Client) -> None:
    put_gpu_class("old", deviceClass={"name": "physical-gpu"}, state="replaced", replacedBy="h100-shared")
    html = form_page(as_alice, "&class=h100-shared&memory=40Gi")
    (link,) = re.findall(r'<a class="class-instead" href="/request/\?([^"]+)">', html)

    assert "class=h100-shared" in link
    assert "memory=40Gi" in link
    assert "class=old" not in link


@pytest.mark.parametrize(
    ("hard", "used", "said"),
    [("0", "0", "ResourceQuota gpu-quota of ml-team allows none."),
     ("2", "2", "ResourceQuota gpu-quota of ml-team has all its 2 in use.")],
)  # fmt: skip
def test_a_quota_without_room_closes_the_card(as_alice: Client, hard: str, used: str, said: str) -> None:
    put("ResourceQuota", quota({CLASS_KEY: hard}, {CLASS_KEY: used}))
    found = cards(form_page(as_alice, "&class=h100-shared"))

    assert found["physical-gpu"].startswith("- ")
    assert said in found["physical-gpu"]
    assert not found["h100-shared"].startswith("- ")


def test_a_quota_of_another_namespace_closes_nothing_and_is_not_told(as_alice: Client) -> None:
    put("ResourceQuota", quota({CLASS_KEY: "0"}, {}, namespace="inference-team"))
    found = cards(form_page(as_alice, "&class=h100-shared"))

    assert not any(card.startswith("- ") for card in found.values())
    secret = form_page(as_alice, "&ns=inference-team", status=422)
    assert "allows none" not in words(secret)


def test_bounds_of_a_class_are_said_at_their_fields(as_alice: Client) -> None:
    put_gpu_class("small", count={"min": 1, "max": 2, "default": 1}, memory={"min": "10Gi", "max": "40Gi"},
                  share={"min": 10, "max": 50, "step": 10, "default": 20})  # fmt: skip
    assert "One request takes 1 to 2 of them." in words(form_page(as_alice, "&class=small&count=3", status=422))
    assert "at least 10Gi and at most 40Gi" in words(form_page(as_alice, "&class=small&memory=60Gi", status=422))
    said = words(form_page(as_alice, "&class=small&share=25", status=422))
    assert "A share of it is 10 to 50 percent, in steps of 10." in said
    html = form_page(as_alice, "&class=small&share=20")
    assert 'max="2"' in html
    assert "10 to 50 in steps of 10." in words(html)

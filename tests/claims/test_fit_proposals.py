"""What would make a wish fit: each proposal changes one entry of the form, and fits when it is followed."""

from __future__ import annotations

import json
from itertools import count
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, quote_plus

import pytest
from django.test import Client

from claims.manifests import render
from claims.services.fit.claim import claim_of
from claims.services.fit.explained import explanation, suggestions
from claims.services.kept import Kept
from claims.wish import ClassFacts, read
from dra.fleet import Wish, fits
from gpuinventory.selectors import held
from tests.claims.rows import CEL, KEY, QUERY, device_class, put
from tests.claims.test_fit import hold, panel, proposed, words
from tests.gpuinventory.fleet import claim, device, slices_of

pytestmark = pytest.mark.usefixtures("fleet")
MIG = CEL.replace("Physical", "MIG")
PRODUCT = 'device.attributes["gpu.portico.dev"].productName'


def followed(client: Client, html: str, number: int = 0) -> tuple[dict[str, str], str]:
    """What the proposal's address asks for, and what its page says of the fit."""
    asked = proposed(html)[number]
    return asked, words(panel(client, "&" + "&".join(f"{key}={quote_plus(value)}" for key, value in asked.items())))


def added(asked: dict[str, str]) -> dict[str, str]:
    """What differs from the usual wish."""
    usual = {key: value[0] for key, value in parse_qs(QUERY).items()} | {"form": KEY}
    return {key: value for key, value in asked.items() if usual.get(key) != value}


def taint_cards(effect: str = "NoSchedule", version: int = 2) -> None:
    """Every device of node-1 is tainted by its driver."""
    slices: list[dict[str, Any]] = [json.loads(body) for body in slices_of("node-1", cards=2, version=version)]
    for each in slices:
        for published in each["spec"].get("devices", ()):
            published["taints"] = [{"key": "gpu.portico.dev/xid", "value": "48", "effect": effect}]
    put("ResourceSlice", *(json.dumps(each).encode() for each in slices))


def test_what_only_waits_keeps_its_place_before_an_alternative(as_alice: Client) -> None:
    """Two of the one free card can't be had, but two slices of it can."""
    hold(0)
    put("DeviceClass", device_class("slices", MIG))
    html = panel(as_alice, "&count=2&memory=5Gi")
    assert "slices as an alternative: fits on 1 node" in words(html)
    fewer, other = proposed(html)
    assert added(fewer) == {"memory": "5Gi"}
    alternative = {"alt.1.class": "slices", "alt.1.count": "2", "alt.1.share": "100", "alt.1.memory": "5Gi"}
    assert added(other) == {"count": "2", "memory": "5Gi"} | alternative
    assert "Best: node-1, with alternative 1 (slices)." in followed(as_alice, html, 1)[1]


def test_an_extended_resource_can_have_no_alternative_so_its_class_is_changed(as_alice: Client) -> None:
    hold(0)
    put("DeviceClass", device_class("slices", MIG))
    html = panel(as_alice, "&count=2&style=extended")
    assert [added(each).get("class") for each in proposed(html)] == [None, "slices"]


def test_a_literal_of_a_condition_is_changed_to_what_is_published(as_alice: Client) -> None:
    asked, said = followed(as_alice, panel(as_alice, f"&cel.3={quote_plus(PRODUCT + ' == "NVIDIA A100"')}"))
    assert added(asked) == {"cel.3": f'{PRODUCT} == "NVIDIA H100 80GB HBM3"'}
    assert "Fits now" in said


def test_a_smaller_slice_is_proposed_where_the_profile_is_full(as_alice: Client) -> None:
    hold(0)
    put("ResourceClaim", claim("inference-team", "small", [device("node-1", "gpu-1-mig-1g10gb-0")], pods=["p"]))
    put("DeviceClass", device_class("slices", MIG))
    html = panel(as_alice, "&class=slices&mode=slice&profile=7g.80gb")
    assert "Slice 3g.40gb instead of 7g.80gb: fits on 1 node" in words(html)
    assert "“It is a slice 7g.80gb”" not in words(html)
    assert "It is a slice 7g.80gb" in words(html)
    assert "Fits now" in followed(as_alice, html)[1]


def test_a_constraint_that_nothing_fulfils_is_left_out(as_alice: Client) -> None:
    constraint = "&constraint.2.kind=distinctAttribute&constraint.2.attribute=gpu.portico.dev/productName"
    html = panel(as_alice, f"&count=2{constraint}")
    assert "Without the constraint on gpu.portico.dev/productName: fits on 1 node" in words(html)
    asked = next(each for each in proposed(html) if "constraint.2.attribute" not in each)
    assert added(asked) == {"count": "2"}


def test_the_alternative_that_has_to_change_is_named(as_alice: Client) -> None:
    """Neither three of the one nor three of the other fit; the second of the form's rows is empty."""
    html = panel(as_alice, "&count=3&alt.1.class=&alt.2.class=h100-shared&alt.2.count=3")
    said = words(html)
    assert "for the first choice (physical-gpu) no node has 3 of these." in said
    assert "The first choice (physical-gpu): 52 devices seen" in said
    assert "Alternative 2 (h100-shared): 52 devices seen" in said
    assert "2 instead of 3: fits on 1 node" in said
    assert "Alternative 2: 2 instead of 3: fits on 1 node" in said
    assert [added(each).get("alt.2.count") for each in proposed(html)][:2] == ["3", "2"]


def test_a_taint_is_tolerated_last_and_only_where_no_pod_is_ended(as_alice: Client) -> None:
    taint_cards()
    asked, said = followed(as_alice, panel(as_alice))
    assert added(asked) == {
        "toleration.1.key": "gpu.portico.dev/xid",
        "toleration.1.operator": "Equal",
        "toleration.1.value": "48",
        "toleration.1.effect": "NoSchedule",
    }
    assert "Fits now on 1 node" in said
    taint_cards("NoExecute", version=3)
    assert proposed(panel(as_alice)) == []


def test_an_unchanged_wish_is_explained_once(db: None) -> None:
    wish = read(f"{QUERY}&count=3").wish
    assert wish is not None
    facts = ClassFacts(name="physical-gpu", driver="gpu.portico.dev")
    one, other = (claim_of(render(wish, facts, key)) for key in (KEY, "another1"))
    snapshot = held.current().snapshot
    answer = fits(snapshot, Wish(resource_claims=(one,)))
    before = explanation(snapshot, one, answer)
    assert explanation(snapshot, other, answer) is before
    assert suggestions(snapshot, one, answer) is suggestions(snapshot, other, answer)
    hold(0)
    assert explanation(held.current().snapshot, one, answer) is not before


def test_answers_are_kept_for_one_fleet_and_the_oldest_are_let_go(db: None) -> None:
    number = count(1)
    kept = Kept[int](2)

    def ask(name: str) -> int:
        return kept.answer(held.current().snapshot, name, lambda: next(number))

    assert [ask(name) for name in ("a", "b", "a", "c", "a", "b")] == [1, 2, 1, 3, 1, 4]
    hold(0)
    assert ask("a") == 5


def test_two_threads_that_ask_at_once_get_the_same(db: None) -> None:
    snapshot, kept, got = held.current().snapshot, Kept[str](2), []
    threads = [Thread(target=lambda: got.append(kept.answer(snapshot, "a", lambda: "x"))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert got == ["x"] * 4


def test_a_condition_is_named_by_its_number_on_the_form(as_alice: Client) -> None:
    assert "Your condition 3 holds" in words(panel(as_alice, "&cel.3=true"))

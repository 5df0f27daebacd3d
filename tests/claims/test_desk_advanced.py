"""Conditions, constraints, tolerations and plans on the form: what is shown of the fleet, what is warned of."""

from __future__ import annotations

import json
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import quote_plus

import pytest
from django.test import Client
from django.utils import timezone

from claims.models import GpuRequest
from claims.services.conditions import condition
from gpuinventory.selectors import held
from gpuinventory.selectors.priorities import priority_classes
from tests.claims.desk import form_page, is_open, linked, part, value_of, words
from tests.claims.rows import KEY, QUERY, device_class, put
from tests.gpuinventory.fleet import claim, device, node_object, slices_of

pytestmark = pytest.mark.usefixtures("fleet")
ATTRIBUTES = 'device.attributes["gpu.portico.dev"]'
PRODUCT = f'{ATTRIBUTES}.productName == "NVIDIA H100 80GB HBM3"'
PROFILE = f'{ATTRIBUTES}.migProfile == "1g.10gb"'


def shown(client: Client, name: str, more: str = "", *, status: int = 200) -> str:
    return part(form_page(client, more, status=status), name)


def condition_query(*texts: str) -> str:
    return "".join(f"&cel.{number}={quote_plus(text)}" for number, text in enumerate(texts, 1))


def tainted(effect: str, *, version: int = 2, value: str = "48") -> None:
    """Both cards of node-1 and all their slices are tainted by the driver."""
    slices: list[dict[str, Any]] = [json.loads(body) for body in slices_of("node-1", cards=2, version=version)]
    for each in slices:
        for published in each["spec"].get("devices", ()):
            published["taints"] = [{"key": "gpu.portico.dev/xid", "value": value, "effect": effect}]
    put("ResourceSlice", *(json.dumps(each).encode() for each in slices))


@pytest.mark.parametrize("name", ["conditions", "constraints", "tolerations", "plans"])
def test_nothing_given_is_folded(as_alice: Client, name: str) -> None:
    assert not is_open(shown(as_alice, name))


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("conditions", "&cel.1=true"),
        ("constraints", "&constraint.1.attribute=gpu.portico.dev/productName"),
        ("tolerations", "&toleration.1.key=a.example/b"),
        ("plans", "&hours=8"),
    ],
)
def test_what_is_given_is_unfolded(as_alice: Client, name: str, more: str) -> None:
    assert is_open(shown(as_alice, name, more))


@pytest.mark.parametrize(
    ("name", "more", "key", "said"),
    [
        ("conditions", "&cel.2=1", "cel.2", "The compiler says"),
        ("conditions", f"&cel.1={'x' * 11_000}", "cel.1", "Kubernetes takes at most 10240 bytes."),
        ("constraints", "&constraint.1.attribute=numa", "constraint.1.attribute", "“numa” can't be used."),
        (
            "constraints",
            "&constraint.3.attribute=a.b/c&constraint.3.kind=x",
            "constraint.3.kind",
            "“x” can't be chosen.",
        ),
        ("tolerations", "&toleration.1.effect=Never", "toleration.1.effect", "“Never” can't be chosen."),
        ("tolerations", "&toleration.2.operator=Equal", "toleration.2.key", "may lack only with the operator Exists"),
        (
            "tolerations",
            "&toleration.1.key=a&toleration.1.effect=NoExecute&toleration.1.seconds=-1",
            "toleration.1.seconds",
            "It is a whole number from 0",
        ),
        ("plans", "&priority=High+Priority", "priority", "“High Priority” can't be used."),
        ("plans", "&hours=0", "hours", "“0” is out of bounds."),
        ("plans", "&until=tomorrow", "until", "“tomorrow” is no day."),
        ("plans", "&interval=Short", "interval", "Only a device that is shared in time has time slices."),
    ],
)
def test_what_is_wrong_unfolds_its_part_and_is_linked_from_the_summary(
    as_alice: Client, name: str, more: str, key: str, said: str
) -> None:
    page = form_page(as_alice, more, status=422)
    html = part(page, name)
    assert is_open(html)
    assert said in words(html)
    assert f'<a href="#field-{key}">' in page
    assert f'id="field-{key}"' in html
    assert f'aria-describedby="error-{key}"' in html or f"error-{key}" in html


def test_what_an_extended_resource_can_not_say_is_said_at_each_part(as_alice: Client) -> None:
    page = form_page(as_alice, "&style=extended&cel.1=true&constraint.1.attribute=a.b/c&toleration.1.key=a", status=422)
    for name in ("conditions", "constraints", "tolerations"):
        assert "can't be said by an extended resource" in words(part(page, name))
    for key in ("cel", "constraint", "toleration"):
        assert f'id="field-{key}"' in page


def test_a_condition_says_how_many_devices_of_the_class_match_and_which(as_alice: Client) -> None:
    said = words(shown(as_alice, "conditions", condition_query(PRODUCT)))
    assert "Matches 2 of 2 devices of the class now." in said
    assert (
        "2 \N{MULTIPLICATION SIGN} NVIDIA H100 80GB HBM3, Physical, 79.6 GiB, such as gpu.portico.dev/node-1/gpu-0"
        in said
    )
    other = "&class=anything" + condition_query(PROFILE.replace(".mig", ".?mig").replace(" ==", '.orValue("") =='))
    said = words(shown(as_alice, "conditions", other))
    assert "Matches 14 of 52 devices of the class now." in said
    assert "14 \N{MULTIPLICATION SIGN} NVIDIA H100 80GB HBM3, 1g.10gb, MIG, 9.7 GiB, such as gpu.portico.dev" in said


def test_of_many_kinds_five_are_shown(as_alice: Client) -> None:
    html = shown(as_alice, "conditions", f"&class=anything{condition_query('true')}")
    assert html.count(" \N{MULTIPLICATION SIGN} ") == 5
    assert "and 3 more kinds" in words(html)


def test_each_condition_is_answered_by_itself(as_alice: Client) -> None:
    said = words(shown(as_alice, "conditions", condition_query(PRODUCT, "false")))
    assert "Matches 2 of 2" in said
    assert "Matches 0 of 2" in said


def test_where_it_fails_the_number_and_the_guard_are_said_and_followed(as_alice: Client) -> None:
    """A name that no device has: Kubernetes gives up pods over it."""
    html = shown(as_alice, "conditions", condition_query(f'{ATTRIBUTES}.nothing == "x"'))
    said = words(html)
    assert "It fails on 2 devices, such as gpu.portico.dev/node-1/gpu-0: no such key: nothing." in said
    assert "Kubernetes gives a pod up, on all nodes, when it looks at such a device." in said
    (guarded,) = linked(html, "Guard condition 1")
    assert guarded == {"cel.1": f'(has({ATTRIBUTES}.nothing) && {ATTRIBUTES}.nothing == "x")'}
    said = words(shown(as_alice, "conditions", condition_query(guarded["cel.1"])))
    assert "Matches 0 of 2" in said
    assert "fails" not in said


def test_a_class_that_fails_by_itself_is_not_blamed_on_the_condition(as_alice: Client) -> None:
    put("DeviceClass", device_class("careless", f'{ATTRIBUTES}.nothing == "x"'))
    html = form_page(as_alice, f"&class=careless{condition_query('true')}", status=422)
    assert "It fails on" not in words(part(html, "conditions"))


def test_a_text_that_is_no_condition_is_shown_with_the_place(as_alice: Client) -> None:
    html = shown(as_alice, "conditions", condition_query("true &&\n  device.nothing"), status=422)
    pointer = unescape(html.partition('in condition 1">')[2].partition("</pre>")[0])
    assert pointer == "  device.nothing\n        ^"
    assert "Matches" not in html


def test_a_condition_that_costs_too_much_says_the_number_and_the_bound(as_alice: Client) -> None:
    """Loops within loops: the API server estimates before it stores."""
    loop = f"{ATTRIBUTES}.all(a, {ATTRIBUTES}.all(b, {ATTRIBUTES}.all(c, {ATTRIBUTES}.all(d, a + b + c != d))))"
    said = words(shown(as_alice, "conditions", condition_query(loop), status=422))
    assert "1000000" in said.replace(",", "")


def test_what_names_single_devices_is_asked_of_each(as_alice: Client) -> None:
    uuid = f"has({ATTRIBUTES}.uuid) && {ATTRIBUTES}.uuid"
    snapshot = held.current().snapshot
    assert condition(f'{uuid} != "none"', None, snapshot).check.devices == 2
    assert condition(f'{uuid} == "none"', None, snapshot).check.devices == 0


def test_what_is_asked_once_is_not_asked_again(as_alice: Client) -> None:
    snapshot = held.current().snapshot
    assert condition("true", None, snapshot).check is condition("true", None, snapshot).check
    put("Node", node_object("node-2"))
    put("ResourceSlice", *slices_of("node-2", cards=1))
    assert condition("true", None, held.current().snapshot).of == 78


def test_attributes_of_the_class_are_offered_with_their_numbers(as_alice: Client) -> None:
    html = shown(as_alice, "constraints")
    assert '<option value="resource.kubernetes.io/pcieRoot">' in html
    assert '<option value="gpu.portico.dev/productName">1 value on 2 devices</option>' in html
    assert "uuid" not in html


def test_a_constraint_says_how_its_attribute_is_spread(as_alice: Client) -> None:
    more = "&count=2&constraint.1.attribute=gpu.portico.dev/productName&constraint.2.attribute=gpu.portico.dev/nothing"
    html = shown(as_alice, "constraints", more)
    assert "2 devices of the class have it, with one value." in words(html)
    assert "No device of the class has it, so that nothing would fit." in words(html)
    assert value_of(html, "constraint.1.kind") == ""
    assert value_of(html, "constraint.3.attribute") == ""
    assert linked(html, "Remove")[0] == {"count": "2", "constraint.2.attribute": "gpu.portico.dev/nothing"}


def test_a_constraint_on_one_device_is_said_to_mean_little(as_alice: Client) -> None:
    one = "&constraint.1.attribute=gpu.portico.dev/productName"
    assert "Each pod gets one device" in words(shown(as_alice, "constraints", one))
    assert "Each pod gets one device" not in words(shown(as_alice, "constraints", f"{one}&count=2"))


def test_taints_that_are_there_are_offered_until_they_are_tolerated(as_alice: Client) -> None:
    assert "No device is tainted now." in words(shown(as_alice, "tolerations"))
    tainted("NoSchedule")
    html = shown(as_alice, "tolerations")
    assert "gpu.portico.dev/xid=48:NoSchedule , 52 devices" in words(html)
    (added,) = linked(html, "Tolerate")
    assert added == {
        "toleration.1.key": "gpu.portico.dev/xid",
        "toleration.1.operator": "Equal",
        "toleration.1.value": "48",
        "toleration.1.effect": "NoSchedule",
    }
    html = shown(as_alice, "tolerations", "".join(f"&{key}={value}" for key, value in added.items()))
    assert linked(html, "Tolerate") == []
    assert "Accepts gpu.portico.dev/xid=48:NoSchedule." in words(html)
    assert "The pod may get devices that are kept back from new pods." in words(html)


def test_a_taint_of_an_administrators_rule_is_offered_and_one_that_keeps_nothing_back_is_not(as_alice: Client) -> None:
    for name, effect in (("drain", "NoExecute"), ("note", "None")):
        spec = {"deviceSelector": {"pool": "node-1"}, "taint": {"key": f"example.com/{name}", "effect": effect}}
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
        put("DeviceTaintRule", json.dumps({"kind": "DeviceTaintRule", "metadata": metadata, "spec": spec}).encode())
    said = words(shown(as_alice, "tolerations"))
    assert "example.com/drain:NoExecute , set by an administrator's rule" in said
    assert "example.com/note" not in said


@pytest.mark.parametrize(
    ("more", "warning"),
    [
        ("&toleration.1.operator=Exists", "It accepts every taint, also those to come"),
        ("&toleration.1.key=gpu.portico.dev/xid", "NoExecute: pods stay until they end by themselves on devices"),
        (
            "&toleration.1.key=gpu.portico.dev/xid&toleration.1.effect=NoExecute&toleration.1.seconds=300",
            "NoExecute: pods stay for 300 s on devices that are to be emptied",
        ),
    ],
)
def test_what_is_accepted_with_a_toleration_is_warned_of(as_alice: Client, more: str, warning: str) -> None:
    tainted("NoExecute")
    assert warning in words(shown(as_alice, "tolerations", more))


def test_a_toleration_of_nothing_that_is_there_says_so(as_alice: Client) -> None:
    said = words(shown(as_alice, "tolerations", "&toleration.1.key=a.example/b"))
    assert "No taint that is there now is accepted by it." in said


def priority_class(name: str, value: int, *, default: bool = False) -> bytes:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    content = {"kind": "PriorityClass", "metadata": metadata, "value": value, "globalDefault": default}
    return json.dumps(content).encode()


def test_priority_classes_of_the_cluster_are_offered_the_highest_first(as_alice: Client) -> None:
    assert value_of(shown(as_alice, "plans", "&priority=any-name"), "priority") == "any-name"
    put(
        "PriorityClass",
        priority_class("batch", -5),
        priority_class("serving", 1000, default=True),
        priority_class("system-node-critical", 2_000_001_000),
    )
    html = shown(as_alice, "plans", "&priority=batch")
    assert [each.name for each in priority_classes(held.current().revision)] == ["serving", "batch"]
    assert "As the cluster says (serving) serving (1,000) batch (-5)" in words(html)
    assert value_of(html, "priority") == "batch"
    assert "system-" not in html
    html = shown(as_alice, "plans", "&priority=any-name")
    assert "The cluster has no PriorityClass of that name, so it will refuse the pod." in words(html)
    assert value_of(html, "priority") == "any-name"


def test_a_time_slice_is_asked_only_of_what_is_shared_in_time(as_alice: Client) -> None:
    assert value_of(shown(as_alice, "plans"), "interval") is None


def test_a_day_in_the_past_is_refused_and_today_is_not(as_alice: Client) -> None:
    today = timezone.localdate()
    html = shown(as_alice, "plans", f"&until={today - timedelta(days=1)}", status=422)
    assert f"It is {today} today." in words(html)
    assert value_of(shown(as_alice, "plans", f"&until={today}"), "until") == str(today)
    assert not GpuRequest.objects.exists()


def test_admin_access_is_not_spoken_of(as_alice: Client) -> None:
    assert "admin" not in words(shown(as_alice, "constraints")).lower()
    assert "adminAccess" not in form_page(as_alice)


def test_what_is_allocated_changes_no_answer_about_what_is_published(as_alice: Client) -> None:
    before = condition("true", None, held.current().snapshot).check
    put("ResourceClaim", claim("inference-team", "held", [device("node-1", "gpu-0")], pods=["p"]))
    assert condition("true", None, held.current().snapshot).check is before


def test_a_way_of_sharing_is_offered_only_where_the_driver_takes_it(as_alice: Client) -> None:
    assert value_of(form_page(as_alice), "strategy") == ""
    put("DeviceClass", device_class("amd", 'device.driver == "gpu.amd.com"'))
    assert value_of(form_page(as_alice, "&class=amd"), "strategy") is None
    refused = form_page(as_alice, "&class=amd&strategy=MPS", status=422)
    assert "Their driver gpu.amd.com takes no GpuConfig" in words(refused)
    assert 'id="field-strategy"' in refused


def test_empty_rows_do_not_fill_the_address(as_alice: Client) -> None:
    """A form sends them all; neither links nor the address that htmx writes repeat them."""
    empty = "&alt.1.class=&cel.1=&constraint.1.attribute=&toleration.1.key=&toleration.1.effect=&cel.2=true"
    part_only = {"HX-Request": "true", "HX-Request-Type": "partial"}
    answer = as_alice.get(f"/request/?{QUERY}{empty}&form={KEY}", headers=part_only)
    assert answer["HX-Replace-Url"] == f"/request/?{QUERY}&cel.2=true&form={KEY}"
    html = as_alice.get(f"/request/?{QUERY}{empty}&form={KEY}").content.decode()
    assert "toleration.1.key=&amp;" not in html

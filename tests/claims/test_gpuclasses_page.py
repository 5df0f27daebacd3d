"""The catalogue and the page of a class: what a person reads, and what a person does not learn."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.test import Client

from gpuinventory.models import ClusterObject
from gpuinventory.selectors import held
from tests.claims.rows import CEL, device_class, put
from tests.cluster.gpuclasses import generated, gpu_class
from tests.gpuinventory.fleet import claim, device

pytestmark = pytest.mark.usefixtures("fleet")
PAGE = "/gpu-classes/"


def put_class(name: str, **spec: Any) -> None:
    """A GPUClass is in the read model."""
    body = gpu_class(name, **spec)
    body["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
    put("GPUClass", json.dumps(body).encode())


def read(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(unescape(answer.content.decode()).split())


def test_every_class_is_listed_with_what_is_free(as_alice: Client) -> None:
    put("ResourceClaim", claim("inference-team", "held", [device("node-1", "gpu-0", percent=100)], pods=["p"]))
    page = read(as_alice, PAGE)

    assert "physical-gpu" in page
    assert '1<span class="sub">of 2 published</span>' in page
    assert "NVIDIA H100 80GB HBM3, 3g.40gb" in page
    assert "inference-team" not in page


def test_the_catalogue_asks_few_questions_whatever_the_number_of_classes(
    as_alice: Client, django_assert_num_queries: Callable[..., Any]
) -> None:
    read(as_alice, PAGE)
    with django_assert_num_queries(10):
        as_alice.get(PAGE)
    put("DeviceClass", *(device_class(f"more-{number}") for number in range(20)))
    read(as_alice, PAGE)
    with django_assert_num_queries(10):
        as_alice.get(PAGE)


def test_an_unchanged_catalogue_answers_a_poll_with_nothing(as_alice: Client) -> None:
    shown = as_alice.get(PAGE).context["shown_version"]
    answer = as_alice.get(PAGE, {"since": shown}, headers={"HX-Request": "true"})

    assert answer.status_code == 204


def test_a_class_of_an_administrator_says_what_it_offers(as_alice: Client) -> None:
    put_class(
        "training",
        title="H100 for training",
        description="Whole cards.\n\nFor long runs.",
        deviceClass={"name": "physical-gpu"},
        mode="whole",
        count={"min": 1, "max": 8, "default": 2},
        memory={"min": "40Gi", "max": "80Gi", "default": "60Gi"},
        pricePerHour="2.50",
    )
    page = read(as_alice, f"{PAGE}training/")

    for text in ("H100 for training", "<p>For long runs.</p>", "1 to 8", "from 40Gi to 80Gi", "2.50", "2 free of 2"):
        assert text in page
    assert "/request/?class=training&count=2&memory=60Gi" in page


def test_a_class_with_configuration_of_its_own_is_shown(as_alice: Client) -> None:
    config = [{"opaque": {"driver": "gpu.portico.dev", "parameters": {"sharing": {"strategy": "MPS"}}}}]
    put("DeviceClass", device_class("it"))
    put_class("it", title="With MPS", deviceClass=generated(CEL, config=config))

    assert "2 free of 2" in read(as_alice, f"{PAGE}it/")


def test_a_derived_class_leads_to_its_form(as_alice: Client) -> None:
    page = as_alice.get(f"{PAGE}h100-shared.nvidia-h100-80gb-hbm3-3g-40gb/")

    assert page.status_code == 404  # that DeviceClass takes whole cards only
    page = as_alice.get(f"{PAGE}anything.nvidia-h100-80gb-hbm3-3g-40gb/")
    assert page.context["shown"].link == "?class=anything.nvidia-h100-80gb-hbm3-3g-40gb&count=1"


# What a class says, and the words of its state and of its reason.
STATES: dict[str, tuple[dict[str, Any], str, str]] = {
    "paused": ({"state": "paused", "message": "Until Monday."}, "Paused", "Until Monday."),
    "replaced": ({"state": "replaced", "replacedBy": "h200"}, "Replaced", "Take h200 instead."),
    "missing": ({"deviceClass": {"name": "gone"}}, "Can't be served", "There is no DeviceClass gone."),
    "not made yet": (
        {"deviceClass": generated(), "namespaces": ["secret-team"]}, "Can't be served", "There is no DeviceClass it."
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "word", "reason"), STATES.values(), ids=STATES)
def test_a_class_that_cannot_be_asked_for_says_why(
    as_alice: Client, spec: dict[str, Any], word: str, reason: str
) -> None:
    put_class("it", **({"deviceClass": {"name": "physical-gpu"}} | spec))
    page = read(as_alice, f"{PAGE}it/")

    assert word in page
    assert reason in page
    assert "Ask for it" not in page


def test_who_else_may_use_a_class_is_for_operators(as_alice: Client, as_olga: Client) -> None:
    put_class("it", deviceClass=generated(), namespaces=["secret-team"])
    put("DeviceClass", device_class("it"))
    page = read(as_alice, f"{PAGE}it/")

    assert "Not for your namespaces" in page
    assert "secret-team" not in page
    assert "secret-team" in read(as_olga, f"{PAGE}it/")


def test_texts_of_administrators_and_drivers_are_shown_as_text(as_alice: Client) -> None:
    put_class("it", title="<script>x</script>", description="<b>y</b>", deviceClass={"name": "physical-gpu"})
    page = as_alice.get(f"{PAGE}it/").content.decode()

    assert "<script>x" not in page
    assert "<b>y" not in page


def test_a_class_that_cannot_be_read_is_named_to_operators(as_alice: Client, as_olga: Client) -> None:
    body = gpu_class("bad", title=7)
    body["metadata"] |= {"uid": "uid-bad", "resourceVersion": "1"}
    put("GPUClass", json.dumps(body).encode())

    assert "GPUClass bad:" in read(as_olga, PAGE)
    assert "GPUClass bad:" not in read(as_alice, PAGE)


def test_without_a_device_class_the_page_says_what_to_do(as_alice: Client) -> None:
    ClusterObject.objects.filter(kind="DeviceClass").delete()
    held.forget()

    assert "No GPU class yet" in read(as_alice, PAGE)


def test_an_unknown_class_is_not_found(as_alice: Client) -> None:
    assert as_alice.get(f"{PAGE}nothing/").status_code == 404

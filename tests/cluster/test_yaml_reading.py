"""The API server reads our YAML as what we meant, whatever the strings: its reader is YAML 1.1, and only it can tell.

Nothing is stored: every POST is a dry run, whose answer says in JSON what was understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claims.manifests import Files, render
from claims.manifests.yaml import document
from claims.wish import ClassFacts, Strategy, Wish
from dra.quantity import parse_quantity
from tests.claims.yamltexts import NASTY
from tests.cluster.api import Api
from tests.cluster.cluster import Cluster

YAML = "application/yaml"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
# Values that a label can have (Kubernetes, "Labels and Selectors", Syntax).
LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
LABELS = [text for text in NASTY if LABEL.fullmatch(text)]


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Api]:
    with cluster.api() as connection:
        yield connection


def understood(
    api: Api, metadata: Mapping[str, Mapping[str, str]], data: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """What the API server made of a ConfigMap with these texts."""
    text = document(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "reading", **metadata}, "data": data}
    )
    answer = api.request("POST", f"{CONFIG_MAPS}?dryRun=All&fieldValidation=Strict", text.encode(), YAML).expect()
    return {key: answer["metadata"][key] for key in metadata} | {"data": answer.get("data", {})}


def test_texts_that_look_like_something_else_stay_texts(api: Api) -> None:
    texts = {f"example.com/t{number}": text for number, text in enumerate(NASTY)}
    data = {f"t{number}": text for number, text in enumerate(NASTY)}
    assert understood(api, {"annotations": texts}, data) == {"annotations": texts, "data": data}


def test_labels_stay_texts(api: Api) -> None:
    assert {"n", "y", "1e3", "0o7", "0x1F", "1_000"} <= set(LABELS)
    labels = {f"t{number}": text for number, text in enumerate(LABELS)}
    assert understood(api, {"labels": labels}, {}) == {"labels": labels, "data": {}}


@pytest.mark.parametrize("key", ["n", "y", "on", "1e3", "0x1F", "1_000", "null", "true", "12.30", "0o7"])
def test_keys_stay_texts(api: Api, key: str) -> None:
    assert understood(api, {"annotations": {key: "v"}}, {key: "v"}) == {"annotations": {key: "v"}, "data": {key: "v"}}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=40))
def test_any_text_is_read_back(api: Api, texts: list[str]) -> None:
    data = {f"t{number}": text for number, text in enumerate(texts)}
    assert understood(api, {}, data) == {"data": data}


def rendered(wish: Wish) -> Files:
    return render(
        wish, ClassFacts(name=wish.device_class, driver="gpu.portico.dev", extended_resource="x.io/gpu"), "1e3"
    )


@pytest.mark.parametrize("name", ["n", "y", "1e3", "0o7", "0x1f", "null", "true", "123", "a-b"])
def test_our_files_are_accepted_with_names_that_look_like_something_else(api: Api, name: str) -> None:
    wish = Wish(namespace="default", name=name, device_class=name, share=25, memory=parse_quantity("10Gi"))
    files = rendered(wish)
    template = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
    collections = {files.template: template, files.pod: "/api/v1/namespaces/default/pods"}
    collections[files.quota] = "/api/v1/namespaces/default/resourcequotas"
    for file, collection in collections.items():
        answer = api.request("POST", f"{collection}?dryRun=All&fieldValidation=Strict", file.content, YAML).expect()
        assert name in answer["metadata"]["name"]


@pytest.mark.parametrize("strategy", [None, Strategy.MPS])
def test_the_selector_compiles_and_every_field_is_kept(api: Api, strategy: Strategy | None) -> None:
    wish = Wish(
        namespace="default",
        name="whole",
        device_class="h100",
        memory=parse_quantity("40Gi"),
        count=8,
        strategy=strategy,
    )
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates?dryRun=All&fieldValidation=Strict"
    answer = api.request("POST", path, rendered(wish).template.content, YAML).expect()
    exactly = answer["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly == {
        "deviceClassName": "h100",
        "allocationMode": "ExactCount",
        "count": 8,
        "selectors": [
            {
                "cel": {
                    "expression": "has(device.capacity[device.driver].memory) &&\n"
                    'device.capacity[device.driver].memory.compareTo(quantity("40Gi")) >= 0'
                }
            }
        ],
    }
    assert ("config" in answer["spec"]["spec"]["devices"]) is (strategy is not None)

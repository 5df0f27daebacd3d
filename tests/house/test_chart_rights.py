"""What the chart's roles say, against the same written here by hand.

What they mean to an API server is in tests/cluster/test_chart_roles.py.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.cluster.chart import render
from tests.house.chart_values import ALL_ON, NAMESPACE, named

pytestmark = pytest.mark.programs

Rule = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]
ANY_NAME: tuple[str, ...] = ()

CATALOGUE = tuple(f"impersonate-on:user-info:{verb}" for verb in ("create", "delete", "get", "patch"))
WORKLOADS = ("create", "delete", "get", "list", "patch", "update", "watch")
# What the portal may create besides as a person where it may try workloads.
TRY: tuple[str, ...] = ("impersonate-on:user-info:create",)
TRIED: set[Rule] = {
    (("",), ("persistentvolumeclaims", "pods", "services"), TRY, ANY_NAME),
    (("apps",), ("deployments", "statefulsets"), TRY, ANY_NAME),
    (("batch",), ("jobs",), TRY, ANY_NAME),
    (("autoscaling",), ("horizontalpodautoscalers",), TRY, ANY_NAME),
}

# Each role of ALL_ON, written by hand: API groups, resources, verbs, resource names.
RULES: dict[str, set[Rule]] = {
    "gpus-portico-person": {
        (("authentication.k8s.io",), ("users",), ("impersonate:user-info",), ("oidc:alice", "oidc:bob@example.org")),
        (
            ("authentication.k8s.io",),
            ("groups",),
            ("impersonate:user-info",),
            ("oidc:ml-team", "oidc:operators", "oidc:search"),
        ),
    },
    "gpus-portico-as-person": {
        (
            ("resource.k8s.io",),
            ("resourceclaims", "resourceclaimtemplates"),
            (
                "impersonate-on:user-info:create",
                "impersonate-on:user-info:delete",
                "impersonate-on:user-info:get",
                "impersonate-on:user-info:list",
            ),
            ANY_NAME,
        ),
        (("",), ("pods",), ("impersonate-on:user-info:get", "impersonate-on:user-info:list"), ANY_NAME),
        *TRIED,
    },
    "gpus-portico-as-operator": {
        (("portico.dev",), ("gpuclasses",), CATALOGUE, ANY_NAME),
        (("resource.k8s.io",), ("deviceclasses",), CATALOGUE, ANY_NAME),
    },
    "gpus-portico-worker": {
        (
            ("resource.k8s.io",),
            ("deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
            ("get", "list", "watch"),
            ANY_NAME,
        ),
        (("",), ("events", "namespaces", "nodes", "pods", "resourcequotas"), ("get", "list", "watch"), ANY_NAME),
        (("scheduling.k8s.io",), ("priorityclasses",), ("get", "list", "watch"), ANY_NAME),
        (("portico.dev",), ("gpuclasses", "physicalgpus"), ("get", "list", "watch"), ANY_NAME),
        (("resource.k8s.io",), ("deviceclasses", "resourceslices"), ("create",), ANY_NAME),  # dry runs only, by policy
    },
    "portico-worker": {(("resource.k8s.io",), ("resourceclaimtemplates",), ("create",), ANY_NAME)},
    "gpus-portico-driver": {
        (("resource.k8s.io",), ("resourceclaims",), ("get", "list", "watch"), ANY_NAME),
        (("resource.k8s.io",), ("resourceclaims/status",), ("patch", "update"), ANY_NAME),
        (
            ("resource.k8s.io",),
            ("resourceclaims/driver",),
            ("associated-node:patch", "associated-node:update"),
            ("gpu.deckhouse.io",),
        ),
        (
            ("resource.k8s.io",),
            ("resourceslices",),
            ("create", "delete", "get", "list", "patch", "update", "watch"),
            ANY_NAME,
        ),
        (("portico.dev",), ("physicalgpus",), ("create", "delete", "get", "list", "patch"), ANY_NAME),
        (("portico.dev",), ("physicalgpus/status",), ("patch",), ANY_NAME),
        (("resource.k8s.io",), ("deviceclasses",), ("list",), ANY_NAME),
        (("",), ("nodes",), ("get",), ANY_NAME),
    },
    "gpus-portico-team": {
        (
            ("resource.k8s.io",),
            ("resourceclaims", "resourceclaimtemplates"),
            ("create", "delete", "get", "list", "watch"),
            ANY_NAME,
        ),
        (("",), ("pods",), ("create", "delete", "get", "list", "watch"), ANY_NAME),
        (("",), ("persistentvolumeclaims", "services"), WORKLOADS, ANY_NAME),
        (("apps",), ("deployments", "statefulsets"), WORKLOADS, ANY_NAME),
        (("batch",), ("jobs",), WORKLOADS, ANY_NAME),
        (("autoscaling",), ("horizontalpodautoscalers",), WORKLOADS, ANY_NAME),
        (("",), ("events", "resourcequotas"), ("get", "list"), ANY_NAME),
    },
    "gpus-portico-operators": {
        (
            ("resource.k8s.io",),
            ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
            ("get", "list", "watch"),
            ANY_NAME,
        ),
        (("",), ("nodes",), ("get", "list", "watch"), ANY_NAME),
        (("portico.dev",), ("gpuclasses",), ("create", "delete", "get", "list", "patch", "watch"), ANY_NAME),
        (("resource.k8s.io",), ("deviceclasses",), ("create", "delete", "patch"), ANY_NAME),
        (("portico.dev",), ("physicalgpus",), ("get", "list", "watch"), ANY_NAME),
    },
}

# Who holds which role where; "" is the whole cluster.
BINDINGS = {
    ("", "gpus-portico-person", "gpus:portico-web"),
    ("", "gpus-portico-as-operator", "gpus:portico-web"),
    ("", "gpus-portico-worker", "gpus:portico-worker"),
    ("gpus", "portico-worker", "gpus:portico-worker"),
    ("", "gpus-portico-driver", "gpus:portico-driver"),
    ("", "gpus-portico-operators", "oidc:operators"),
    ("ml-train", "gpus-portico-as-person", "gpus:portico-web"),
    ("ml-serve", "gpus-portico-as-person", "gpus:portico-web"),
    ("ml-train", "gpus-portico-team", "oidc:ml-team"),
    ("ml-serve", "gpus-portico-team", "oidc:ml-team"),
    ("ml-serve", "gpus-portico-team", "oidc:search"),
}


@pytest.fixture(scope="module")
def all_on() -> list[dict[str, Any]]:
    return render(ALL_ON, namespace=NAMESPACE)


def rules(role: Mapping[str, Any]) -> set[Rule]:
    keys = ("apiGroups", "resources", "verbs", "resourceNames")
    found = [tuple(tuple(sorted(rule.get(key, ()))) for key in keys) for rule in role["rules"]]
    assert all(set(rule) <= set(keys) for rule in role["rules"]), "a rule with something else, as nonResourceURLs"
    assert len(set(found)) == len(found)
    return set(found)  # type: ignore[arg-type]  # four keys make tuples of four


def test_every_role_is_the_one_written_here(all_on: list[dict[str, Any]]) -> None:
    found = {item["metadata"]["name"]: rules(item) for item in all_on if item["kind"] in ("ClusterRole", "Role")}
    assert found == RULES


def test_no_role_of_any_values_has_wildcards_or_secrets() -> None:
    for values in ({}, ALL_ON):
        for item in render(values):
            for groups, resources, verbs, _ in rules(item) if item["kind"] in ("ClusterRole", "Role") else ():
                assert "*" not in (*groups, *resources, *verbs), item["metadata"]["name"]
                assert not {"secrets", "pods/exec", "clusterroles", "clusterrolebindings"} & set(resources)
                assert not {"impersonate", "bind", "escalate"} & set(verbs), item["metadata"]["name"]


def bindings(objects: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for item in objects:
        if item["kind"] in ("ClusterRoleBinding", "RoleBinding"):
            for subject in item["subjects"]:
                owner = f"{subject['namespace']}:" if subject["kind"] == "ServiceAccount" else ""
                yield item["metadata"].get("namespace", ""), item["roleRef"]["name"], owner + subject["name"]


def test_every_binding_is_one_written_here(all_on: list[dict[str, Any]]) -> None:
    found = list(bindings(all_on))
    assert set(found) == BINDINGS
    assert len(found) == len(BINDINGS)


def test_without_listed_users_any_user_name_is_open_and_groups_stay_bound() -> None:
    role = named(render({"teams": ALL_ON["teams"]}, namespace="gpus"), "ClusterRole", "gpus-portico-person")
    assert rules(role) == {
        (("authentication.k8s.io",), ("users",), ("impersonate:user-info",), ANY_NAME),
        (
            ("authentication.k8s.io",),
            ("groups",),
            ("impersonate:user-info",),
            ("portico:ml-team", "portico:operators", "portico:search"),
        ),
    }


def test_the_portal_may_try_no_workloads_unless_it_is_said() -> None:
    role = named(render({"teams": ALL_ON["teams"]}, namespace="gpus"), "ClusterRole", "gpus-portico-as-person")
    assert rules(role) == RULES["gpus-portico-as-person"] - TRIED


def test_the_portal_may_do_nothing_as_a_person_that_a_team_may_not() -> None:
    """The reason why open user names add nothing (docs/adr/0003-impersonation-rights.md)."""
    objects = render({"teams": ALL_ON["teams"], "web": {"tryWorkloads": True}}, namespace="gpus")
    team = rules(named(objects, "ClusterRole", "gpus-portico-team"))
    may = {
        (group, resource, verb)
        for groups, resources, verbs, _ in team
        for group in groups
        for resource in resources
        for verb in verbs
    }
    for groups, resources, verbs, _ in rules(named(objects, "ClusterRole", "gpus-portico-as-person")):
        lent = {
            (groups[0], each, verb.removeprefix("impersonate-on:user-info:")) for each in resources for verb in verbs
        }
        assert lent <= may

"""The chart as tests and demo use it: rendered by the real helm, its roles applied to a real cluster.

It adds nothing to what the chart says. Workloads stay out of `apply_roles`: tests and demo run components as processes
under the chart's ServiceAccounts.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import build
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until

CHART = Path(__file__).parents[2] / "helm" / "portico"
RELEASE = "portico"

ROLE_KINDS = frozenset(
    {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
)


class HelmError(Exception):
    """helm refused; the text is what it wrote on stderr."""


@dataclass(frozen=True, slots=True)
class ServiceAccounts:
    """Names of the components' ServiceAccounts in `namespace`."""

    namespace: str
    web: str = f"{RELEASE}-web"
    worker: str = f"{RELEASE}-worker"
    driver: str = f"{RELEASE}-driver"
    mpsd: str = f"{RELEASE}-mpsd"


def helm(*arguments: str, text: str = "") -> str:
    """Standard output of one helm command; raises HelmError."""
    program = build.programs("helm") / "helm"
    done = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HelmError(done.stderr or done.stdout)
    return done.stdout


def render(values: Mapping[str, Any], *, namespace: str = "portico-system") -> list[dict[str, Any]]:
    """The objects of the chart for `values` over its defaults; raises HelmError where the chart refuses them."""
    arguments = ("template", RELEASE, str(CHART), "--namespace", namespace, "--values", "-")
    return [document for document in yaml.safe_load_all(helm(*arguments, text=json.dumps(values))) if document]


def apply_roles(
    cluster: Cluster, *, namespace: str, teams: Mapping[str, Sequence[str]], driver_name: str, prefix: str
) -> ServiceAccounts:
    """Put the chart's accounts, roles and admission policy into `cluster`, with the namespaces they stand in.

    `teams` says which namespaces each team works in; the portal may try workloads. Returns when the API server holds
    all of it, seconds later. Applied again with other teams, the portal is bound to these; rights given to teams that
    are left out stay.
    """
    values = {
        "web": {"tryWorkloads": True},
        "prefix": prefix,
        "driverName": driver_name,
        "teams": [{"name": name, "namespaces": list(spaces)} for name, spaces in teams.items()],
    }
    for name in sorted({namespace, *(space for spaces in teams.values() for space in spaces)}):
        if cluster.raw("GET", f"/api/v1/namespaces/{name}").status != 200:
            cluster.make_namespace(name)
    cluster.apply(*(item for item in render(values, namespace=namespace) if item["kind"] in ROLE_KINDS))
    accounts = ServiceAccounts(namespace)
    _await_policy(cluster, accounts, driver_name)
    return accounts


def _await_policy(cluster: Cluster, accounts: ServiceAccounts, driver_name: str) -> None:
    """Wait until the driver's account is refused by admission (422), not before by RBAC (403) and not at all (201).

    The policy is the last to be heard of: the API server compiles policies once a second, roles it knows at once.
    """
    cluster.service_account_kubeconfig(accounts.namespace, accounts.driver)
    slice_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "await-policy"},
        "spec": {
            "driver": driver_name,
            "nodeName": "await-policy",
            "pool": {"name": "await-policy", "generation": 1, "resourceSliceCount": 1},
        },
    }
    path, body = "/apis/resource.k8s.io/v1/resourceslices?dryRun=All", json.dumps(slice_).encode()
    user = f"system:serviceaccount:{accounts.namespace}:{accounts.driver}"
    wait_until(lambda: cluster.raw("POST", path, body, user=user).status == 422, "the chart's admission policy")

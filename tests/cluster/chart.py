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

    `teams` says which namespaces each team works in. Applying again with other teams adds theirs and takes none away.
    The admission policy holds about a second later, when the API server has heard of it.
    """
    values = {
        "prefix": prefix,
        "driverName": driver_name,
        "teams": [{"name": name, "namespaces": list(spaces)} for name, spaces in teams.items()],
    }
    roles = [item for item in render(values, namespace=namespace) if item["kind"] in ROLE_KINDS]
    spaces = sorted({namespace, *(space for owned in teams.values() for space in owned)})
    _apply(cluster, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in spaces])
    _apply(cluster, roles)
    return ServiceAccounts(namespace)


def _apply(cluster: Cluster, items: Sequence[Mapping[str, Any]]) -> None:
    cluster.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

"""The chart: what it renders, what it refuses, and that each value is explained, checked and used.

Roles and the settings of the node driver have files of their own: test_chart_rights.py, test_chart_settings.py.
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodedriver.config import load_config
from tests.cluster.chart import CHART, ROLE_KINDS, HelmError, helm, render
from tests.house.chart_values import ALL_ON, NAMESPACE, environment, named, pod_spec

pytestmark = pytest.mark.programs

ROOT = CHART.parents[1]

WORKLOADS = {
    ("Deployment", "portico-web"),
    ("Service", "portico-web"),
    ("Job", "portico-migrate"),
    ("Deployment", "portico-worker"),
    ("DaemonSet", "portico-driver"),
    ("DaemonSet", "portico-mpsd"),
}


@pytest.fixture(scope="module")
def all_on() -> list[dict[str, Any]]:
    return render(ALL_ON, namespace=NAMESPACE)


def test_lint_finds_nothing() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize("values", [{}, ALL_ON], ids=["default", "all-on"])
def test_renders_every_workload(values: dict[str, Any]) -> None:
    objects = render(values)
    assert {(item["kind"], item["metadata"]["name"]) for item in objects if item["kind"] not in ROLE_KINDS} == WORKLOADS


@pytest.mark.parametrize(
    ("values", "gone"),
    [
        ({"nodeDriver": {"enabled": False}}, {"driver", "mpsd"}),
        ({"web": {"enabled": False}, "worker": {"enabled": False}}, {"web", "migrate", "worker"}),
        ({"web": {"enabled": False}}, {"web", "migrate"}),
    ],
)
def test_a_component_that_is_off_leaves_nothing(values: dict[str, Any], gone: set[str]) -> None:
    everything = {"web", "migrate", "worker", "driver", "mpsd", "team", "operators"}
    left = {item["metadata"]["labels"]["app.kubernetes.io/component"] for item in render(values)}
    assert left == everything - gone


# --- pods


@pytest.mark.parametrize(
    ("kind", "name", "account", "token"),
    [
        ("Deployment", "portico-web", "portico-web", True),
        ("Deployment", "portico-worker", "portico-worker", True),
        ("DaemonSet", "portico-driver", "portico-driver", True),
        ("DaemonSet", "portico-mpsd", "portico-mpsd", False),
        ("Job", "portico-migrate", None, False),
    ],
)
def test_a_pod_has_its_own_account_and_a_token_only_where_it_speaks_to_the_cluster(
    all_on: list[dict[str, Any]], kind: str, name: str, account: str | None, *, token: bool
) -> None:
    spec = pod_spec(all_on, kind, name)
    assert spec.get("serviceAccountName") == account
    assert spec.get("automountServiceAccountToken", True) is token
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert [container["image"] for container in spec["containers"]] == ["registry.example.org/portico:1.2.3"]


def test_the_supervisors_account_gives_no_token_either(all_on: list[dict[str, Any]]) -> None:
    assert named(all_on, "ServiceAccount", "portico-mpsd")["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("kind", "name"), [("Deployment", "portico-web"), ("Deployment", "portico-worker"), ("Job", "portico-migrate")]
)
def test_portal_pods_keep_to_pod_securitys_restricted_level(all_on: list[dict[str, Any]], kind: str, name: str) -> None:
    spec = pod_spec(all_on, kind, name)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 10001
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["nodeSelector"] == {"zone": "a"}
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    assert not {"hostPID", "hostNetwork", "hostIPC"} & set(spec)
    assert not [volume for volume in spec.get("volumes", []) if "hostPath" in volume]


def test_secrets_come_by_reference(all_on: list[dict[str, Any]]) -> None:
    for kind, name in (("Deployment", "portico-web"), ("Deployment", "portico-worker"), ("Job", "portico-migrate")):
        (container,) = pod_spec(all_on, kind, name)["containers"]
        references = {
            entry["valueFrom"]["secretKeyRef"]["key"]: entry["valueFrom"]["secretKeyRef"]["name"]
            for entry in container["env"]
            if "valueFrom" in entry
        }
        assert references == {"database-url": "portico", "broker-url": "portico", "secret-key": "portico"}


def test_commands_are_the_documented_entry_points(all_on: list[dict[str, Any]]) -> None:
    arguments = {
        name: pod_spec(all_on, kind, name)["containers"][0]["args"] for kind, name in WORKLOADS if kind != "Service"
    }
    assert arguments == {
        "portico-web": ["uvicorn", "portal.asgi:application", "--host", "0.0.0.0", "--port", "8000"],
        "portico-migrate": ["python", "manage.py", "migrate", "--no-input"],
        "portico-worker": ["celery", "-A", "portal", "worker", "-P", "threads", "-c", "20"],
        "portico-driver": ["python", "-m", "nodedriver.main", "driver"],
        "portico-mpsd": ["python", "-m", "nodedriver.mpsd"],
    }


def test_an_update_replaces_the_driver_and_leaves_the_supervisor(all_on: list[dict[str, Any]]) -> None:
    assert named(all_on, "DaemonSet", "portico-mpsd")["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert named(all_on, "DaemonSet", "portico-driver")["spec"]["updateStrategy"]["type"] == "RollingUpdate"


def mounts(spec: Mapping[str, Any]) -> dict[str, str]:
    """Folder on the node → folder in the container."""
    (container,) = spec["containers"]
    host = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    return {host[mount["name"]]: mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] in host}


def test_the_driver_finds_the_nodes_folders_where_the_values_say(all_on: list[dict[str, Any]]) -> None:
    shared = {
        "/data/kubelet/plugins/gpu.deckhouse.io": "/data/kubelet/plugins/gpu.deckhouse.io",
        "/dev": "/dev",
        "/sys": "/sys",
        "/proc": "/host/proc",
        "/run/nvidia/driver": "/driver-root",
    }
    driver_only = {"/data/kubelet/plugins_registry": "/data/kubelet/plugins_registry", "/run/cdi": "/run/cdi"}
    assert mounts(pod_spec(all_on, "DaemonSet", "portico-driver")) == shared | driver_only
    assert mounts(pod_spec(all_on, "DaemonSet", "portico-mpsd")) == shared


def test_by_default_no_node_runs_the_driver_that_was_not_offered() -> None:
    assert pod_spec(render({}), "DaemonSet", "portico-driver")["nodeSelector"] == {"portico.dev/gpu": "true"}


def test_the_portal_hears_what_the_values_say(all_on: list[dict[str, Any]]) -> None:
    heard = environment(all_on, "Deployment", "portico-web")
    assert heard["PORTICO_ALLOWED_HOSTS"] == "gpus.example.org,localhost"
    assert heard["PORTICO_HTTPS"] == "false"
    assert heard["PORTICO_IMPERSONATION_PREFIX"] == "oidc:"
    assert environment(all_on, "Deployment", "portico-worker") == heard | {"PORTICO_PROBE_NAMESPACE": NAMESPACE}


def test_every_variable_of_a_portal_pod_is_a_setting_of_the_portal(all_on: list[dict[str, Any]]) -> None:
    known = set(re.findall(r'_env\.\w+\("(\w+)"', (ROOT / "portal" / "settings.py").read_text()))
    for kind, name in (("Deployment", "portico-web"), ("Deployment", "portico-worker"), ("Job", "portico-migrate")):
        assert set(environment(all_on, kind, name)) <= known


def test_the_driver_is_probed_and_scraped_at_its_port(all_on: list[dict[str, Any]]) -> None:
    template = named(all_on, "DaemonSet", "portico-driver")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert environment(all_on, "DaemonSet", "portico-driver")["PORTICO_HTTP_PORT"] == "9999"
    assert container["ports"] == [{"name": "http", "containerPort": 9999}]
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert template["metadata"]["annotations"] == {"prometheus.io/scrape": "true"}
    (quiet,) = pod_spec(render({"nodeDriver": {"httpPort": 0}}), "DaemonSet", "portico-driver")["containers"]
    assert not {"ports", "startupProbe", "livenessProbe"} & set(quiet)


def test_the_supervisor_is_asked_whether_it_is_ready_and_never_ended_by_a_probe(all_on: list[dict[str, Any]]) -> None:
    template = named(all_on, "DaemonSet", "portico-mpsd")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert environment(all_on, "DaemonSet", "portico-mpsd")["PORTICO_HTTP_PORT"] == "9999"
    assert container["ports"] == [{"name": "http", "containerPort": 9999}]
    assert container["readinessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert not {"startupProbe", "livenessProbe"} & set(container)
    assert template["metadata"]["annotations"] == {"prometheus.io/scrape": "true"}
    (quiet,) = pod_spec(render({"nodeDriver": {"httpPort": 0}}), "DaemonSet", "portico-mpsd")["containers"]
    assert not {"ports", "readinessProbe"} & set(quiet)


def test_the_driver_makes_of_its_variables_the_folders_that_are_mounted(all_on: list[dict[str, Any]]) -> None:
    heard = {key: text for key, text in environment(all_on, "DaemonSet", "portico-driver").items() if text}
    config = load_config(argparse.Namespace(), {**heard, "NODE_NAME": "node-1"})
    folders = mounts(pod_spec(all_on, "DaemonSet", "portico-driver"))
    used = (config.plugin_dir, config.registrar_dir, config.cdi_dir, config.proc_root, config.driver_root)
    assert {str(folder) for folder in used} <= set(folders.values())
    assert str(config.host_driver_root) == "/run/nvidia/driver"
    assert config.driver_name == "gpu.deckhouse.io"


# --- values


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"teems": []}, "teems"),
        ({"web": {"replica": 2}}, "replica"),
        ({"web": {"replicas": 0}}, "minimum"),
        ({"web": {"hosts": []}}, "hosts"),
        ({"worker": {"threads": 5}}, "threads"),
        ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"prefix": ""}, "prefix"),
        ({"prefix": "system:"}, "prefix"),
        ({"driverName": "GPU"}, "driverName"),
        ({"driverName": "a" * 64}, "driverName"),
        ({"nodeDriver": {"kubeletDir": "var/lib/kubelet"}}, "kubeletDir"),
        ({"nodeDriver": {"driverRoot": "/run/../etc/'x"}}, "driverRoot"),
        ({"nodeDriver": {"migMode": "never"}}, "migMode"),
        ({"nodeDriver": {"mpsProtocol": 1}}, "mpsProtocol"),
        ({"nodeDriver": {"httpPort": 65536}}, "httpPort"),
        ({"nodeDriver": {"resetWaitSeconds": 481}}, "resetWaitSeconds"),
        ({"nodeDriver": {"healthEvicts": "all"}}, "healthEvicts"),
        ({"nodeDriver": {"timeSlices": 129}}, "timeSlices"),
        ({"nodeDriver": {"mpsReserve": "-1Gi"}}, "mpsReserve"),
        ({"nodeDriver": {"logLevel": "loud"}}, "logLevel"),
        ({"teams": [{"name": "ml-team"}]}, "namespaces"),
        ({"teams": [{"name": "ML", "namespaces": ["a"]}]}, "name"),
        ({"teams": [{"name": "ml", "namespaces": ["a", "a"]}]}, "equal"),
        ({"teams": [{"name": "ml", "namespaces": ["a"], "quota": 3}]}, "quota"),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else "",
)
def test_the_schema_refuses(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HelmError, match=sentence) as refusal:
        render(values)
    assert "values don't meet the specifications of the schema" in str(refusal.value)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"teams": [{"name": "operators", "namespaces": ["a"]}]},
            'a team called "operators" would get the operators\' rights through the group "portico:operators"',
        ),
        (
            {"teams": [{"name": "ml", "namespaces": ["a"]}, {"name": "ml", "namespaces": ["b"]}]},
            'the team "ml" stands twice. Give it one entry with all of its namespaces.',
        ),
        (
            {"teams": [{"name": "ml", "namespaces": ["portico-system"]}]},
            '"ml" would work in "portico-system", the namespace of this release',
        ),
        (
            {"teams": [{"name": "ml", "namespaces": ["kube-system"]}]},
            '"kube-system" is one of the cluster\'s own namespaces',
        ),
        ({"worker": {"enabled": False}}, "without workers the portal's pages would never hear of the cluster"),
    ],
    ids=["operators", "twice", "own-namespace", "kube-system", "no-workers"],
)
def test_values_that_make_no_sense_together_are_refused_in_a_sentence(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HelmError, match=re.escape(sentence)):
        render(values)


def value_keys() -> Iterator[tuple[tuple[str, ...], int]]:
    """Each key that stands on a line of its own in values.yaml: its path, and its line from 0."""
    root = yaml.compose((CHART / "values.yaml").read_text(), Loader=yaml.SafeLoader)
    todo: list[tuple[tuple[str, ...], Any]] = [((), root)]
    for path, node in todo:
        if isinstance(node, yaml.MappingNode) and not node.flow_style:
            for key, value in node.value:
                here = (*path, key.value)
                yield here, key.start_mark.line
                todo.append((here, value))


def test_every_value_is_explained_where_it_stands() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    keys = list(value_keys())
    assert len(keys) > 30
    silent = [".".join(path) for path, line in keys if not lines[line - 1].lstrip().startswith("# ")]
    assert silent == []


def schema_entry(schema: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    for key in path:
        schema = schema["properties"][key]
    return schema


def test_every_value_is_described_in_the_schema_and_none_is_there_without_a_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    paths = {path for path, _ in value_keys()}
    for path in paths:
        entry = schema_entry(schema, path)
        assert entry["description"], path
        if "properties" in entry:
            assert entry["additionalProperties"] is False, path
            assert set(entry["properties"]) == {deeper[-1] for deeper in paths if deeper[:-1] == path}, path
    assert set(schema["properties"]) - {"global"} == {path[0] for path in paths if len(path) == 1}


def test_every_value_is_used_by_a_template() -> None:
    text = "\n".join(file.read_text() for file in sorted((CHART / "templates").rglob("*")) if file.is_file())
    parents = {path[:-1] for path, _ in value_keys()}
    unused = [
        ".".join(path)
        for path, _ in value_keys()
        if path not in parents
        and f".Values.{'.'.join(path)}" not in text
        # placement is handed a component's values as a whole
        and not (path[-1] in ("nodeSelector", "tolerations") and f'"portico.placement" .Values.{path[0]}' in text)
    ]
    assert unused == []


# --- the image


def test_the_image_copies_only_what_the_repository_has() -> None:
    text = (ROOT / "images" / "portico.Containerfile").read_text()
    copied = [word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE) for word in line.split()]
    assert "portal" in copied
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_the_image_runs_as_the_user_of_the_chart() -> None:
    text = (ROOT / "images" / "portico.Containerfile").read_text()
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["10001:10001"]
    assert Path(CHART / "templates" / "_pods.tpl").read_text().count("runAsUser: 10001") == 1

"""The chart and the node driver's settings: which are passed on, with which values, and which are left to defaults."""

import argparse
from typing import Any

import pytest

from nodedriver.config import SETTINGS, load_config
from tests.cluster.chart import render
from tests.house.chart_values import ALL_ON, NAMESPACE, environment

pytestmark = pytest.mark.programs


@pytest.fixture(scope="module")
def all_on() -> list[dict[str, Any]]:
    return render(ALL_ON, namespace=NAMESPACE)


def test_every_variable_of_a_node_pod_is_a_setting_of_the_driver(all_on: list[dict[str, Any]]) -> None:
    known = {setting.variable for setting in SETTINGS}
    for name in ("portico-driver", "portico-mpsd"):
        assert set(environment(all_on, "DaemonSet", name)) <= known


def test_the_driver_hears_what_the_values_say(all_on: list[dict[str, Any]]) -> None:
    heard = environment(all_on, "DaemonSet", "portico-driver")
    assert (heard["PORTICO_MIG_MODE"], heard["PORTICO_NVIDIA_CONFIGS"]) == ("keep", "yes")
    assert heard["PORTICO_RESET_WAIT"] == "300"
    config = load_config(argparse.Namespace(), {key: text for key, text in heard.items() if text} | {"NODE_NAME": "a"})
    assert (config.health_evicts, config.time_slices, config.mps_reserve) == ("reset", 4, 2**30)


def test_the_supervisor_hears_what_its_daemons_speak(all_on: list[dict[str, Any]]) -> None:
    assert environment(all_on, "DaemonSet", "portico-mpsd")["PORTICO_MPS_PROTOCOL"] == "3"


def test_driver_and_supervisor_log_from_the_level_that_the_values_say(all_on: list[dict[str, Any]]) -> None:
    for name in ("portico-driver", "portico-mpsd"):
        assert environment(all_on, "DaemonSet", name)["PORTICO_LOG_LEVEL"] == "debug"


# What the defaults say of a pod: where the kubelet's and the node's folders are, and its own account at the API server.
LEFT_TO_DEFAULTS = {
    "PORTICO_PLUGIN_DIR",
    "PORTICO_REGISTRAR_DIR",
    "PORTICO_SYS_ROOT",
    "PORTICO_DEV_ROOT",
    "PORTICO_DEVICE_PLUGINS_DIR",
    "PORTICO_KUBECONFIG",
}


def test_a_setting_that_the_chart_does_not_pass_on_is_left_to_its_default_on_purpose() -> None:
    objects = render({})
    passed = {key for name in ("portico-driver", "portico-mpsd") for key in environment(objects, "DaemonSet", name)}
    assert {setting.variable for setting in SETTINGS} - passed == LEFT_TO_DEFAULTS


def test_what_is_passed_on_by_default_is_the_drivers_own_default() -> None:
    """But for the driver's root and the node's, which a pod sees elsewhere, and the port, which it has to itself."""
    objects = render({})
    heard = environment(objects, "DaemonSet", "portico-mpsd") | environment(objects, "DaemonSet", "portico-driver")
    own = {setting.variable: setting.default for setting in SETTINGS}
    differing = {variable for variable, text in heard.items() if text is not None and text != own[variable]}
    elsewhere = {"DRIVER_ROOT", "HOST_DRIVER_ROOT", "PROC_ROOT", "HOST_ROOT"}
    assert differing == {f"PORTICO_{name}" for name in elsewhere | {"HTTP_PORT"}}

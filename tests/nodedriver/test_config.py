"""Settings: defaults, environment, flags, and one sentence for each that is wrong."""

import argparse
from pathlib import Path

import pytest

from nodedriver.config import SETTINGS, Config, ConfigError, add_flags, load_config


def load(*flags: str, **environment: str) -> Config:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return load_config(parser.parse_args(flags), {"NODE_NAME": "node-1"} | environment)


def test_defaults_are_a_nodes_usual_paths() -> None:
    config = load()
    assert config.driver_name == "gpu.portico.dev"
    assert config.dra_socket == Path("/var/lib/kubelet/plugins/gpu.portico.dev/dra.sock")
    assert config.registration_socket == Path("/var/lib/kubelet/plugins_registry/gpu.portico.dev-reg.sock")
    assert config.mps_socket == Path("/var/lib/kubelet/plugins/gpu.portico.dev/mps/mpsd.sock")
    assert config.checkpoint_file == Path("/var/lib/kubelet/plugins/gpu.portico.dev/checkpoint.json")
    assert config.cdi_dir == Path("/var/run/cdi")
    assert (config.mps_reserve, config.mps_protocol) == (536870912, 2)
    assert config.time_slices == 10
    assert (config.mig_mode, config.nvidia_configs, config.integrated_cards) == ("when-needed", False, False)
    assert config.kubeconfig is None


def test_environment_overrides_defaults_and_flags_override_both() -> None:
    environment = {"PORTICO_DRIVER_NAME": "gpu.deckhouse.io", "PORTICO_KUBELET_DIR": "/srv/kubelet"}
    config = load("--kubelet-dir", "/k", "--mps-reserve", "1Gi", **environment)
    assert config.plugin_dir == Path("/k/plugins/gpu.deckhouse.io")
    assert config.registrar_dir == Path("/k/plugins_registry")
    assert config.mps_reserve == 1073741824


def test_own_folders_override_the_kubelets() -> None:
    config = load("--plugin-dir", "/p", PORTICO_REGISTRAR_DIR="/r")
    assert (config.dra_socket, config.registrar_dir) == (Path("/p/dra.sock"), Path("/r"))


def test_each_pod_has_sockets_of_its_own_of_a_bounded_length() -> None:
    uids = ("0f3c8a52-6d1c-4b0e-9a57-3d1b9f3f8a11", "0f3c8a52-6d1c-4b0e-9a57-3d1b9f3f8a12", "x" * 500)
    configs = [load("--pod-uid", uid) for uid in uids]
    assert len({config.dra_socket for config in configs}) == 3
    assert [len(config.dra_socket.name) for config in configs] == [len("dra-.sock") + 12] * 3
    assert len({config.registration_socket for config in configs}) == 3
    assert {config.checkpoint_file for config in configs} == {load().checkpoint_file}


def test_the_driver_root_is_the_hosts_too_unless_said_otherwise() -> None:
    assert load("--driver-root", "/opt/nv").host_driver_root == Path("/opt/nv")
    assert load("--driver-root", "/driver-root", PORTICO_HOST_DRIVER_ROOT="/").host_driver_root == Path("/")


LONG = "/" + "k" * 70
WRONG = {
    "no node name": ((), {"NODE_NAME": ""}, "--node-name (NODE_NAME) is not set"),
    "bad node name": ((), {"NODE_NAME": "Node_1"}, "'Node_1' is not a node name"),
    "bad driver name": (("--driver-name", "GPU"), {}, "driver name 'GPU' is not a DNS subdomain"),
    "relative path": (("--cdi-dir", "cdi"), {}, "--cdi-dir (PORTICO_CDI_DIR): 'cdi' is not an absolute path"),
    "bad quantity": ((), {"PORTICO_MPS_RESERVE": "lots"}, "--mps-reserve (PORTICO_MPS_RESERVE): 'lots' is not a"),
    "no number": (("--time-slices", "many"), {}, "--time-slices (PORTICO_TIME_SLICES): 'many' is not a whole number"),
    "too many": (("--time-slices", "129"), {}, "'129' is not a whole number from 0 to 128"),
    "no port": (("--http-port", "65536"), {}, "(PORTICO_HTTP_PORT): '65536' is not a whole number from 0 to 65535"),
    "no address": (("--http-address", "host"), {}, "(PORTICO_HTTP_ADDRESS): 'host' is not an IP address"),
    "negative": (("--mps-reserve=-1Gi",), {}, "'-1Gi' is negative"),
    "relative nvidia-ctk": (
        ("--nvidia-ctk", "bin/nvidia-ctk"),
        {},
        "(PORTICO_NVIDIA_CTK): 'bin/nvidia-ctk' is neither auto nor off nor an",
    ),
    "maybe integrated": (("--integrated-cards", "maybe"), {}, "(PORTICO_INTEGRATED_CARDS): 'maybe' is none of no, yes"),
    "too long a wait": (("--reset-wait", "481"), {}, "(PORTICO_RESET_WAIT): '481' is not a whole number from 0 to 480"),
    "no such protocol": (("--mps-protocol", "4"), {}, "(PORTICO_MPS_PROTOCOL): '4' is none of 2, 3"),
    "bad MIG mode": (("--mig-mode", "never"), {}, "(PORTICO_MIG_MODE): 'never' is none of when-needed, keep"),
    "neither yes nor no": (
        (),
        {"PORTICO_NVIDIA_CONFIGS": "true"},
        "(PORTICO_NVIDIA_CONFIGS): 'true' is none of no, yes",
    ),
    "bad level": (("--log-level", "loud"), {}, "'loud' is none of debug, info, warning, error"),
    "socket too long": (("--plugin-dir", LONG + "/" + "p" * 30), {}, "has 111 bytes and at most 107 can be bound"),
    "longest socket counts": (("--plugin-dir", LONG + "/" + "p" * 25), {}, "mps/mpsd.sock has 111 bytes"),
}


@pytest.mark.parametrize(("flags", "environment", "sentence"), WRONG.values(), ids=WRONG)
def test_wrong(flags: tuple[str, ...], environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(*flags, **environment)
    assert sentence in str(error.value)


def test_a_socket_path_of_107_bytes_is_allowed() -> None:
    longest = "/" + "p" * (107 - len("/mps/mpsd.sock") - 1)
    assert len(str(load("--plugin-dir", longest).mps_socket)) == 107
    with pytest.raises(ConfigError, match="has 108 bytes"):
        load("--plugin-dir", longest + "p")


def test_every_setting_has_its_own_flag_and_variable() -> None:
    assert len({setting.flag for setting in SETTINGS}) == len(SETTINGS)
    assert len({setting.variable for setting in SETTINGS}) == len(SETTINGS)


def test_every_setting_is_documented_with_its_default() -> None:
    rows = (Path(__file__).parents[2] / "docs/dev/node-settings.md").read_text().splitlines()
    for setting in SETTINGS:
        row = next((row for row in rows if row.startswith(f"| `{setting.flag}` | `{setting.variable}` |")), None)
        assert row is not None, setting.flag
        assert not setting.default or f"| `{setting.default}` |" in row

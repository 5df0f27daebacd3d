"""The driver's settings: defaults, then the environment, then flags; validated once, frozen afterwards.

The only reader of the environment on the node side. Every path is a setting, so that the driver also runs without root.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

from dra.errors import InvalidNameError, InvalidQuantityError
from dra.names import check_driver_name, is_dns_subdomain
from dra.quantity import parse_quantity
from nodedriver.logs import LEVELS

TIME_SLICES = 10  # where nothing else is said
EVICTIONS = ("none", "node", "reset")
MIG_MODES = ("when-needed", "keep")
MOST_PORT = 65535
# Seconds: the scheduler waits for 600 (bindingTimeout). A try may begin 30 after the wait, takes 60, and is then told.
LONGEST_RESET_WAIT = 480
MOST_SLOTS = 128  # of one card's time
DEVICE_PLUGINS = "var/lib/kubelet/device-plugins"  # pluginapi.DevicePluginPath, whatever the kubelet's root is
SOCKET_PATH_LIMIT = 107  # bytes; sun_path of unix(7) holds 108 with its NUL


class ConfigError(Exception):
    """A setting is wrong. The text names the setting, its value and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings. `driver_root` is NVIDIA's driver as this process sees it, `host_driver_root` as the node does.

    `mps_reserve` is in bytes: memory of a shared device that no share is given, for the contexts of its clients.
    `mps_protocol`: what new control daemons speak, 2 or 3.
    `time_slices`: into how many slots the time of a card is given, 0 for none. `mig_mode`: when a card leaves MIG mode.
    `nvidia_configs`: opaque parameters in NVIDIA's spelling are read too. `kubeconfig` is None in a pod, whose
    ServiceAccount is used.
    """

    driver_name: str
    node_name: str
    pod_uid: str
    kubelet_dir: Path
    plugin_dir: Path
    registrar_dir: Path
    cdi_dir: Path
    proc_root: Path
    sys_root: Path
    dev_root: Path
    driver_root: Path
    host_driver_root: Path
    host_root: Path
    device_plugins_dir: Path
    kubeconfig: str | None
    mps_reserve: int
    mps_protocol: int
    time_slices: int
    mig_mode: str
    nvidia_configs: bool
    integrated_cards: bool
    device_metadata: bool
    nvidia_ctk: str
    health_evicts: str
    http_address: str
    http_port: int
    reset_wait: int
    log_level: str

    @property
    def dra_socket(self) -> Path:
        """Where the DRA service answers; GetInfo tells the kubelet."""
        return self.plugin_dir / f"dra{self._of_pod}.sock"

    @property
    def registration_socket(self) -> Path:
        """Where the kubelet's plugin watcher finds us."""
        return self.registrar_dir / f"{self.driver_name}{self._of_pod}-reg.sock"

    @property
    def _of_pod(self) -> str:
        """A part of a name that no other pod has; short, since paths of sockets are (kubeletplugin, RollingUpdate)."""
        return f"-{sha256(self.pod_uid.encode()).hexdigest()[:12]}" if self.pod_uid else ""

    @property
    def mps_dir(self) -> Path:
        """The MPS supervisor's folder: its socket and the pipe folders of its daemons."""
        return self.plugin_dir / "mps"

    @property
    def mps_socket(self) -> Path:
        """Where the MPS supervisor answers."""
        return self.mps_dir / "mpsd.sock"

    @property
    def checkpoint_file(self) -> Path:
        """Which resource claims are prepared."""
        return self.plugin_dir / "checkpoint.json"

    @property
    def ranks_file(self) -> Path:
        """Which card has which number in device names."""
        return self.plugin_dir / "ranks.json"

    @property
    def placements_file(self) -> Path:
        """MIG placements that had to be learnt."""
        return self.plugin_dir / "mig-placements-cache.json"

    @property
    def cards_file(self) -> Path:
        """What NVML said of the cards, for those that it does not see now."""
        return self.plugin_dir / "cards.json"

    @property
    def published_file(self) -> Path:
        """What was published last."""
        return self.plugin_dir / "published.json"

    @property
    def health_file(self) -> Path:
        """What ails the cards."""
        return self.plugin_dir / "health.json"

    @property
    def maintenance_file(self) -> Path:
        """Which cards change their mode by a reset, or failed to."""
        return self.plugin_dir / "maintenance.json"

    @property
    def driver_files_file(self) -> Path:
        """What nvidia-ctk said that containers need of the driver."""
        return self.plugin_dir / "driver-files.json"

    @property
    def metadata_dir(self) -> Path:
        """What containers read of their devices."""
        return self.plugin_dir / "dra-device-metadata"

    @property
    def locks_dir(self) -> Path:
        """Lock files, one per GPU and one for the checkpoint."""
        return self.plugin_dir / "locks"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its flag, its environment variable, its default ("" = derived or required) and what it means."""

    flag: str
    variable: str
    default: str
    help: str

    @property
    def key(self) -> str:
        return self.flag.removeprefix("--").replace("-", "_")


SETTINGS = (
    Setting(
        "--driver-name", "PORTICO_DRIVER_NAME", "gpu.portico.dev", "name of the DRA driver: sockets, slices, config"
    ),
    Setting("--node-name", "NODE_NAME", "", "name of the Node object of this machine (required)"),
    Setting("--pod-uid", "PORTICO_POD_UID", "", "uid of the driver's pod: sockets of its own, so that two can overlap"),
    Setting("--kubelet-dir", "PORTICO_KUBELET_DIR", "/var/lib/kubelet", "root folder of the kubelet (its --root-dir)"),
    Setting("--plugin-dir", "PORTICO_PLUGIN_DIR", "", "our own folder; default <kubelet dir>/plugins/<driver name>"),
    Setting("--registrar-dir", "PORTICO_REGISTRAR_DIR", "", "default <kubelet dir>/plugins_registry"),
    Setting("--cdi-dir", "PORTICO_CDI_DIR", "/var/run/cdi", "where the container runtime reads generated CDI specs"),
    Setting("--proc-root", "PORTICO_PROC_ROOT", "/proc", "the node's /proc"),
    Setting("--sys-root", "PORTICO_SYS_ROOT", "/sys", "the node's /sys"),
    Setting("--dev-root", "PORTICO_DEV_ROOT", "/dev", "the node's /dev, for links in its folder char"),
    Setting("--driver-root", "PORTICO_DRIVER_ROOT", "/", "NVIDIA's driver, as this process sees it"),
    Setting("--host-driver-root", "PORTICO_HOST_DRIVER_ROOT", "", "the same, as the node sees it; default: alike"),
    Setting("--host-root", "PORTICO_HOST_ROOT", "/", "the node's file system, for the doctor's looks at /etc"),
    Setting(
        "--device-plugins-dir",
        "PORTICO_DEVICE_PLUGINS_DIR",
        "",
        f"default <host root>/{DEVICE_PLUGINS}, as the kubelet's",
    ),
    Setting(
        "--kubeconfig", "PORTICO_KUBECONFIG", "", "file with the cluster's address; default: the pod's own account"
    ),
    Setting("--mps-reserve", "PORTICO_MPS_RESERVE", "512Mi", "memory of a shared device that is given to no share"),
    Setting("--mps-protocol", "PORTICO_MPS_PROTOCOL", "2", "what new MPS daemons speak: 2, 3 (namespaces, since r615)"),
    Setting(
        "--time-slices", "PORTICO_TIME_SLICES", str(TIME_SLICES), "slots that the time of a card is given in; 0: none"
    ),
    Setting(
        "--mig-mode", "PORTICO_MIG_MODE", "when-needed", "MIG mode of an empty card: when-needed (off), keep (stays)"
    ),
    Setting("--nvidia-configs", "PORTICO_NVIDIA_CONFIGS", "no", "read resource.nvidia.com/v1beta1 too: no, yes"),
    Setting("--integrated-cards", "PORTICO_INTEGRATED_CARDS", "no", "publish graphics inside processors too: no, yes"),
    Setting("--nvidia-ctk", "PORTICO_NVIDIA_CTK", "auto", "NVIDIA's nvidia-ctk: its path, auto (is looked for), off"),
    Setting("--device-metadata", "PORTICO_DEVICE_METADATA", "no", "files about devices in containers: no, yes"),
    Setting("--health-evicts", "PORTICO_HEALTH_EVICTS", "none", "which errors end pods too: none, node, reset"),
    Setting("--http-address", "PORTICO_HTTP_ADDRESS", "127.0.0.1", "where /metrics and /healthz are served"),
    Setting("--http-port", "PORTICO_HTTP_PORT", "0", "their TCP port; 0: they are not served"),
    Setting(
        "--reset-wait", "PORTICO_RESET_WAIT", "480", "seconds that others may hold a card that a pod waits to be reset"
    ),
    Setting("--log-level", "PORTICO_LOG_LEVEL", "info", f"least level of what is logged: {', '.join(LEVELS)}"),
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add every setting to a parser. A flag that is not given stays None, so that the environment counts."""
    for setting in SETTINGS:
        default = f", default {setting.default}" if setting.default else ""
        parser.add_argument(setting.flag, help=f"{setting.help} (or {setting.variable}{default})")


def load_config(flags: argparse.Namespace, environment: Mapping[str, str]) -> Config:
    """The settings of this process; ConfigError names the first one that is wrong."""
    values = {setting.key: _value_of(setting, flags, environment) for setting in SETTINGS}
    driver_name = _driver_name(values["driver_name"])
    kubelet_dir = _folder(values, "kubelet_dir", "")
    driver_root = _folder(values, "driver_root", "")
    host_root = _folder(values, "host_root", "")
    config = Config(
        driver_name=driver_name,
        node_name=_node_name(values["node_name"]),
        pod_uid=values["pod_uid"],
        kubelet_dir=kubelet_dir,
        plugin_dir=_folder(values, "plugin_dir", f"{kubelet_dir}/plugins/{driver_name}"),
        registrar_dir=_folder(values, "registrar_dir", f"{kubelet_dir}/plugins_registry"),
        cdi_dir=_folder(values, "cdi_dir", ""),
        proc_root=_folder(values, "proc_root", ""),
        sys_root=_folder(values, "sys_root", ""),
        dev_root=_folder(values, "dev_root", ""),
        driver_root=driver_root,
        host_driver_root=_folder(values, "host_driver_root", str(driver_root)),
        host_root=host_root,
        device_plugins_dir=_folder(values, "device_plugins_dir", str(host_root / DEVICE_PLUGINS)),
        kubeconfig=values["kubeconfig"] or None,
        mps_reserve=_bytes(values, "mps_reserve"),
        mps_protocol=int(_one_of(values, "mps_protocol", ("2", "3"))),
        time_slices=_number(values, "time_slices", MOST_SLOTS),
        mig_mode=_one_of(values, "mig_mode", MIG_MODES),
        nvidia_configs=_one_of(values, "nvidia_configs", ("no", "yes")) == "yes",
        integrated_cards=_one_of(values, "integrated_cards", ("no", "yes")) == "yes",
        nvidia_ctk=_choice_or_path(values, "nvidia_ctk", ("auto", "off")),
        device_metadata=_one_of(values, "device_metadata", ("no", "yes")) == "yes",
        health_evicts=_one_of(values, "health_evicts", EVICTIONS),
        http_address=_address(values, "http_address"),
        http_port=_number(values, "http_port", MOST_PORT),
        reset_wait=_number(values, "reset_wait", LONGEST_RESET_WAIT),
        log_level=_one_of(values, "log_level", LEVELS),
    )
    check_sockets((config.dra_socket, config.registration_socket, config.mps_socket))
    return config


def check_sockets(paths: Sequence[Path]) -> None:
    """ConfigError for the first path that no unix socket can be bound to, with both numbers."""
    for path in paths:
        length = len(str(path).encode())
        if length > SOCKET_PATH_LIMIT:
            raise ConfigError(
                f"the socket path {path} has {length} bytes and at most {SOCKET_PATH_LIMIT} can be bound: "
                "choose a shorter --plugin-dir, --registrar-dir or --driver-name"
            )


def _value_of(setting: Setting, flags: argparse.Namespace, environment: Mapping[str, str]) -> str:
    flag = getattr(flags, setting.key, None)
    return str(flag) if flag is not None else environment.get(setting.variable) or setting.default


def _flag(key: str) -> str:
    setting = next(setting for setting in SETTINGS if setting.key == key)
    return f"{setting.flag} ({setting.variable})"


def _driver_name(text: str) -> str:
    try:
        return check_driver_name(text)
    except InvalidNameError as error:
        raise ConfigError(f"{_flag('driver_name')}: {error}") from error


def _node_name(text: str) -> str:
    if not text:
        raise ConfigError(f"{_flag('node_name')} is not set: give the name of this machine's Node object")
    if not is_dns_subdomain(text):
        raise ConfigError(f"{_flag('node_name')}: {text!r} is not a node name (a DNS subdomain)")
    return text


def _folder(values: Mapping[str, str], key: str, default: str) -> Path:
    path = Path(values[key] or default)
    if not path.is_absolute():
        raise ConfigError(f"{_flag(key)}: {str(path)!r} is not an absolute path")
    return path


def _bytes(values: Mapping[str, str], key: str) -> int:
    try:
        quantity = parse_quantity(values[key])
    except InvalidQuantityError as error:
        raise ConfigError(f"{_flag(key)}: {error}") from error
    if quantity.nano < 0:
        raise ConfigError(f"{_flag(key)}: {values[key]!r} is negative; give a size in bytes, such as 512Mi or 0")
    return quantity.value


def _number(values: Mapping[str, str], key: str, most: int) -> int:
    text = values[key]
    if not (text.isascii() and text.isdigit() and int(text) <= most):
        raise ConfigError(f"{_flag(key)}: {text!r} is not a whole number from 0 to {most}")
    return int(text)


def _address(values: Mapping[str, str], key: str) -> str:
    try:
        return str(ip_address(values[key]))
    except ValueError as error:
        raise ConfigError(f"{_flag(key)}: {values[key]!r} is not an IP address") from error


def _choice_or_path(values: Mapping[str, str], key: str, choices: Collection[str]) -> str:
    if values[key] not in choices and not Path(values[key]).is_absolute():
        raise ConfigError(f"{_flag(key)}: {values[key]!r} is neither {' nor '.join(choices)} nor an absolute path")
    return values[key]


def _one_of(values: Mapping[str, str], key: str, allowed: Collection[str]) -> str:
    if values[key] not in allowed:
        raise ConfigError(f"{_flag(key)}: {values[key]!r} is none of {', '.join(allowed)}")
    return values[key]

"""The container runtime: what its configuration says of CDI, and whether containers get what claims give. Pure.

Rules: containerd docs/cri/config.md and docs/cri/cdi (CDI since 1.7, on by default since 2.0), crio.conf(5)
(cdi_spec_dirs), Container Device Interface, "How to configure".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodedriver.doctor.findings import Finding, Verdict, ok, unknown
from nodedriver.doctor.judging import numbers_of
from nodedriver.doctor.seen import Runtime

RUNTIME = "RuntimeGivesDevices"
_CDI_SINCE = {"containerd": (1, 7), "CRI-O": (1, 23)}
_ON_BY_DEFAULT = {"containerd": (2, 0), "CRI-O": (1, 23)}
_DEFAULT_DIRS = ("/etc/cdi", "/var/run/cdi")
_CONTAINERD_PLUGINS = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "cri")  # config version 3, 2, 1

type Table = Mapping[str, Any]


def containerd_settings(document: Table) -> tuple[bool | None, tuple[str, ...] | None]:
    """`enable_cdi` and `cdi_spec_dirs` of a containerd configuration of any version; None where not stated."""
    plugins = _table(document, "plugins")
    enabled: bool | None = None
    dirs: tuple[str, ...] | None = None
    for name in reversed(_CONTAINERD_PLUGINS):
        plugin = _table(plugins, name)
        enabled = plugin["enable_cdi"] if isinstance(plugin.get("enable_cdi"), bool) else enabled
        dirs = _texts(plugin.get("cdi_spec_dirs"), dirs)
    return enabled, dirs


def crio_settings(document: Table) -> tuple[bool | None, tuple[str, ...] | None]:
    """CRI-O can't switch CDI off but by an empty list of folders."""
    dirs = _texts(_table(_table(document, "crio"), "runtime").get("cdi_spec_dirs"), None)
    return (None if dirs is None else bool(dirs)), dirs


def socket_of(document: Table) -> str:
    """Where containerd serves by its configuration."""
    address = _table(document, "grpc").get("address")
    return address if isinstance(address, str) else "/run/containerd/containerd.sock"


def runtime(seen: Runtime | None, cdi_dir: str) -> Finding:
    """Whether it knows CDI, has it on, and reads the folder that we write to."""
    if seen is None:
        return unknown(
            RUNTIME,
            "No container runtime was found (containerd, CRI-O).",
            "Look whether --proc-root is the node's /proc.",
        )
    version = numbers_of(seen.version)
    if version and version < _CDI_SINCE[seen.name]:
        least = ".".join(map(str, _CDI_SINCE[seen.name]))
        return _problem("TooOld", f"{_named(seen)} does not know CDI names.", f"Update it to {least} or newer.")
    if seen.trouble:
        return unknown(RUNTIME, f"The configuration of {_named(seen)} can't be read: {seen.trouble}.", "Look at it.")
    if seen.cdi_enabled is False or (seen.cdi_enabled is None and version and version < _ON_BY_DEFAULT[seen.name]):
        return _off(seen)
    return _folders(seen, cdi_dir, known=seen.cdi_enabled is not None or bool(version))


def _folders(seen: Runtime, cdi_dir: str, *, known: bool) -> Finding:
    """`known`: that CDI is on."""
    dirs = seen.spec_dirs if seen.spec_dirs is not None else _DEFAULT_DIRS
    if _plain(cdi_dir) not in map(_plain, dirs):
        return _problem(
            "OtherFolder",
            f"{_named(seen)} reads CDI files in {', '.join(dirs)}, and we write them to {cdi_dir}.",
            f"Add {cdi_dir} to cdi_spec_dirs in {seen.config_file} and restart it, or set --cdi-dir.",
        )
    if not known:
        return unknown(
            RUNTIME,
            f"{_named(seen)} does not state enable_cdi, and its version is not known.",
            "From 2.0 on CDI is on by default; give the doctor a way to the API server to know the version.",
        )
    return ok(RUNTIME, f"{_named(seen)} reads CDI files in {', '.join(dirs)}.")


def _off(seen: Runtime) -> Finding:
    plugin = _CONTAINERD_PLUGINS[0] if numbers_of(seen.version) >= (2, 0) else _CONTAINERD_PLUGINS[1]
    where = f'enable_cdi = true below [plugins."{plugin}"]' if seen.name == "containerd" else "cdi_spec_dirs"
    return _problem("CdiOff", f"{_named(seen)} has CDI off.", f"Set {where} in {seen.config_file} and restart it.")


def _problem(reason: str, what: str, next_step: str) -> Finding:
    return Finding(
        check=RUNTIME, verdict=Verdict.PROBLEM, reason=reason, what=what,
        why="Pods with claims fail with unresolvable CDI devices.", next_step=next_step,
    )  # fmt: skip


def _named(seen: Runtime) -> str:
    return f"{seen.name} {seen.version}".strip()


def _plain(folder: str) -> str:
    """/var/run is a link to /run."""
    plain = folder.rstrip("/")
    return plain.removeprefix("/var") if plain.startswith("/var/run/") else plain


def _table(document: Table, key: str) -> Table:
    found = document.get(key)
    return found if isinstance(found, Mapping) else {}


def _texts(value: object, otherwise: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return tuple(map(str, value)) if isinstance(value, list) else otherwise

"""The answer of `nvidia-ctk cdi generate --format json` to what is common to all cards. Pure and strict.

A field that CDI (SPEC.md, schema/defs.json) does not know, or an answer without libcuda, is a ToolkitError: half a
driver in a container fails later and in worse words than what the node driver finds itself.
"""

from __future__ import annotations

import msgspec

from nodedriver.cdi import MPS_PIPE_DIRECTORY, DriverEdits, Hook, Mount

_OURS = ("NVIDIA_VISIBLE_DEVICES",)  # environment that our own file sets


class ToolkitError(Exception):
    """nvidia-ctk can't be asked, or its answer not be used. The text says why."""


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Any field that is not named is an error."""


class _Mount(_Strict, frozen=True):
    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""


class _Hook(_Strict, frozen=True):
    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class _Edits(_Strict, frozen=True):
    env: tuple[str, ...] = ()
    device_nodes: tuple[msgspec.Raw, ...] = ()
    net_devices: tuple[msgspec.Raw, ...] = ()
    mounts: tuple[_Mount, ...] = ()
    hooks: tuple[_Hook, ...] = ()
    intel_rdt: msgspec.Raw = msgspec.Raw()
    additional_gids: tuple[int, ...] = msgspec.field(name="additionalGids", default=())


class _Spec(_Strict, frozen=True):
    cdi_version: str
    kind: str
    devices: tuple[msgspec.Raw, ...]
    container_edits: _Edits
    annotations: dict[str, str] = {}


_DECODER = msgspec.json.Decoder(_Spec)


def common_edits(answer: bytes, driver_root: str, host_driver_root: str) -> DriverEdits:
    """Files, environment and hooks for every container; paths below our driver root become those of the host."""
    try:
        edits = _DECODER.decode(answer).container_edits
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ToolkitError(f"its answer is no CDI specification that is known here: {error}") from error
    mounts = tuple(
        Mount(_on_host(mount.host_path, driver_root, host_driver_root), mount.container_path, mount.options)
        for mount in edits.mounts
        if mount.container_path != MPS_PIPE_DIRECTORY  # where a share of ours has its own daemon
    )
    if not any(mount.container_path.rpartition("/")[2].startswith("libcuda.so") for mount in mounts):
        raise ToolkitError(f"its answer has {len(mounts)} files and no libcuda.so among them")
    env = tuple(entry for entry in edits.env if entry.partition("=")[0] not in _OURS)
    return DriverEdits(mounts=mounts, env=env, hooks=tuple(_hook(hook) for hook in edits.hooks))


def _hook(hook: _Hook) -> Hook:
    return Hook(name=hook.hook_name, path=hook.path, args=hook.args, env=hook.env)


def _on_host(path: str, driver_root: str, host_driver_root: str) -> str:
    root = driver_root.rstrip("/")
    if root and path.startswith(f"{root}/"):
        return f"{host_driver_root.rstrip('/')}{path.removeprefix(root)}"
    return path

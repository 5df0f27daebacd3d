"""A checker of CDI spec files by the rules of the Container Device Interface (SPEC.md and schema/defs.json), strict.

Unknown fields, a version lower than the fields need, and names that the loader refuses are all errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_KIND = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DEVICE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
_EDITS = {"env", "deviceNodes", "hooks", "mounts", "netDevices", "intelRdt", "additionalGids"}
_NODE = {"path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"}
_HOOK = {"hookName", "path", "args", "env", "timeout"}
_HOOK_NAMES = {"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"}
_MOUNT = {"hostPath", "containerPath", "options", "type"}


def faults(text: bytes) -> list[str]:
    """Everything that is wrong with the file; empty when a runtime will take it."""
    return list(_spec(json.loads(text)))


def _spec(spec: dict[str, Any]) -> Iterator[str]:
    yield from _unknown(spec, {"cdiVersion", "kind", "annotations", "devices", "containerEdits"}, "spec")
    if spec.get("cdiVersion") not in _VERSIONS:
        yield f"cdiVersion {spec.get('cdiVersion')!r} is no released version"
    elif _VERSIONS.index(spec["cdiVersion"]) < _VERSIONS.index(_lowest(spec)):
        yield f"cdiVersion {spec['cdiVersion']} is lower than the {_lowest(spec)} that the content needs"
    if not _KIND.fullmatch(spec.get("kind", "")):
        yield f"kind {spec.get('kind')!r} is not vendor/class"
    devices = spec.get("devices") or []
    if not devices:
        yield "no devices"
    names = [device.get("name", "") for device in devices]
    yield from (f"device name {name!r} is malformed" for name in names if not _DEVICE.fullmatch(name))
    if len(set(names)) != len(names):
        yield "a device name comes twice"
    for device in devices:
        yield from _unknown(device, {"name", "annotations", "containerEdits"}, "device")
        if not any((device.get("containerEdits") or {}).values()):
            yield f"device {device.get('name')} edits nothing"
        yield from _edits(device.get("containerEdits") or {})
    yield from _edits(spec.get("containerEdits") or {})


def _lowest(spec: dict[str, Any]) -> str:
    """The lowest version for the content that this checker knows of."""
    every = [spec.get("containerEdits") or {}, *(device["containerEdits"] for device in spec["devices"])]
    if any(edits.get("additionalGids") or edits.get("intelRdt") for edits in every):
        return "0.7.0"
    if spec.get("annotations") or any(device.get("annotations") for device in spec["devices"]):
        return "0.6.0"
    if any(device["name"][:1].isdigit() for device in spec["devices"]) or any(
        "hostPath" in node for edits in every for node in edits.get("deviceNodes", [])
    ):
        return "0.5.0"
    return "0.4.0" if any("type" in mount for edits in every for mount in edits.get("mounts", [])) else "0.3.0"


def _edits(edits: dict[str, Any]) -> Iterator[str]:
    yield from _unknown(edits, _EDITS, "containerEdits")
    yield from (f"env {entry!r} is not NAME=value" for entry in edits.get("env", []) if not entry.partition("=")[1])
    for node in edits.get("deviceNodes", []):
        yield from _unknown(node, _NODE, "deviceNode")
        if not node.get("path", "").startswith("/"):
            yield f"device node {node} has no absolute path"
        if node.get("type", "c") not in ("b", "c", "u", "p"):
            yield f"device node {node} has an unknown type"
        if not set(node.get("permissions", "")) <= set("rwm"):
            yield f"device node {node} has unknown permissions"
    for hook in edits.get("hooks", []):
        yield from _unknown(hook, _HOOK, "hook")
        if hook.get("hookName") not in _HOOK_NAMES or not hook.get("path", "").startswith("/"):
            yield f"hook {hook} has an unknown name or no absolute path"
    for mount in edits.get("mounts", []):
        yield from _unknown(mount, _MOUNT, "mount")
        if not (mount.get("hostPath") and mount.get("containerPath", "").startswith("/")):
            yield f"mount {mount} lacks a path"


def _unknown(given: dict[str, Any], known: set[str], where: str) -> Iterator[str]:
    yield from (f"unknown field {name} in {where}" for name in sorted(given.keys() - known))

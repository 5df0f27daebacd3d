"""Who manages which field, and server-side apply (KEP-555; rules of structured-merge-diff, merge/update.go).

Works on `metadata.managedFields` of plain objects. Not done: versions of one object are never converted, and a status
reset by a strategy is not tracked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from simulator.api.failures import ApiError
from simulator.api.schema import Schema, Spec, item_step, leaves
from simulator.kinds import Kind

type Path = tuple[str, ...]
type Object = dict[str, Any]

_SERVERS: Final = frozenset(
    {
        "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion",
        "deletionTimestamp", "deletionGracePeriodSeconds", "generateName",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manager:
    """Who writes, how (`Apply` or `Update`), to which subresource, and when."""

    name: str
    operation: str
    subresource: str
    now: str
    force: bool = False


type _Owner = tuple[str, str, str]  # manager, operation, subresource


def tracked(schema: Schema, kind: Kind, before: Object | None, after: Object, manager: Manager) -> Object:
    """`after` with managedFields that say what this update changed."""
    was, now = _fields(schema, kind, before), _fields(schema, kind, after)
    # Clients send back what they read; only a list emptied on purpose takes the managers away.
    asked = after["metadata"].get("managedFields")
    owners = _owners(after if before is None or asked == [] else before)
    changed = {path for path, value in now.items() if path not in was or was[path] != value}
    gone = was.keys() - now.keys()
    if not changed and not gone:
        return _managed(after, owners, {}, kind)
    owners = {owner: paths - changed - gone for owner, paths in owners.items()}
    mine = (manager.name, manager.operation, manager.subresource)
    owners[mine] = owners.get(mine, set()) | changed
    return _managed(after, owners, {mine: manager.now}, kind, before)


def applied(schema: Schema, kind: Kind, live: Object | None, given: Object, manager: Manager) -> Object:
    """The object after the apply; ApiError 409 naming each field that another manager holds with another value."""
    wanted = _fields(schema, kind, given)
    base = live or {"metadata": {"name": given["metadata"]["name"]}}
    owners = _owners(base)
    mine: _Owner = (manager.name, "Apply", manager.subresource)
    taken = _conflicts(owners, mine, wanted, _fields(schema, kind, base))
    if taken and not manager.force:
        raise _conflict(kind, given["metadata"]["name"], taken)
    contested = {path for paths in taken.values() for path in paths}
    held = owners.get(mine, set())
    others = {owner: paths - contested for owner, paths in owners.items() if owner != mine}
    merged = _merge(schema, schema.root(kind), base, _without_managers(given))
    given_up = held - wanted.keys() - {each for paths in others.values() for each in paths}
    # An item goes before its fields: its key fields say which one it is.
    for path in sorted(given_up, key=lambda path: (path[-1] != ".", len(path))):
        merged = _removed(schema, schema.root(kind), merged, path)
    after = {**merged, "apiVersion": kind.api_version, "kind": kind.kind}
    return _managed(after, others | {mine: set(wanted)}, {mine: manager.now}, kind, live)


def _conflicts(
    owners: Mapping[_Owner, set[Path]], mine: _Owner, wanted: Mapping[Path, Any], live: Mapping[Path, Any]
) -> dict[_Owner, list[Path]]:
    found = {}
    for owner, paths in owners.items():
        fought = [path for path in wanted if path in paths and path in live and live[path] != wanted[path]]
        if fought and owner != mine:
            found[owner] = fought
    return found


def _conflict(kind: Kind, name: str, taken: Mapping[_Owner, list[Path]]) -> ApiError:
    causes = []
    for (manager, operation, _), paths in taken.items():
        using = "" if operation == "Apply" else f" using {kind.api_version}"
        message = f'conflict with "{manager}"{using}'
        causes += [{"reason": "FieldManagerConflict", "message": message, "field": _dotted(path)} for path in paths]
    count = len(causes)
    told = "; ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    plural = "conflict" if count == 1 else "conflicts"
    return ApiError("Conflict", f"Apply failed with {count} {plural}: {told}", kind=kind, name=name, causes=causes)


def _dotted(path: Path) -> str:
    """A path as `fieldpath.Path.String` writes it: `.spec.containers[name="a"].image`."""
    told = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "k":
            keys = msgspec.json.decode(rest)
            told += "[" + ",".join(f"{key}={msgspec.json.encode(keys[key]).decode()}" for key in sorted(keys)) + "]"
        elif kind == "v":
            told += f"[={rest}]"
        elif kind == "f":
            told += f".{rest}"
    return told


def _fields(schema: Schema, kind: Kind, given: Object | None) -> dict[Path, Any]:
    """Every field that can be managed, with its value."""
    if given is None:
        return {}
    content = {key: value for key, value in given.items() if key not in {"apiVersion", "kind"}}
    content["metadata"] = {key: value for key, value in given["metadata"].items() if key not in _SERVERS}
    found = dict(leaves(schema, schema.root(kind), content))
    return {path: value for path, value in found.items() if path not in {(), ("f:metadata",)}}


def _merge(schema: Schema, spec: Spec, live: Any, given: Any) -> Any:
    if isinstance(live, dict) and isinstance(given, dict) and spec["type"] in {"object", "map"}:
        made = dict(live)
        for name, each in given.items():
            made[name] = _merge(schema, schema.child(spec, name), live.get(name), each)
        return made
    if spec["type"] == "list" and "keys" in spec and isinstance(live, list):
        return _merge_items(schema, spec, live, given)
    if spec["type"] == "list" and spec.get("set") and isinstance(live, list):
        return live + [each for each in given if each not in live]
    return given


def _merge_items(schema: Schema, spec: Spec, live: list[Any], given: list[Any]) -> list[Any]:
    by_step = {item_step(spec, item): item for item in live}
    for item in given:
        step = item_step(spec, item)
        by_step[step] = _merge(schema, spec["items"], by_step[step], item) if step in by_step else item
    return list(by_step.values())


def _removed(schema: Schema, spec: Spec, value: Any, path: Path) -> Any:
    """The value without the field at the path; as it is where there is no such field."""
    step, rest = path[0], path[1:]
    kind, _, name = step.partition(":")
    if kind == "f" and isinstance(value, dict) and name in value:
        if not rest:
            return {key: each for key, each in value.items() if key != name}
        return value | {name: _removed(schema, schema.child(spec, name), value[name], rest)}
    if kind == "k" and isinstance(value, list):
        if rest == (".",):
            return [item for item in value if item_step(spec, item) != step]
        return [
            _removed(schema, spec["items"], item, rest) if item_step(spec, item) == step else item for item in value
        ]
    if kind == "v" and isinstance(value, list):
        return [item for item in value if msgspec.json.encode(item).decode() != name]
    return value


def _owners(stored: Object) -> dict[_Owner, set[Path]]:
    owners: dict[_Owner, set[Path]] = {}
    for entry in stored["metadata"].get("managedFields", ()):
        owner = (entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", ""))
        owners[owner] = set(_paths(entry.get("fieldsV1", {})))
    return owners


def _paths(fields: Mapping[str, Any]) -> Iterable[Path]:
    for step, inner in fields.items():
        if step == ".":
            yield (".",)
        elif not inner:
            yield (step,)
        else:
            yield from ((step, *rest) for rest in _paths(inner))


def _managed(
    after: Object, owners: Mapping[_Owner, set[Path]], written: Mapping[_Owner, str], kind: Kind,
    before: Object | None = None,
) -> Object:  # fmt: skip
    times = _times(before or after) | dict(written)
    entries = [_entry(owner, paths, times.get(owner, ""), kind) for owner, paths in owners.items() if paths]
    entries.sort(key=lambda entry: (entry["operation"], entry.get("time", ""), entry["manager"]))
    meta = {key: value for key, value in after["metadata"].items() if key != "managedFields"}
    return after | {"metadata": meta | ({"managedFields": entries} if entries else {})}


def _times(stored: Object) -> dict[_Owner, str]:
    return {
        (entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", "")): entry.get("time", "")
        for entry in stored["metadata"].get("managedFields", ())
    }


def _entry(owner: _Owner, paths: set[Path], time: str, kind: Kind) -> Object:
    manager, operation, subresource = owner
    fields: Object = {}
    for path in sorted(paths):
        at = fields
        for step in path:
            at = at.setdefault(step, {})
    entry: Object = {"manager": manager, "operation": operation, "apiVersion": kind.api_version, "time": time}
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": fields}
    return entry | ({"subresource": subresource} if subresource else {})


def _without_managers(given: Object) -> Object:
    return given | {"metadata": {key: each for key, each in given["metadata"].items() if key != "managedFields"}}

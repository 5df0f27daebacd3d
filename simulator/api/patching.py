"""Merge patch (RFC 7396), JSON patch (RFC 6902) and strategic merge patch over plain values.

Of the strategic kind: keyed lists merge by their key, `$patch: delete|replace` are known; `$setElementOrder`,
`$retainKeys` and `$deleteFromPrimitiveList` are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.api.failures import ApiError
from simulator.api.schema import Schema, Spec


def merge(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    made = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merge(made.get(key), value)
    return made


def strategic(schema: Schema, spec: Spec, target: Any, patch: Any) -> Any:
    """Strategic merge by the merge keys of the kind; ApiError 400 for a directive that is not known."""
    if isinstance(patch, dict):
        return _strategic_object(schema, spec, target, patch)
    if isinstance(patch, list) and spec["type"] == "list" and isinstance(target, list):
        if "merge" in spec:
            return _strategic_items(schema, spec, target, patch)
        if spec.get("set"):
            return target + [each for each in patch if each not in target]
    return patch


def _strategic_object(schema: Schema, spec: Spec, target: Any, patch: dict[str, Any]) -> Any:
    _known_directives(patch)
    content = {key: value for key, value in patch.items() if key != "$patch"}
    made = dict(target) if isinstance(target, dict) and patch.get("$patch") != "replace" else {}
    for key, value in content.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = strategic(schema, schema.child(spec, key), made.get(key), value)
    return made


def _strategic_items(schema: Schema, spec: Spec, target: list[Any], patch: list[Any]) -> list[Any]:
    key, items = spec["merge"], {item.get(spec["merge"]): item for item in target}
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    for item in patch:
        if key not in item:
            raise ApiError("BadRequest", f"map: {item} does not contain declared merge key: {key}")
        if item.get("$patch") == "delete":
            items.pop(item[key], None)
        else:
            items[item[key]] = strategic(schema, spec["items"], items.get(item[key]), item)
    return list(items.values())


def _known_directives(patch: dict[str, Any]) -> None:
    unknown = [key for key in patch if key.startswith("$") and key != "$patch"]
    if unknown or patch.get("$patch", "replace") not in {"replace", "delete", "merge"}:
        raise ApiError(
            "BadRequest", f"strategic merge patch: {unknown or patch['$patch']} is not known to the simulator"
        )


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902; ApiError 422 where an operation can't be done, as the API server answers."""
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise ApiError("BadRequest", "a JSON patch is a list of operations")
    for operation in operations:
        target = _operate(target, operation)
    return target


def _operate(target: Any, operation: dict[str, Any]) -> Any:
    path = _steps(operation.get("path", ""))
    match operation.get("op"):
        case "add" | "replace" as verb:
            return _put(target, path, operation.get("value"), insert=verb == "add")
        case "remove":
            return _put(target, path, _GONE, insert=False)
        case "copy":
            return _put(target, path, _at(target, _steps(operation.get("from", ""))), insert=True)
        case "move":
            start = _steps(operation.get("from", ""))
            return _put(_put(target, start, _GONE, insert=False), path, _at(target, start), insert=True)
        case "test":
            if _at(target, path) != operation.get("value"):
                raise _impossible(f"testing value {operation.get('path')} failed: test failed")
            return target
    raise ApiError("BadRequest", f"unknown operation {operation.get('op')!r} in a JSON patch")


_GONE = object()


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _at(target: Any, path: Sequence[str]) -> Any:
    for step in path:
        target = target[_index(target, step)] if isinstance(target, list) else _member(target, step)
    return target


def _member(target: Any, step: str) -> Any:
    if not isinstance(target, dict) or step not in target:
        raise _impossible(f"doc is missing path: {step}: missing value")
    return target[step]


def _put(target: Any, path: Sequence[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(target, list):
        return _put_item(target, path, value, insert=insert)
    if rest:
        return target | {step: _put(_member(target, step), rest, value, insert=insert)}
    if not isinstance(target, dict):
        raise _impossible(f"doc is missing path: {step}: missing value")
    if not insert:
        _member(target, step)
    kept = {key: each for key, each in target.items() if key != step}
    return kept if value is _GONE else target | {step: value}


def _put_item(target: list[Any], path: Sequence[str], value: Any, *, insert: bool) -> list[Any]:
    if path[0] == "-" and insert and len(path) == 1:
        return [*target, value]
    at = _index(target, path[0], one_more=insert and len(path) == 1)
    if len(path) > 1:
        return [*target[:at], _put(target[at], path[1:], value, insert=insert), *target[at + 1 :]]
    kept = target[at:] if insert else target[at + 1 :]
    return [*target[:at], *([] if value is _GONE else [value]), *kept]


def _index(target: list[Any], step: str, *, one_more: bool = False) -> int:
    if not step.isdecimal() or int(step) >= len(target) + one_more:
        raise _impossible(f"error in index {step}: Unable to access invalid index")
    return int(step)


def _impossible(what: str) -> ApiError:
    return ApiError("Invalid", f"the server rejected our request due to an error in our request: {what}")

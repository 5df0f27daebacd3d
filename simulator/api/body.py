"""A request body to plain values: JSON or YAML, one document, with doubled keys remembered for strict validation.

May not know kinds. Numbers, booleans and null as YAML 1.1 reads them; times stay text, as in Kubernetes.
"""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from simulator.api.failures import ApiError

JSON: Final = "application/json"
YAML: Final = "application/yaml"
MOST_BYTES: Final = 3 * 1024 * 1024  # apiserver MaxRequestBodyBytes


class Doubled(dict[str, Any]):
    """An object some of whose keys stood in it twice; the last one counts, as in Go."""

    keys_twice: tuple[str, ...] = ()


class _Loader(yaml.SafeLoader):
    """YAML without times, anchors expanded by hand or merge keys."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":merge", ":value"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse(body: bytes, media_type: str) -> Any:
    """The document; ApiError 400 for a body that is none, 413 for one too large, 415 for another type than these."""
    if len(body) > MOST_BYTES:
        raise ApiError("RequestEntityTooLarge", f"Request entity too large: limit is {MOST_BYTES}")
    if media_type.endswith("json") or not media_type:
        return _json(body)
    if media_type.endswith("yaml"):
        return _yaml(body)
    known = f"{JSON}, {YAML}"
    raise ApiError(
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {known}",
    )


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = Doubled(pairs)
    if len(made) == len(pairs):
        return dict(pairs)
    seen: set[str] = set()
    made.keys_twice = tuple(dict.fromkeys(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]  # add gives None
    return made


def _json(body: bytes) -> Any:
    try:
        return json.loads(body, object_pairs_hook=_pairs)
    except (ValueError, RecursionError) as error:
        raise ApiError("BadRequest", f"the object provided is unrecognized (must be of type json): {error}") from error


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    pairs = [
        (loader.construct_object(key, deep=True), loader.construct_object(value, deep=True))
        for key, value in node.value
    ]
    return _pairs([(key if isinstance(key, str) else json.dumps(key), value) for key, value in pairs])


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _yaml(body: bytes) -> Any:
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(body, Loader=_Loader)):
            raise ApiError("BadRequest", "yaml: aliases are not read by the simulator")
        return yaml.load(body, Loader=_Loader)  # noqa: S506  # a subclass of the safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ApiError("BadRequest", f"the object provided is unrecognized (must be of type yaml): {error}") from error

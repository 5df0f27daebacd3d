"""A workload that somebody pastes, with the devices of a wish put into it; all else stays as it was, but for comments.

Pure. Nothing is trusted: at most 1 MB, one document, no anchors or aliases (a few lines of them can grow to gigabytes),
no tags, no double keys, kinds that hold one pod. Scalars are read as the API server reads them (sigs.k8s.io/yaml).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from math import inf, isinf
from typing import Any, ClassVar, Final, Never, cast

import yaml

from claims.manifests import File
from claims.manifests.claims import DEVICE_REQUEST, pod_claim
from claims.manifests.workloads import container_resources
from claims.manifests.yaml import Value, document
from claims.refusals import Code, RefusalError, quoted, refuse
from claims.wish import ClassFacts, Style, Wish
from dra.names import is_dns_subdomain

FIELD: Final = "manifest"
MAX_BYTES: Final = 1_000_000
MAX_DEPTH: Final = 64
MAX_NODES: Final = 20_000
_TEMPLATE: Final = ("spec", "template", "spec")
# Where each kind holds the pod's spec.
_POD_SPECS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("v1", "Pod"): ("spec",),
    ("apps/v1", "Deployment"): _TEMPLATE,
    ("apps/v1", "StatefulSet"): _TEMPLATE,
    ("apps/v1", "DaemonSet"): _TEMPLATE,
    ("apps/v1", "ReplicaSet"): _TEMPLATE,
    ("batch/v1", "Job"): _TEMPLATE,
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
}
_KINDS: Final = ", ".join(kind for _, kind in _POD_SPECS)


def patch(text: str, wish: Wish, facts: ClassFacts) -> File:
    """The pasted workload with the wish's devices in its first container; RefusalError says what is wrong with it."""
    workload = _read(text)
    where = _POD_SPECS.get((str(workload.get("apiVersion")), str(workload.get("kind"))))
    if where is None:
        _no(Code.PASTED_KIND, value=quoted(str(workload.get("kind"))), known=_KINDS)
    _into_namespace(workload, wish.namespace)
    _into_pod(_pod_spec(workload, where), wish, facts)
    return File("workload.yaml", document(cast(Mapping[str, Value], workload)))


def check_size(text: str) -> None:
    """RefusalError for what is too long to be read, or holds a null character, which can't be kept either."""
    size = len(text.encode(errors="replace"))
    if size > MAX_BYTES:
        _no(Code.PASTED_SIZE, size=size, most=MAX_BYTES)
    before, null, _ = text.partition("\0")
    if null:
        _no(Code.PASTED_YAML, line=before.count("\n") + 1, reason="a null character can't be read")


def _read(text: str) -> dict[str, Any]:
    check_size(text)
    try:
        _check_events(text)
        read = yaml.load(text, Loader=_Loader)  # noqa: S506 # a SafeLoader with fewer scalars
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark, error.problem or error.context or "not readable"
        _no(Code.PASTED_YAML, line=mark.line + 1 if mark else 1, reason=quoted(problem))
    except yaml.YAMLError as error:
        _no(Code.PASTED_YAML, line=1, reason=quoted(str(error).splitlines()[0]))
    if not isinstance(read, dict):
        _no(Code.PASTED_YAML, line=1, reason="it is no mapping of keys to values")
    return read


def _check_events(text: str) -> None:
    """Refuse what may not be read at all, without building any of it."""
    documents = depth = nodes = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        nodes += isinstance(event, yaml.NodeEvent)
        if documents > 1:
            _no(Code.PASTED_DOCUMENTS, line=line)
        if isinstance(event, yaml.NodeEvent) and event.anchor:
            _no(Code.PASTED_ALIAS, line=line, value=quoted(event.anchor))
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            _no(Code.PASTED_LARGE, line=line, depth=MAX_DEPTH, nodes=MAX_NODES)
        if getattr(event, "tag", None) not in {None, "!"}:
            _no(Code.PASTED_YAML, line=line, reason="tags are not read")


class _Loader(yaml.CSafeLoader):
    """Scalars by the rules of the API server's reader: no times, no sexagesimal numbers, no merge keys."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc] # the stubs have it per instance

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 # PyYAML's own signature
        """A mapping whose keys are texts, each once."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str" or key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, "a key is no text, or comes twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern, re.ASCII), list(first))


def _number(read: Callable[[str], int | float]) -> Callable[[_Loader, yaml.ScalarNode], int | float]:
    def construct(_: _Loader, node: yaml.ScalarNode) -> int | float:
        try:
            number = read(node.value.replace("_", ""))
        except ValueError:
            number = inf
        if isinstance(number, float) and isinf(number):
            raise yaml.constructor.ConstructorError(None, None, "a number can't be read", node.start_mark)
        return number

    return construct


def _integer(text: str) -> int:
    """As Go reads it: a leading 0 means octal."""
    digits = text.lstrip("+-")
    octal = len(digits) > 1 and digits.isdecimal() and digits.startswith("0")
    number = int(digits, 8) if octal else int(digits, 0)
    return -number if text.startswith("-") else number


_resolve(
    "bool", r"(?:y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE|n|N|no|No|NO|off|Off|OFF|false|False|FALSE)\Z", "yYoOtTnNfF"
)
_resolve("null", r"(?:~|null|Null|NULL|)\Z", "~nN")
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"\Z"), [""])
_resolve("int", r"[-+]?(?:0b[01_]+|0o?[0-7_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*)\Z", "-+0123456789")
_resolve("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", "-+.0123456789")
_BOOLS: Final = {"y": True, "yes": True, "on": True, "true": True}
_Loader.add_constructor("tag:yaml.org,2002:bool", lambda _, node: _BOOLS.get(node.value.lower(), False))
_Loader.add_constructor("tag:yaml.org,2002:int", _number(_integer))
_Loader.add_constructor("tag:yaml.org,2002:float", _number(float))


def _into_namespace(workload: dict[str, Any], namespace: str) -> None:
    metadata = workload.setdefault("metadata", {})
    if not isinstance(metadata, dict) or not is_dns_subdomain(str(metadata.get("name", ""))):
        _no(Code.PASTED_SHAPE, where="metadata.name", wanted="a name")
    if metadata.setdefault("namespace", namespace) != namespace:
        _no(Code.PASTED_NAMESPACE, value=quoted(str(metadata["namespace"])), namespace=namespace)


def _pod_spec(workload: dict[str, Any], where: tuple[str, ...]) -> dict[str, Any]:
    inner: Any = workload
    for depth, key in enumerate(where, 1):
        inner = inner.get(key)
        if not isinstance(inner, dict):
            _no(Code.PASTED_SHAPE, where=".".join(where[:depth]), wanted="a mapping")
    return cast(dict[str, Any], inner)


def _into_pod(spec: dict[str, Any], wish: Wish, facts: ClassFacts) -> None:
    containers = list(_mappings(spec, "containers"))
    if not containers:
        _no(Code.PASTED_SHAPE, where="containers", wanted="a list with at least one container")
    resources = containers[0].setdefault("resources", {})
    if not isinstance(resources, dict):
        _no(Code.PASTED_SHAPE, where="containers[0].resources", wanted="a mapping")
    if wish.style is Style.EXTENDED:
        _into_limits(resources, wish, facts)
    else:
        _named(resources, "claims", {"name": DEVICE_REQUEST})
        _named(spec, "resourceClaims", pod_claim(wish))
    if wish.priority:
        spec["priorityClassName"] = wish.priority


def _into_limits(resources: dict[str, Any], wish: Wish, facts: ClassFacts) -> None:
    limits = resources.setdefault("limits", {})
    if not isinstance(limits, dict):
        _no(Code.PASTED_SHAPE, where="containers[0].resources.limits", wanted="a mapping")
    limits |= cast(dict[str, Any], container_resources(wish, facts)["limits"])


def _named(holder: dict[str, Any], key: str, entry: Mapping[str, Value]) -> None:
    """The list with this entry in the place of one that has its name, else at the end."""
    entries = list(_mappings(holder, key))
    names = [each.get("name") for each in entries]
    at = names.index(entry["name"]) if entry["name"] in names else len(names)
    holder[key] = [*entries[:at], dict(entry), *entries[at + 1 :]]


def _mappings(holder: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    entries = holder.get(key) or []
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        _no(Code.PASTED_SHAPE, where=key, wanted="a list of mappings")
    yield from entries


def _no(code: Code, **facts: object) -> Never:
    raise RefusalError(refuse(code, FIELD, **facts))

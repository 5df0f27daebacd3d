"""Who may do what: RBAC over the stored roles and bindings, and constrained impersonation of people (KEP-5284).

Follows kubernetes/plugin/pkg/auth/authorizer/rbac and apiserver/pkg/endpoints/filters/impersonation. Not done: other
modes of impersonation, the old verb among them, aggregated ClusterRoles, the node authorizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from simulator import kinds
from simulator.api.failures import ApiError
from simulator.kinds import Kind
from simulator.store import Object, Store

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
ANONYMOUS: Final = "system:anonymous"
_ACCOUNT: Final = "system:serviceaccount:"
# What everyone may read of the server itself (system:discovery, system:public-info-viewer).
_OPEN_PATHS: Final = ("/api", "/apis", "/openapi", "/healthz", "/livez", "/readyz", "/version")


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What is asked: a verb on a resource, or on a path where `path` is set."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


def account(namespace: str, name: str) -> User:
    """A ServiceAccount as its token makes it known."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"{_ACCOUNT}{namespace}:{name}", groups)


def allows(store: Store, user: User, asked: Attributes) -> bool:
    """Whether a rule allows it."""
    if MASTERS in user.groups:
        return True
    if asked.path:
        return user.name != ANONYMOUS and _is_open(asked.path)
    return any(_rule_allows(rule, asked) for rule in _rules(store, user, asked.namespace))


def require(store: Store, user: User, asked: Attributes, kind: Kind | None = None) -> None:
    """ApiError 403 in the API server's words where no rule allows it."""
    if not allows(store, user, asked):
        name = asked.name
        start = f'{kind.qualified if kind else asked.resource} "{name}" is forbidden: ' if name else ""
        start = start or (
            f"{kind.qualified if kind else asked.resource} is forbidden: " if asked.resource else "forbidden: "
        )
        raise ApiError("Forbidden", start + _refusal(user, asked), kind=kind, name=name)


def _refusal(user: User, asked: Attributes) -> str:
    if asked.path:
        return f'User "{user.name}" cannot {asked.verb} path "{asked.path}"'
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    told = f'User "{user.name}" cannot {asked.verb} resource "{resource}" in API group "{asked.group}"'
    return f'{told} in the namespace "{asked.namespace}"' if asked.namespace else f"{told} at the cluster scope"


def _is_open(path: str) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in _OPEN_PATHS)


def _rules(store: Store, user: User, namespace: str) -> Iterator[Mapping[str, Any]]:
    for binding in store.all(kinds.CLUSTER_ROLE_BINDING):
        if _binds(binding, user):
            yield from _role_rules(store, binding["roleRef"], "")
    if namespace:
        for binding in store.all(kinds.ROLE_BINDING, namespace):
            if _binds(binding, user):
                yield from _role_rules(store, binding["roleRef"], namespace)


def _role_rules(store: Store, reference: Mapping[str, str], namespace: str) -> Iterable[Mapping[str, Any]]:
    kind, scope = (kinds.ROLE, namespace) if reference["kind"] == "Role" else (kinds.CLUSTER_ROLE, "")
    role = store.find(kind, reference["name"], scope)
    return role.get("rules") or () if role else ()


def _binds(binding: Object, user: User) -> bool:
    return any(_is_subject(subject, user, binding) for subject in binding.get("subjects", ()))


def _is_subject(subject: Mapping[str, str], user: User, binding: Object) -> bool:
    match subject["kind"]:
        case "User":
            return subject["name"] == user.name
        case "Group":
            return subject["name"] in user.groups
        case "ServiceAccount":
            namespace = subject.get("namespace") or binding["metadata"].get("namespace", "")
            return user.name == f"{_ACCOUNT}{namespace}:{subject['name']}"
    return False


def _rule_allows(rule: Mapping[str, Any], asked: Attributes) -> bool:
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    resources = rule.get("resources", ())
    anywhere = f"*/{asked.subresource}" in resources if asked.subresource else False
    return (
        _has(rule.get("verbs", ()), asked.verb)
        and _has(rule.get("apiGroups", ()), asked.group)
        and (_has(resources, resource) or anywhere)
        and (not rule.get("resourceNames") or asked.name in rule["resourceNames"])
    )


def _has(allowed: Iterable[str], wanted: str) -> bool:
    return any(each in {"*", wanted} for each in allowed)


def impersonated(store: Store, user: User, wanted: User, asked: Attributes) -> User:
    """The user to act as; ApiError 403 where the mode user-info does not allow it, or where another mode is meant."""
    if wanted.name.startswith("system:") and MASTERS not in user.groups:
        raise ApiError("Forbidden", f'"{wanted.name}": the simulator impersonates people, no nodes and no accounts')
    require(store, user, replace(asked, verb=f"impersonate-on:user-info:{asked.verb}"))
    for target in _targets(wanted):
        require(store, user, target)
    if wanted.name == ANONYMOUS or AUTHENTICATED in wanted.groups:
        return wanted
    return replace(wanted, groups=(*wanted.groups, AUTHENTICATED))


def _targets(wanted: User) -> Iterator[Attributes]:
    base = Attributes(verb="impersonate:user-info", group="authentication.k8s.io")
    yield replace(base, resource="users", name=wanted.name)
    if wanted.uid:
        yield replace(base, resource="uids", name=wanted.uid)
    for each in wanted.groups:
        yield replace(base, resource="groups", name=each)
    for key, values in wanted.extra.items():
        for value in values:
            yield replace(base, resource="userextras", subresource=key, name=value)

"""The functions of Kubernetes' authorizer. They are declared everywhere, but no device selector can get at one.

So they matter to the checker only, and whoever calls one on a `dyn` meets an error.
Follows k8s.io/apiserver/pkg/cel/library/authz.go, `Authz` and `AuthzSelectors`.
"""

from __future__ import annotations

from typing import Final

from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.types import BOOL, STRING, Type, struct

_AUTHORIZER: Final = struct("kubernetes.authorization.Authorizer")
_PATH: Final = struct("kubernetes.authorization.PathCheck")
_GROUP: Final = struct("kubernetes.authorization.GroupCheck")
_RESOURCE: Final = struct("kubernetes.authorization.ResourceCheck")
_DECISION: Final = struct("kubernetes.authorization.Decision")


def _unreachable(*_: object) -> object:
    raise CelRuntimeError("no such overload")


def _declared(name: str, result: Type, *params: Type) -> Overload:
    return Overload(name, params, result, _unreachable, member=True)


FUNCTIONS: Final[Library] = {
    "path": (_declared("authorizer_path", _PATH, _AUTHORIZER, STRING),),
    "group": (_declared("authorizer_group", _GROUP, _AUTHORIZER, STRING),),
    "serviceAccount": (_declared("authorizer_serviceaccount", _AUTHORIZER, _AUTHORIZER, STRING, STRING),),
    "resource": (_declared("groupcheck_resource", _RESOURCE, _GROUP, STRING),),
    "subresource": (_declared("resourcecheck_subresource", _RESOURCE, _RESOURCE, STRING),),
    "namespace": (_declared("resourcecheck_namespace", _RESOURCE, _RESOURCE, STRING),),
    "name": (_declared("resourcecheck_name", _RESOURCE, _RESOURCE, STRING),),
    "check": (
        _declared("pathcheck_check", _DECISION, _PATH, STRING),
        _declared("resourcecheck_check", _DECISION, _RESOURCE, STRING),
    ),
    "errored": (_declared("decision_errored", BOOL, _DECISION),),
    "error": (_declared("decision_error", STRING, _DECISION),),
    "allowed": (_declared("decision_allowed", BOOL, _DECISION),),
    "reason": (_declared("decision_reason", STRING, _DECISION),),
    "fieldSelector": (_declared("authorizer_fieldselector", _RESOURCE, _RESOURCE, STRING),),
    "labelSelector": (_declared("authorizer_labelselector", _RESOURCE, _RESOURCE, STRING),),
}

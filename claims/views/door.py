"""The way to the cluster for a view, and what an HTTP answer says about a refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from claims.refusals import Code, Refusal, RefusalError, refuse
from dra.kube.errors import UnreachableError
from dra.kube.port import Cluster
from portal.cluster import kube_client

WRONG_VALUE = 422
_STATUS: Mapping[Code, int] = {
    Code.FORM_CHANGED: 409,
    Code.FORM_USED: 409,
    Code.NAME_TAKEN: 409,
    Code.NOT_THERE: 409,
    Code.REPLACED: 409,
    Code.DEVICE_CLASS_TAKEN: 409,
    Code.GPU_CLASS_EXISTS: 409,
    Code.GPU_CLASS_CHANGED: 409,
    Code.GPU_CLASS_NOT_THERE: 409,
    Code.GUEST: 403,
    Code.NOT_YOURS: 403,
    Code.FORBIDDEN: 403,
    Code.DENIED: 403,
    Code.OVER_QUOTA: 403,
    Code.PORTAL_FORBIDDEN: 502,
    Code.CLUSTER_SILENT: 503,
    Code.CLUSTER_BUSY: 503,
}


def cluster() -> Cluster:
    """The client; RefusalError where there is no usable configuration."""
    try:
        return kube_client()
    except UnreachableError as error:
        raise RefusalError(refuse(Code.CLUSTER_SILENT, upstream=str(error))) from error


def status_of(refusals: Sequence[Refusal]) -> int:
    """The status of an answer that says these; a wrong value is 422."""
    return next((_STATUS[refusal.code] for refusal in refusals if refusal.code in _STATUS), WRONG_VALUE)

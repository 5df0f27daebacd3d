"""Withdraw a request: delete its object, as its author and only if it still is the one we made.

Pods that run keep their devices; pods that name the template or claim from now on wait until there is one again.
"""

from __future__ import annotations

from django.db import transaction

from claims.lifecycle import Event, State, can, move
from claims.models import GpuRequest, Verb
from claims.refusals import Code, Refusal, RefusalError, refuse
from claims.services.audit import Deed, record, record_refusal
from claims.services.objects import resource_of
from claims.services.upstream import Attempt, refusal_of
from dra.kube import requests
from dra.kube.errors import ConflictError, KubeError, NotFoundError
from dra.kube.port import Cluster
from dra.kube.requests import Person
from portal.models import User
from portal.selectors import may_use


def why_not(user: User, gpu_request: GpuRequest) -> Refusal | None:
    """Why this person can't take the request back, or None."""
    if not may_use(user, gpu_request.namespace):
        return refuse(Code.NAMESPACE_FOREIGN, value=gpu_request.namespace)
    if gpu_request.user_id != user.pk:
        return refuse(Code.NOT_YOURS, author=gpu_request.user.username, name=gpu_request.name)
    if not can(State(gpu_request.state), Event.WITHDRAW):
        return refuse(Code.NOT_THERE, name=gpu_request.name, state=gpu_request.state)
    return None


def withdraw(
    gpu_request: GpuRequest, *, user: User, person: Person, cluster: Cluster, request_id: str = ""
) -> GpuRequest:
    """The row, withdrawn; an object deleted already counts as done. RefusalError: nothing was deleted."""
    refusal = why_not(user, gpu_request)
    if refusal:
        raise RefusalError(refusal)
    deed = Deed(Verb.WITHDRAW, user.username, request_id)
    try:
        _delete(gpu_request, person, cluster)
    except ConflictError as error:
        _move(gpu_request, Event.MISS, deed)
        about = {"name": gpu_request.name, "namespace": gpu_request.namespace}
        raise RefusalError(refuse(Code.REPLACED, **about)) from error
    except KubeError as error:
        resource = resource_of(gpu_request.wish).full_name
        refusal = refusal_of(error, Attempt("delete", person, gpu_request.namespace, gpu_request.name, resource))
        record_refusal(deed, (gpu_request.namespace, gpu_request.name), refusal, gpu_request)
        raise RefusalError(refusal) from error
    return _move(gpu_request, Event.WITHDRAW, deed)


def _delete(gpu_request: GpuRequest, person: Person, cluster: Cluster) -> None:
    request = requests.delete(
        resource_of(gpu_request.wish), gpu_request.name, namespace=gpu_request.namespace, uid=gpu_request.template_uid
    )
    try:
        cluster.send(request.as_person(person))
    except NotFoundError:
        return


@transaction.atomic
def _move(gpu_request: GpuRequest, event: Event, deed: Deed) -> GpuRequest:
    locked = GpuRequest.objects.select_for_update().get(pk=gpu_request.pk)
    if can(State(locked.state), event):  # the sweep may have seen it go a moment earlier
        locked.state = move(State(locked.state), event)
        locked.save(update_fields=["state", "changed_at"])
        record(deed, locked)
    return locked

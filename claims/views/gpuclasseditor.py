"""The editor of a GPU class, with a live check of its selectors on the fleet, and its deletion. For operators.

The form works without JavaScript: its button Check shows the same page with the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from claims.forms import GPUClassForm, initial_for_new, initial_of
from claims.messages import say
from claims.refusals import Refusal, RefusalError
from claims.services.gpuclass_put import Change, delete_gpu_class, put_gpu_class
from claims.views import door
from dra.objects import GPUClass
from gpuinventory.gpuclasses import Check, check, expressions_of
from gpuinventory.selectors.gpuclasses import catalogue, gpu_class
from gpuinventory.selectors.held import current
from portal.cluster import person_of
from portal.http import SignedInRequest, operator_required, page_or_part

_SEE_OTHER = 303
_OK, _WRONG = 200, 422
_FOLLOW = "Pages follow as soon as the workers have seen it."


@require_http_methods(["GET", "HEAD", "POST"])
@operator_required
def new(request: SignedInRequest) -> HttpResponse:
    """A new class; `like` in the address names one that it starts from."""
    return _edit(request, GPUClassForm(initial=_like(request.GET.get("like", ""))), "")


@require_http_methods(["GET", "HEAD", "POST"])
@operator_required
def edit(request: SignedInRequest, name: str) -> HttpResponse:
    """Change a class that an operator made."""
    return _edit(request, GPUClassForm(initial=initial_of(_found(name))), name)


@require_http_methods(["GET", "HEAD", "POST"])
@operator_required
def delete(request: SignedInRequest, name: str) -> HttpResponse:
    """Ask once more, then delete the class as the person."""
    found = _found(name)
    refusals: tuple[Refusal, ...] = ()
    if request.method == "POST":
        try:
            delete_gpu_class(
                found,
                user=request.user,
                person=person_of(request.user),
                cluster=door.cluster(),
                request_id=request.META["REQUEST_ID"],
            )
        except RefusalError as refused:
            refusals = refused.refusals
        else:
            messages.success(request, f"The class {name} was deleted. {_FOLLOW}")
            return HttpResponseRedirect(reverse("claims:gpu-classes"), status=_SEE_OTHER)
    context = {"gpu_class": found, "refusals": [say(each) for each in refusals]}
    status = door.status_of(refusals) if refusals else _OK
    return render(request, "claims/gpuclass_delete.html", context, status=status)


def _edit(request: SignedInRequest, blank: GPUClassForm, name: str) -> HttpResponse:
    if request.method != "POST":
        return _show(request, blank, name)
    form = GPUClassForm(_posted(request, name))
    if "store" not in request.POST:
        return _show(request, form, name, check_only=True)
    if not form.is_valid():
        return _show(request, form, name, status=_WRONG)
    try:
        stored = put_gpu_class(_change(request, form), cluster=door.cluster())
    except RefusalError as refused:
        return _show(request, form, name, refused.refusals, status=door.status_of(refused.refusals))
    messages.success(request, f"The class {stored.metadata.name} was stored. {_FOLLOW}")
    return HttpResponseRedirect(reverse("claims:gpu-classes"), status=_SEE_OTHER)


def _posted(request: SignedInRequest, name: str) -> dict[str, Any]:
    """What was sent; a class that exists keeps its name."""
    values: dict[str, Any] = request.POST.dict()
    return values | ({"name": name} if name else {})


def _change(request: SignedInRequest, form: GPUClassForm) -> Change:
    return Change(
        user=request.user,
        person=person_of(request.user),
        gpu_class=form.gpu_class(),
        seen=_checked(form),
        request_id=request.META["REQUEST_ID"],
    )


def _checked(form: GPUClassForm) -> Check | None:
    """What the form's own selectors mean to the fleet; None where an existing DeviceClass serves."""
    return check(form.expressions, current().snapshot) if form.generates else None


def _show(  # noqa: PLR0913 - what the one page can say
    request: SignedInRequest,
    form: GPUClassForm,
    name: str,
    refusals: Sequence[Refusal] = (),
    *,
    status: int = _OK,
    check_only: bool = False,
) -> HttpResponse:
    context = {
        "form": form,
        "name": name,
        "seen": _checked(form),
        "refusals": [say(each) for each in refusals],
        "errors": [] if check_only or not form.is_bound else form.faults(),
        "device_classes": sorted(current().snapshot.classes),
    }
    return page_or_part(request, "claims/gpuclass_edit.html", "claims/_gpuclass_check.html", context, status=status)


def _like(name: str) -> dict[str, Any]:
    held = current()
    view = catalogue(held).named(name) if name else None
    device_class = held.snapshot.classes.get(view.device_class) if view else None
    return initial_for_new(view, expressions_of(device_class) if device_class else ())


def _found(name: str) -> GPUClass:
    found = gpu_class(name)
    if found is None:
        raise Http404
    return found

"""Signing in and out, the namespace switch, what machines ask, and the pages for errors."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import PermissionDenied, RequestDataTooBig, TooManyFieldsSent
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.forms import PersonForm
from portal.http import SignedInRequest, operator_required, require_namespace, safe_next, signed_in
from portal.selectors import people_without_team, teams_with_people
from portal.services.add_person import add_person
from portal.services.join_team import join_team

SEE_OTHER = 303
UNPROCESSABLE = 422
UNAVAILABLE = 503

sign_in = LoginView.as_view(template_name="portal/sign_in.html", redirect_authenticated_user=True)
sign_out = LogoutView.as_view()


@require_POST
@signed_in
def choose_namespace(request: SignedInRequest) -> HttpResponse:
    """Remember the namespace that forms begin with, and go back."""
    namespace = request.POST.get("namespace", "")
    require_namespace(request, namespace)
    request.session["namespace"] = namespace
    return HttpResponseRedirect(safe_next(request, request.POST.get("next", "")))


@require_http_methods(["GET", "HEAD", "POST"])
@operator_required
def people(request: SignedInRequest) -> HttpResponse:
    """Teams with their people, and the form that adds a person."""
    form = PersonForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        return _add(request, form)
    context = {"form": form, "errors": form.faults(), "teams": teams_with_people(), "others": people_without_team()}
    return render(request, "portal/people.html", context, status=UNPROCESSABLE if form.errors else 200)


@transaction.atomic
def _add(request: SignedInRequest, form: PersonForm) -> HttpResponse:
    user = add_person(**form.person())
    team = form.cleaned_data["team"]
    if team:
        join_team(user=user, team=team, role=form.cleaned_data["role"])
    messages.success(request, f"{user} may sign in{f' and belongs to {team}' if team else ''}.")
    return HttpResponseRedirect(reverse("portal:people"), status=SEE_OTHER)


@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Ready means: the database answers and has our tables. A cluster that is away makes pages old, not useless."""
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        return HttpResponse(f"database: {type(error).__name__}\n", status=UNAVAILABLE, content_type="text/plain")
    if missing:
        names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in missing)
        return HttpResponse(f"not migrated: {names}\n", status=UNAVAILABLE, content_type="text/plain")
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def version(_request: HttpRequest) -> HttpResponse:
    """Which Portico this is."""
    return JsonResponse({"name": "portico", "version": settings.VERSION})


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - Django's signature
    """A form without its token: most often a page that stayed open over a sign-out."""
    sentence = "This form was opened before you signed in, or in another browser. Open the page again and send it anew."
    return refused(request, PermissionDenied(sentence))


def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403: the sentence that the refusal carries."""
    sentence = str(exception) or "You may not see this page. Ask an operator if you should."
    return render(request, "403.html", {"sentence": sentence}, status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: the sentence if the view gave one; Django's own texts name internals and are not shown."""
    first = exception.args[0] if exception.args else ""
    sentence = first if isinstance(first, str) and first else "There is no page at this address."
    return render(request, "404.html", {"sentence": sentence}, status=404)


def unreadable(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400, or 413 for what is too much to be read; the sentences of exceptions name internals and are not shown."""
    large = isinstance(exception, RequestDataTooBig | TooManyFieldsSent)
    sentence = "It is larger than any form of this portal: send less of it." if large else "Open the page once more."
    return render(request, "400.html", {"sentence": sentence}, status=413 if large else 400)


def failed(request: HttpRequest) -> HttpResponse:
    """500: the id by which an operator finds the fault in the log."""
    return render(request, "500.html", status=500)

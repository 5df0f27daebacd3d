"""The demo's own routes: come in without a password, be someone else, turn the clock, go through the hints.

They answer callers on this machine only: whoever comes from elsewhere is refused, so a demo gives nobody a sign-in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from ipaddress import ip_address

from django.contrib import messages
from django.contrib.auth import login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_POST, require_safe

from dra.kube.errors import KubeError
from portal.demo import clock, hints
from portal.demo.people import FIRST, PARTS
from portal.http import safe_next
from portal.models import User

_SEE_OTHER = 303
_BACKEND = "django.contrib.auth.backends.ModelBackend"

type _View = Callable[[HttpRequest], HttpResponse]


def _on_this_machine(view: _View) -> _View:
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if not _is_loopback(request.META.get("REMOTE_ADDR", "")):
            raise PermissionDenied("This is a demo: it answers on the machine that it runs on, and nowhere else.")
        return view(request)

    return guarded


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


@require_safe
@_on_this_machine
def enter(request: HttpRequest) -> HttpResponse:
    """In place of the page for signing in: the first visit is the developer's."""
    if not request.user.is_authenticated:
        _become(request, FIRST)
    return HttpResponseRedirect(safe_next(request, request.GET.get("next", "")))


@require_POST
@_on_this_machine
def be(request: HttpRequest) -> HttpResponse:
    """Go on as another person of the demo."""
    name = request.POST.get("person", "")
    if name not in {part.username for part in PARTS}:
        raise Http404(f"Nobody of this demo is named {name[:63]}.")
    shown = hints.current(request)
    _become(request, name)
    hints.choose(request, shown.number if shown else 0)
    return _back(request)


@require_POST
@_on_this_machine
def time(request: HttpRequest) -> HttpResponse:
    """Let the actors live at another rate, or stand still."""
    rate = request.POST.get("rate", "")
    if rate not in map(str, clock.RATES):
        raise Http404("The demo's time goes at 1 or 10 times ours, or stands still (0).")
    try:
        clock.set_rate(int(rate))
    except KubeError as error:
        messages.error(request, f"The time goes on as before, since the simulator did not take it: {error}")
    return _back(request)


@require_POST
@_on_this_machine
def hint(request: HttpRequest) -> HttpResponse:
    """Show the hint of that number; 0 shows none."""
    number = request.POST.get("number", "")
    hints.choose(request, int(number) if number in {str(each.number) for each in hints.HINTS} else 0)
    return _back(request)


def _become(request: HttpRequest, username: str) -> None:
    user = User.objects.filter(username=username).first()
    if user is None:
        raise Http404(f"The demo has no {username} yet. Run: manage.py seeddemo")
    login(request, user, backend=_BACKEND)


def _back(request: HttpRequest) -> HttpResponse:
    return HttpResponseRedirect(safe_next(request, request.POST.get("next", "")), status=_SEE_OTHER)

"""The files of the wish in an address: one, all that is applied, or a ZIP of all. The same bytes as on the page.

Nothing is written. Where the address is no wish, the answer is plain sentences: programs ask here too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from claims.manifests import Files
from claims.messages import say
from claims.refusals import Code, RefusalError, refuse
from claims.services.archive import archive
from claims.services.preview import preview
from claims.views import formnumber
from claims.views.door import WRONG_VALUE
from claims.views.files import attachment, download
from portal.http import Guarded, SignedInRequest, signed_in

type _OfWish[**P] = Callable[Concatenate[Files, str, P], HttpResponse]


def _of_wish[**P](view: _OfWish[P]) -> Guarded[P]:
    """Give the view the files and the name of the wish in the address; 422 in words where it is none."""

    @require_safe
    @signed_in
    @wraps(view)
    def answered(request: SignedInRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            files, name = _files(request)
        except RefusalError as refused:
            lines = "".join(f"{say(refusal)}\n" for refusal in refused.refusals)
            return HttpResponse(lines, status=WRONG_VALUE, content_type="text/plain; charset=utf-8")
        return view(files, name, *args, **kwargs)

    return answered


@_of_wish
def file(files: Files, wished: str, name: str) -> HttpResponse:
    """One file; 404 where the wish has none of that name."""
    found = next((each for each in files.all if each.name == name), None)
    if found is None:
        raise Http404
    return download(found, wished)


@_of_wish
def together(files: Files, wished: str) -> HttpResponse:
    """All that is applied, as one file of several documents."""
    return attachment(files.together.content, f"{wished}.yaml", "application/yaml")


@_of_wish
def bundle(files: Files, wished: str) -> HttpResponse:
    """Every file in one ZIP."""
    return attachment(archive(files), f"{wished}.zip", "application/zip")


def _files(request: SignedInRequest) -> tuple[Files, str]:
    key = request.GET.get(formnumber.PARAMETER, "")
    if not formnumber.is_one(key):
        raise RefusalError(refuse(Code.FORM_KEY))
    seen = preview(user=request.user, query=request.GET.urlencode(), key=key)
    if seen.files is None or seen.wish is None:
        raise RefusalError(*seen.refusals)
    return seen.files, seen.wish.name

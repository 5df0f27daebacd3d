"""Routes of the form, of requests and of claims: who gets what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from claims.lifecycle import State
from portal.models import Team, User
from tests.claims.rows import CLASS, KEY, QUERY, gpu_request, put_fleet, put_gpu_class
from tests.portal.routetable import Row

WISH = dict(pair.split("=") for pair in QUERY.split("&")) | {"form": KEY}
# A route about a request: only Alice's team learns that it exists.
MINE = Row(route="", alice=200, bob=200, charlie=404, operator=404, guest=404, anonymous=302)
# A file of a wish in ml-team: for others it is a wish in a namespace that is not theirs.
FILE = Row(route="", data=WISH, alice=200, bob=200, charlie=422, operator=422, guest=422, anonymous=302)
OPERATORS = Row(route="", alice=403, bob=403, charlie=403, operator=200, guest=403, anonymous=302)
# Everybody who is signed in has the page; without a team it says how to get access.
PAGE = Row(route="", alice=200, bob=200, charlie=200, operator=200, guest=200, anonymous=302)


def fleet() -> dict[str, Any]:
    """The classes that the wish names."""
    put_fleet()
    return {}


def a_file() -> dict[str, Any]:
    """The file of the template."""
    return fleet() | {"name": "template.yaml"}


def request_of_alice() -> dict[str, Any]:
    """A request whose template exists."""
    return {"pk": gpu_request(User.objects.get(username="alice"), Team.objects.get(name="ml-team")).pk}


def withdrawn_request_of_alice() -> dict[str, Any]:
    """A request that can't be taken back a second time, so that no cluster is needed to say so."""
    team = Team.objects.get(name="ml-team")
    return {"pk": gpu_request(User.objects.get(username="alice"), team, state=State.WITHDRAWN).pk}


def derived_class() -> dict[str, Any]:
    """A class that follows from a DeviceClass."""
    put_fleet()
    return {"name": CLASS}


def class_of_an_operator() -> dict[str, Any]:
    """A GPUClass in the read model."""
    put_fleet()
    put_gpu_class("training")
    return {"name": "training"}


ROWS = (
    replace(PAGE, route="claims:form", data={"form": KEY}),
    replace(FILE, route="claims:file", arrange=a_file),
    replace(FILE, route="claims:manifest", arrange=fleet),
    replace(FILE, route="claims:bundle", arrange=fleet),
    # Nothing is there to be validated but to those who may ask for GPUs.
    Row(
        route="claims:validate",
        method="post",
        alice=422,
        bob=422,
        charlie=422,
        operator=403,
        guest=403,
        anonymous=302,
    ),
    # Kept for those who may ask for GPUs; the answer leads to the form.
    Row(
        route="claims:paste",
        method="post",
        data={"text": "kind: Pod"},
        alice=303,
        bob=303,
        charlie=303,
        operator=403,
        guest=403,
        anonymous=302,
    ),
    replace(PAGE, route="claims:requests"),
    # A form without values: refused for its values to those who may create, and altogether to those who may not.
    Row(
        route="claims:requests",
        method="post",
        alice=422,
        bob=422,
        charlie=422,
        operator=403,
        guest=403,
        anonymous=302,
    ),
    replace(MINE, route="claims:request", arrange=request_of_alice),
    replace(MINE, route="claims:created-file", arrange=request_of_alice),
    replace(MINE, route="claims:withdraw", arrange=request_of_alice, bob=403),
    replace(MINE, route="claims:withdraw", method="post", arrange=withdrawn_request_of_alice, alice=409, bob=403),
    replace(PAGE, route="claims:claims"),
    replace(PAGE, route="claims:gpu-classes"),
    replace(PAGE, route="claims:gpu-class", arrange=derived_class),
    replace(OPERATORS, route="claims:gpu-class-new"),
    replace(OPERATORS, route="claims:gpu-class-new", method="post"),
    replace(OPERATORS, route="claims:gpu-class-edit", arrange=class_of_an_operator),
    replace(OPERATORS, route="claims:gpu-class-delete", arrange=class_of_an_operator),
)

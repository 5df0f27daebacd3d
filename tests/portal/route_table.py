"""Routes of the ground floor: who gets what."""

from __future__ import annotations

from tests.portal.routetable import Row

ROWS = (
    Row(route="portal:sign-in", alice=302, bob=302, charlie=302, operator=302, guest=302, anonymous=200),
    Row(
        route="portal:sign-out", method="post", alice=302, bob=302, charlie=302, operator=302, guest=302, anonymous=302
    ),
    # Only who works in Alice's namespace may choose it.
    Row(
        route="portal:choose-namespace",
        method="post",
        data={"namespace": "ml-team"},
        alice=302,
        bob=302,
        charlie=403,
        operator=403,
        guest=403,
        anonymous=302,
    ),
    Row(route="portal:people", alice=403, bob=403, charlie=403, operator=200, guest=403, anonymous=302),
    Row(
        route="portal:people",
        method="post",
        data={"username": "dora", "password": "a long enough one", "role": "requester"},
        alice=403,
        bob=403,
        charlie=403,
        operator=303,
        guest=403,
        anonymous=302,
    ),
    Row(route="portal:healthz", alice=200, bob=200, charlie=200, operator=200, guest=200, anonymous=200),
    Row(route="portal:readyz", alice=200, bob=200, charlie=200, operator=200, guest=200, anonymous=200),
    Row(route="portal:version", alice=200, bob=200, charlie=200, operator=200, guest=200, anonymous=200),
)

"""The API server: a call and its user in, an answer or a watch out; every refusal is a Status in the server's words."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from simulator.api import discovery, listing
from simulator.api.access import ANONYMOUS, AUTHENTICATED, Attributes, User, impersonated, require
from simulator.api.calls import Answer, Call, Place, Watch, answer, place_of
from simulator.api.failures import ApiError, status_of
from simulator.api.schema import Schema
from simulator.api.writing import Writer
from simulator.kinds import KINDS
from simulator.store import Stamp, Store, StoreError

_VERBS: Final = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_EXTRA: Final = "impersonate-extra-"
_HEALTH: Final = ("/healthz", "/livez", "/readyz")


@dataclass(frozen=True, slots=True)
class ApiServer:
    """One cluster's API. `users` maps bearer tokens, `stamp` gives the time and a fresh uid for each call."""

    store: Store
    schema: Schema
    users: Mapping[str, User]
    stamp: Callable[[], Stamp]

    def handle(self, call: Call) -> Answer | Watch:
        """Answer one call; never raises for what a client sent."""
        place = place_of(call.path)
        try:
            return self._handle(call, place)
        except (ApiError, StoreError) as error:
            status = status_of(error, place.kind if place else None, place.name if place else "")
            return answer(status, status["code"])

    def find_user(self, token: str) -> User | None:
        """Whose token it is."""
        return self.users.get(token)

    def _handle(self, call: Call, place: Place | None) -> Answer | Watch:
        _hold_accept(call)
        verb = _verb(call, place)
        asked = place.attributes(verb) if place else Attributes(verb=call.method.lower(), path=call.path)
        user = self._user(call, asked)
        require(self.store, user, asked, place.kind if place else None)
        if place is None:
            return self._nonresource(call)
        _hold_served(place, verb)
        return self._resource(call, place, verb)

    def _user(self, call: Call, asked: Attributes) -> User:
        token = _token(call.header("authorization"))
        user = self.users.get(token) if token else User(ANONYMOUS, ("system:unauthenticated",))
        if user is None:
            raise ApiError("Unauthorized", "Unauthorized")
        if AUTHENTICATED not in user.groups and user.name != ANONYMOUS:
            user = User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)
        wanted = _wanted_user(call)
        return impersonated(self.store, user, wanted, asked) if wanted else user

    def _nonresource(self, call: Call) -> Answer:
        path = call.path.rstrip("/")
        if path in _HEALTH or path.startswith(tuple(f"{each}/" for each in _HEALTH)):
            return Answer(200, b"ok", "text/plain")
        if path == "/version":
            return answer(discovery.VERSION)
        document = discovery.document(KINDS, path)
        if document is None:
            raise _not_served(call.path)
        return answer(document)

    def _resource(self, call: Call, place: Place, verb: str) -> Answer | Watch:
        match verb:
            case "get":
                namespace = place.namespace if place.kind.namespaced else ""
                return answer(self.store.get(place.kind, place.name, namespace))
            case "list":
                return listing.page(self.store, place, call.query)
            case "watch":
                return listing.watch(self.store, place, call.query)
        return self._write(Writer(self.store, self.schema, call, place, self.stamp()), verb)

    def _write(self, writer: Writer, verb: str) -> Answer:
        match verb:
            case "create":
                made, warnings = writer.create()
                return answer(made, 201, warnings)
            case "update":
                written, warnings = writer.replace()
                return answer(written, 200, warnings)
            case "patch":
                patched, warnings, is_new = writer.patch()
                return answer(patched, 201 if is_new else 200, warnings)
        return answer(writer.delete())


def _token(authorization: str) -> str:
    """The token of a Bearer header, or the password of a Basic one, which is all that kubectl sends without TLS."""
    scheme, _, given = authorization.partition(" ")
    if scheme != "Basic":
        return given
    try:
        return base64.b64decode(given, validate=True).decode().partition(":")[2] or "none"
    except ValueError:
        return "none"


def _verb(call: Call, place: Place | None) -> str:
    """The verb that rights are asked for, as apiserver/pkg/endpoints/request names it."""
    if call.method not in _VERBS:
        raise _not_allowed()
    verb = _VERBS[call.method]
    if place is None or place.name:
        return verb
    if verb == "get":
        return "watch" if listing.is_true(call.query, "watch") else "list"
    return "deletecollection" if verb == "delete" else verb  # a right of its own, though it is not served


def _hold_served(place: Place, verb: str) -> None:
    """ApiError 404 for a subresource that is not there, 405 for a verb that does not go with the path."""
    if place.subresource and not (place.subresource == "status" and place.kind.status):
        raise _not_served(f"{place.kind.plural}/{place.subresource}")
    if place.subresource:
        allowed = {"get", "update", "patch"}
    elif place.name:
        allowed = {"get", "update", "patch", "delete"}
    else:
        allowed = {"list", "watch", "create"}
    homeless = place.kind.namespaced and not place.namespace and verb == "create"
    unserved = not place.subresource and verb not in place.kind.verbs
    if verb not in allowed or homeless or unserved:
        raise _not_allowed()


def _not_served(what: str) -> ApiError:
    why = f"the server could not find the requested resource: the simulator does not serve {what}"
    return ApiError("NotFound", why)


def _not_allowed() -> ApiError:
    return ApiError("MethodNotAllowed", "the server does not allow this method on the requested resource")


def _wanted_user(call: Call) -> User | None:
    name, uid = call.header("impersonate-user"), call.header("impersonate-uid")
    groups = tuple(value for key, value in call.headers if key == "impersonate-group")
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in call.headers:
        if key.startswith(_EXTRA):
            name_of = key.removeprefix(_EXTRA)
            extra[name_of] = (*extra.get(name_of, ()), value)
    if not name and (uid or groups or extra):
        raise ApiError("BadRequest", f"requested groups {list(groups)} without impersonating a user name")
    return User(name, groups, uid, extra) if name else None


def _hold_accept(call: Call) -> None:
    """ApiError 406 where the client takes neither JSON nor anything."""
    accepted = [part.strip() for part in call.header("accept").split(",") if part.strip()]
    plain = {"application/json", "application/*", "*/*", "text/plain"}
    if accepted and not any(
        part.partition(";")[0] in plain and ";as=Table" not in part and ";as=Partial" not in part for part in accepted
    ):
        raise ApiError("NotAcceptable", "only the following media types are accepted: application/json")

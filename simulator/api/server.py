"""The API server: a call and its user in, an answer or a watch out; every refusal is a Status in the server's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulator import kinds
from simulator.api import discovery, garbage, listing
from simulator.api.access import ANONYMOUS, AUTHENTICATED, Attributes, User, account, impersonated, require
from simulator.api.calls import Answer, Call, Place, Watch, answer, place_of
from simulator.api.failures import ApiError, status_of
from simulator.api.reviews import review
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
        if place is not None and not self.schema.serves(place.kind):
            place = None
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
        if not place.kind.stored:
            return self._review(call, place, user)
        _hold_served(place, verb)
        return self._resource(call, place, verb)

    def _user(self, call: Call, asked: Attributes) -> User:
        token = call.header("authorization").partition(" ")[2]
        user = self.users.get(token) if token else User(ANONYMOUS, ("system:unauthenticated",))
        if user is None:
            raise ApiError("Unauthorized", "Unauthorized")
        if AUTHENTICATED not in user.groups and user.name != ANONYMOUS:
            user = User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)
        wanted = _wanted_user(call)
        return impersonated(self.store, user, wanted, asked) if wanted else user

    def _nonresource(self, call: Call) -> Answer:
        served = [kind for kind in KINDS if self.schema.serves(kind)]
        path = call.path.rstrip("/")
        if path in _HEALTH or path.startswith(tuple(f"{each}/" for each in _HEALTH)):
            return Answer(200, b"ok", "text/plain")
        if path == "/version":
            return answer(discovery.VERSION)
        if path in {"/api", "/apis"} and "g=apidiscovery.k8s.io;v=v2" in call.header("accept"):
            found = discovery.aggregated(served, core=path == "/api")
            return Answer(200, answer(found).body, discovery.AGGREGATED)
        document = _discovered(served, path)
        if document is None:
            raise ApiError("NotFound", "the server could not find the requested resource")
        return answer(document)

    def _review(self, call: Call, place: Place, user: User) -> Answer:
        if call.method != "POST" or place.name:
            raise _not_allowed()
        given = Writer(self.store, self.schema, call, place, self.stamp()).read()
        return answer(review(self.store, place.kind, given, user, self.find_user), 201)

    def _resource(self, call: Call, place: Place, verb: str) -> Answer | Watch:
        match verb:
            case "get":
                namespace = place.namespace if place.kind.namespaced else ""
                return answer(self.store.get(place.kind, place.name, namespace))
            case "list":
                return listing.page(self.store, place, call.query)
            case "watch":
                return listing.watch(self.store, place, call.query)
            case "deletecollection":
                return self._delete_all(call, place)
        return self._write(Writer(self.store, self.schema, call, place, self.stamp()), verb)

    def _write(self, writer: Writer, verb: str) -> Answer:
        match verb:
            case "create" if writer.place.subresource == "binding":
                writer.bind()
                return answer(
                    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
                )
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

    def _delete_all(self, call: Call, place: Place) -> Answer:
        matches = listing.matcher(place, call.query)
        namespace = place.namespace if place.kind.namespaced else ""
        found = [each for each in self.store.all(place.kind, namespace) if matches(each)]
        for each in found if call.query.get("dryRun") != "All" else ():
            garbage.delete(self.store, each, self.stamp())
        kind = place.kind
        meta = {"resourceVersion": str(self.store.version)}
        return answer({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta, "items": found})


def _verb(call: Call, place: Place | None) -> str:
    """The verb that rights are asked for, as apiserver/pkg/endpoints/request names it."""
    if call.method not in _VERBS:
        raise _not_allowed()
    verb = _VERBS[call.method]
    if place is None or place.name:
        return verb
    if verb == "get":
        return "watch" if listing.is_true(call.query, "watch") else "list"
    return "deletecollection" if verb == "delete" else verb


def _hold_served(place: Place, verb: str) -> None:
    """ApiError 404 for a subresource that is not there, 405 for a verb that does not go with the path."""
    if place.subresource and place.subresource not in discovery.subresources(place.kind):
        raise ApiError("NotFound", "the server could not find the requested resource")
    if place.subresource == "binding":
        allowed = {"create"}
    elif place.subresource:
        allowed = {"get", "update", "patch"}
    elif place.name:
        allowed = {"get", "update", "patch", "delete"}
    else:
        allowed = {"list", "watch", "deletecollection", "create"}
    # A namespaced object is made, and a collection of them deleted, in one namespace.
    homeless = place.kind.namespaced and not place.namespace and verb in {"create", "deletecollection"}
    unserved = not place.subresource and verb not in place.kind.verbs
    if verb not in allowed or homeless or unserved:
        raise _not_allowed()


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


def _discovered(served: list[kinds.Kind], path: str) -> dict[str, Any] | None:
    steps = path.strip("/").split("/")
    match steps:
        case ["api"]:
            return discovery.core_versions()
        case ["apis"]:
            return discovery.groups(served)
        case ["api", version]:
            return discovery.resources(served, "", version)
        case ["apis", group]:
            return discovery.group(served, group)
        case ["apis", group, version]:
            return discovery.resources(served, group, version)
    return None


__all__ = ["ApiServer", "User", "account"]

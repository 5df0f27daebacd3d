"""What the API server, or the way to it, can answer instead of an object. Library classes never leave the client.

KubeError
+-- UnreachableError      no answer: refused, timed out, TLS
+-- RefusedError          an answer with a Status; `message` is the server's own sentence
    +-- UnauthorizedError 401, ForbiddenError 403, NotFoundError 404
    +-- AlreadyExistsError, ConflictError 409
    +-- GoneError         410: list again
    +-- InvalidError      400 and 422
    +-- BusyError         429 and 5xx: try again later
"""

from __future__ import annotations


class KubeError(Exception):
    """Base of every fault on the way to the cluster."""


class UnreachableError(KubeError):
    """No answer came. The text says where to and why."""


class RefusedError(KubeError):
    """The API server answered no."""

    def __init__(self, *, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message


class UnauthorizedError(RefusedError):
    """The credentials are not accepted."""


class ForbiddenError(RefusedError):
    """This user may not do this, or admission or a quota refused it."""


class NotFoundError(RefusedError):
    """There is no such object, or the kind is not served."""


class ConflictError(RefusedError):
    """The object changed since it was read: read it again."""


class AlreadyExistsError(ConflictError):
    """The name is taken."""


class GoneError(RefusedError):
    """The resourceVersion or continue token is too old: list again."""


class InvalidError(RefusedError):
    """The object is not valid; the message names the field."""


class BusyError(RefusedError):
    """The server can't answer now; the same request may succeed later."""


_BY_CODE: dict[int, type[RefusedError]] = {
    400: InvalidError, 401: UnauthorizedError, 403: ForbiddenError, 404: NotFoundError, 409: ConflictError,
    410: GoneError, 415: InvalidError, 422: InvalidError, 429: BusyError,
}  # fmt: skip


def refused(*, code: int, reason: str, message: str) -> RefusedError:
    """The error that means this Status."""
    kind = _BY_CODE.get(code, BusyError if code >= 500 else RefusedError)
    if kind is ConflictError and reason == "AlreadyExists":
        kind = AlreadyExistsError
    return kind(code=code, reason=reason, message=message)

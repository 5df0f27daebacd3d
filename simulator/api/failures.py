"""What the API server says when it refuses: `metav1.Status` with the code and reason of apimachinery/pkg/api/errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dra.errors import DraError
from simulator.kinds import Kind
from simulator.store import StoreError

CODES: Final = {
    "BadRequest": 400, "Unauthorized": 401, "Forbidden": 403, "NotFound": 404, "MethodNotAllowed": 405,
    "NotAcceptable": 406, "AlreadyExists": 409, "Conflict": 409, "Expired": 410, "Gone": 410,
    "UnsupportedMediaType": 415, "RequestEntityTooLarge": 413, "Invalid": 422, "InternalError": 500,
}  # fmt: skip


class ApiError(DraError):
    """A refusal. `causes` are `metav1.StatusCause` values; `kind` and `name` say what was refused."""

    def __init__(
        self, reason: str, message: str, *, kind: Kind | None = None, name: str = "", causes: Sequence[Any] = ()
    ) -> None:
        super().__init__(message)
        self.reason, self.kind, self.name, self.causes = reason, kind, name, list(causes)

    @property
    def code(self) -> int:
        """The HTTP status."""
        return CODES[self.reason]


def status_of(error: ApiError | StoreError, kind: Kind | None = None, name: str = "") -> dict[str, Any]:
    """The Status object for a refusal."""
    if isinstance(error, ApiError):
        kind, name, causes = error.kind or kind, error.name or name, error.causes
    else:
        name, causes = error.name or name, []
    details: dict[str, Any] = {"name": name} if name else {}
    if kind is not None:
        details |= {"group": kind.group, "kind": kind.plural} if kind.group else {"kind": kind.plural}
    if causes:
        details["causes"] = causes
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": str(error)}
    return status | {"reason": error.reason, "details": details, "code": CODES[error.reason]}


def invalid(kind: Kind, name: str, causes: Sequence[tuple[str, str, str]]) -> ApiError:
    """422 with one cause a fault: (reason, message, field), as `errors.NewInvalid` words it."""
    told = [f"{field}: {message}" for _, message, field in causes]
    listed = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    return ApiError(
        "Invalid",
        f'{kind.kind}{"." + kind.group if kind.group else ""} "{name}" is invalid: {listed}',
        kind=kind,
        name=name,
        causes=[{"reason": reason, "message": message, "field": field} for reason, message, field in causes],
    )

"""Faults of the domain: what a value or an object can be wrong in. Faults of the cluster stand in `dra.kube.errors`."""

from __future__ import annotations


class DraError(Exception):
    """Base of every fault of the domain. Its text says what, why and where."""


class InvalidQuantityError(DraError):
    """A text is no Kubernetes quantity (apimachinery `resource.ParseQuantity`)."""


class InvalidSemverError(DraError):
    """A text is no semantic version (blang/semver `Parse`)."""


class InvalidNameError(DraError):
    """A name breaks the rule of its place (DNS label, DNS subdomain, qualified name)."""


class InvalidObjectError(DraError):
    """A wire object lacks what its kind requires, or carries a value of the wrong type.

    `pointer` is the JSON pointer (RFC 6901) of the place, empty where the whole object is meant or none is known.
    """

    def __init__(self, message: str, *, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


class UnreadKindError(InvalidObjectError):
    """An object is of a kind, or of a version of it, that Portico does not read."""


class UnknownFeatureError(DraError):
    """A release or a feature gate that the engine does not know."""

"""Strict reading of the opaque parameters in classes and claims: a JSON object that knows where it stands. Pure.

Whatever is not exactly allowed is a DeviceConfigError that names the field's path, the value and the rule. What the
fields mean is said by the kinds (`gpuconfig`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from dra.errors import InvalidQuantityError
from dra.quantity import parse_quantity

_MOST_SHOWN = 80  # characters of a value in an error, since an event of the kubelet holds about 1,000


class DeviceConfigError(Exception):
    """Parameters are not what they should be, or contradict others. The text names the field and what is allowed."""


class Spelling(StrEnum):
    """Whose words a document is written in: our own group and version, or those of NVIDIA's driver."""

    OWN = "own"
    NVIDIA = "nvidia"


class Fields:
    """A JSON object and where it stands, so that an error can name the path."""

    def __init__(self, prefix: str, values: Mapping[str, object], allowed: tuple[str, ...]) -> None:
        self.prefix = prefix
        self.values = values
        unknown = next((name for name in values if name not in allowed), None)
        if unknown is not None:
            raise DeviceConfigError(
                f"{_cut(self.path(unknown))} is not a known field; allowed here: {', '.join(allowed)}"
            )

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def path(self, name: str) -> str:
        """Where that field stands in the document."""
        return f"{self.prefix}.{name}" if self.prefix else name

    def refuse(self, name: str, rule: str) -> DeviceConfigError:
        """What to raise for that field's value."""
        return DeviceConfigError(f"{self.path(name)}: {shown(self.values.get(name))} {rule}")

    def must_be(self, name: str, allowed: tuple[str, ...]) -> str:
        """A required text out of a closed set."""
        value = self.values.get(name)
        if isinstance(value, str) and value in allowed:
            return value
        rule = f"is not allowed; use {' or '.join(allowed)}"
        if name not in self.values:
            raise DeviceConfigError(f"{self.path(name)}: nothing {rule}")
        raise self.refuse(name, rule)

    def inner(self, name: str, allowed: tuple[str, ...]) -> Fields:
        """An object inside; absent counts as empty."""
        return Fields(self.path(name), self.any_object(name), allowed)

    def any_object(self, name: str) -> Mapping[str, object]:
        """An object inside with whatever names; absent counts as empty."""
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            raise self.refuse(name, "is not an object")
        return value

    def whole_number(self, name: str, least: int, most: int) -> int | None:
        """A whole number within these bounds, None where the field is absent."""
        value = self.values.get(name)
        if name not in self.values:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.refuse(name, f"is not a whole number from {least} to {most}")
        return value

    def quantity(self, name: str) -> int | None:
        """A Kubernetes quantity in bytes, None where the field is absent."""
        value = self.values.get(name)
        if name not in self.values:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.refuse(name, "is not a quantity such as 8Gi")
        try:
            return parse_quantity(str(value)).value
        except InvalidQuantityError as error:
            raise DeviceConfigError(f"{self.path(name)}: {shown(value)} is not a quantity such as 8Gi") from error


def shown(value: object) -> str:
    """A value as an error shows it, without the rest of a long one."""
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"

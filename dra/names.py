"""Identities and name rules: which device, which resource claim, and what Kubernetes accepts as a name.

Rules: RFC 1123 labels and subdomains as apimachinery `util/validation` checks them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NewType

from dra.errors import InvalidNameError

ClaimUID = NewType("ClaimUID", str)

MAX_LABEL = 63
MAX_SUBDOMAIN = 253
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_LABEL_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


@dataclass(frozen=True, slots=True, order=True)
class DeviceID:
    """The identity of a device: driver, pool, device name (structured/schedulerapi `DeviceID`)."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


@dataclass(frozen=True, slots=True, order=True)
class ClaimRef:
    """The identity of a ResourceClaim. The uid decides; a deleted claim's name may be used again."""

    namespace: str
    name: str
    uid: ClaimUID

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def is_dns_label(text: str) -> bool:
    """Whether the text is an RFC 1123 label: at most 63 of a-z, 0-9 and '-', alphanumeric at both ends."""
    return len(text) <= MAX_LABEL and _LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Whether the text is an RFC 1123 subdomain: labels joined by dots, at most 253 characters."""
    return len(text) <= MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Whether the text is a label key: at most 63 of A-Z a-z 0-9 - _ . after an optional `<DNS subdomain>/`."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return False
    return len(name) <= MAX_LABEL and _LABEL_NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether the text is a label value: empty, or at most 63 of A-Z a-z 0-9 - _ ., alphanumeric at both ends."""
    return not text or (len(text) <= MAX_LABEL and _LABEL_NAME.fullmatch(text) is not None)


def is_extended_resource_name(name: str) -> bool:
    """Whether a class may carry the name (`helper.IsExtendedResourceName`).

    It has a domain outside kubernetes.io, no `requests.` before it, and is a qualified name also with it.
    """
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return is_label_key("requests." + name)


def check_driver_name(text: str) -> str:
    """Return the driver name, or raise InvalidNameError: a DNS subdomain of at most 63 characters."""
    if len(text) > MAX_LABEL or not is_dns_subdomain(text):
        raise InvalidNameError(
            f"driver name {text!r} is not a DNS subdomain of at most {MAX_LABEL} characters, such as gpu.portico.dev"
        )
    return text

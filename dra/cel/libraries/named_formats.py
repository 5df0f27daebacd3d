"""`format.named` and the formats: what a string must look like, and what is said if it does not.

`string.format` stands in `formatting`. Follows k8s.io/apiserver/pkg/cel/library/format.go, k8s.io/apimachinery
api/validate/content and kube-openapi validation/strfmt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Final

from dra.cel.functions import Library, Overload
from dra.cel.libraries.go_time import is_date
from dra.cel.libraries.go_url import parse_request_uri
from dra.cel.types import NAMED_FORMAT, STRING, Type, list_of, optional_of
from dra.cel.values import NONE, Opaque, Optional

type Check = Callable[[str], tuple[str, ...]]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
)
_UUID: Final = re.compile(
    "(?:[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})", re.IGNORECASE | re.ASCII
)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_MAX_LABEL: Final = 63
_MAX_SUBDOMAIN: Final = 253


@dataclass(frozen=True, slots=True)
class NamedFormat(Opaque):
    """A format: its name, by which formats are equal, how to check a string, and the size that its cost goes by."""

    CEL_TYPE: ClassVar[Type] = NAMED_FORMAT
    GO_UNHASHABLE: ClassVar[str] = "cel.Format"
    name: str
    check: Check = field(compare=False)
    regex_size: int = field(compare=False)


def _too_long(text: str, limit: int, unit: str = "bytes") -> tuple[str, ...]:
    return (f"must be no more than {limit} {unit}",) if len(text.encode("utf-8", "surrogatepass")) > limit else ()


def _regex_rule(rule: str, regex: str, *examples: str) -> str:
    said = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {said}regex used for validation is '{regex}')"


def _dns1123_label(text: str) -> tuple[str, ...]:
    faults = _too_long(text, _MAX_LABEL, "characters")
    if re.fullmatch(_LABEL, text):
        return faults
    if re.fullmatch(_SUBDOMAIN, text):
        return (*faults, "must not contain dots")
    rule = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character"
    )
    return (*faults, _regex_rule(rule, _LABEL, "my-name", "123-abc"))


def _dns1123_subdomain(text: str, unit: str = "characters") -> tuple[str, ...]:
    faults = _too_long(text, _MAX_SUBDOMAIN, unit)
    if re.fullmatch(_SUBDOMAIN, text):
        return faults
    rule = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return (*faults, _regex_rule(rule, _SUBDOMAIN, "example.com"))


def _dns1035_label(text: str) -> tuple[str, ...]:
    faults = _too_long(text, _MAX_LABEL, "characters")
    if re.fullmatch(_LABEL_1035, text):
        return faults
    rule = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
        "start with an alphabetic character, and end with an alphanumeric character"
    )
    return (*faults, _regex_rule(rule, _LABEL_1035, "my-name", "abc-123"))


def _prefix_of(check: Check) -> Check:
    """The check for a text that something will be appended to: it may end in a dash."""

    def check_prefix(text: str) -> tuple[str, ...]:
        # apimachinery drops the dash and the character before it.
        return check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)

    return check_prefix


def _qualified_name(text: str) -> tuple[str, ...]:
    rule = _regex_rule(_KEY_RULE + "character", _KEY, "MyName", "my.name", "123-abc")
    parts = text.split("/")
    if len(parts) > 2:
        return (f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    faults = _name_prefix(parts[0]) if len(parts) == 2 else ()
    name = parts[-1]
    if not name:
        faults += ("name part must be non-empty",)
    else:
        faults += tuple(f"name part {fault}" for fault in _too_long(name, _MAX_LABEL))
    return faults if re.fullmatch(_KEY, name) else (*faults, f"name part {rule}")


def _name_prefix(prefix: str) -> tuple[str, ...]:
    if not prefix:
        return ("prefix part must be non-empty",)
    return tuple(f"prefix part {fault}" for fault in _dns1123_subdomain(prefix, "bytes"))


def _label_value(text: str) -> tuple[str, ...]:
    faults = _too_long(text, _MAX_LABEL)
    if re.fullmatch(f"({_KEY})?", text):
        return faults
    rule = f"a valid label must be an empty string or {_KEY_RULE.removeprefix('must ')}character"
    return (*faults, _regex_rule(rule, f"({_KEY})?", "MyValue", "my_value", "12345"))


def _uri(text: str) -> tuple[str, ...]:
    try:
        parse_request_uri(text)
    except ValueError as fault:
        return (str(fault),)
    return ()


def _matching(matches: Callable[[str], object], fault: str) -> Check:
    return lambda text: () if matches(text) else (fault,)


def _is_datetime(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text) < 4 or len(parts) < 2 or not is_date(parts[0]):
        return False
    match = _TIME.fullmatch(parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


# Sizes as format.go and the patterns of strfmt have them.
FORMATS: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", _dns1123_label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _dns1123_subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _dns1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix_of(_dns1123_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _prefix_of(_dns1123_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix_of(_dns1035_label), 30),
    "labelValue": NamedFormat("LabelValue", _label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat("uuid", _matching(_UUID.fullmatch, "does not match the UUID format"), 70),
    "byte": NamedFormat("byte", _matching(_BASE64.fullmatch, "invalid base64"), 84),
    "date": NamedFormat("date", _matching(is_date, "invalid date"), 71),
    "datetime": NamedFormat("datetime", _matching(_is_datetime, "invalid datetime"), 71),
}


def _named(name: str) -> Optional:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(found)


def _validate(named: NamedFormat, text: str) -> Optional:
    faults = named.check(text)
    return Optional(faults) if faults else NONE


def _constant(named: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: named


FUNCTIONS: Final[Library] = {
    "format.named": (Overload("format-named", (STRING,), optional_of(NAMED_FORMAT), _named),),
    "validate": (
        Overload("format-validate", (NAMED_FORMAT, STRING), optional_of(list_of(STRING)), _validate, member=True),
    ),
    **{
        f"format.{name}": (Overload(f"format.{name}", (), NAMED_FORMAT, _constant(named)),)
        for name, named in FORMATS.items()
    },
}

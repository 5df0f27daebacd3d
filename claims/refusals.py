"""Refusals: every no that a person can act on, as a code with facts. Sentences stand in `claims.messages` alone.

Pure. A code lists the facts it must carry, so a sentence never lacks a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

_SHOWN = 80  # characters of foreign text that a sentence quotes


class Code(StrEnum):
    """What was refused, followed by the names of the facts that belong to it."""

    facts: frozenset[str]

    def __new__(cls, value: str, *facts: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.facts = frozenset(facts)
        return member

    # Fields of the form.
    FIELD_MISSING = "field.missing", "label", "example"
    NAME_SHAPE = "name.shape", "value", "most", "example"
    NAMESPACE_FOREIGN = "namespace.foreign", "value"
    CLASS_UNKNOWN = "class.unknown", "value"
    COUNT_BOUNDS = "count.bounds", "value", "least", "most"
    SHARE_BOUNDS = "share.bounds", "value", "least", "most", "step"
    SHARE_OF_MANY = "share.of_many", "count", "share"
    MEMORY_SHAPE = "memory.shape", "value"
    MEMORY_BOUNDS = "memory.bounds", "value", "least", "most"
    MEMORY_OVER_SHARE = "memory.over_share", "memory", "share", "part", "total", "enough"
    MEMORY_OVER_DEVICE = "memory.over_device", "memory", "total"
    STRATEGY_UNKNOWN = "strategy.unknown", "value", "known"
    STRATEGY_NO_DRIVER = "strategy.no_driver", "device_class"
    CHOICE_UNKNOWN = "choice.unknown", "label", "value", "known"
    NUMBER_BOUNDS = "number.bounds", "label", "value", "least", "most"
    TEXT_SHAPE = "text.shape", "label", "value", "rule", "example"
    DAY_SHAPE = "day.shape", "label", "value"
    DAY_PAST = "day.past", "label", "value", "today"
    PROFILE_SHAPE = "profile.shape", "value"
    CONFIG_FOREIGN = "config.foreign", "label", "value", "driver"
    INTERVAL_MODE = "interval.mode", "value"
    SCALE_ORDER = "scale.order", "least", "most"
    ENTRIES_MANY = "entries.many", "label", "most"
    CEL_LONG = "cel.long", "value", "most"
    CEL_WRONG = "cel.wrong", "value", "reason"
    CEL_COST = "cel.cost", "value", "cost", "most"
    STYLE_UNSAYABLE = "style.unsayable", "label"
    STYLE_NO_NAME = "style.no_name", "device_class", "most"

    # GPU classes.
    CLASS_FOREIGN = "class.foreign", "gpu_class", "namespace"
    CLASS_PAUSED = "class.paused", "gpu_class", "message"
    CLASS_REPLACED = "class.replaced", "gpu_class", "other"
    CLASS_FAULT = "class.fault", "gpu_class", "fault"
    COUNT_CLASS = "count.of_class", "gpu_class", "value", "least", "most"
    SHARE_CLASS = "share.of_class", "gpu_class", "value", "least", "most", "step"
    MEMORY_CLASS = "memory.of_class", "gpu_class", "value", "bounds"
    MODE_OTHER = "mode.other", "gpu_class", "offered"
    MODE_NO_SLICES = "mode.no_slices", "gpu_class"
    MODE_NO_SHARES = "mode.no_shares", "gpu_class", "capacity"
    MODE_NO_SLOTS = "mode.no_slots", "gpu_class"
    PROFILE_ABSENT = "profile.absent", "gpu_class", "value", "known"
    STYLE_PART = "style.part", "gpu_class", "device_class"

    # A manifest that was pasted.
    PASTED_SIZE = "pasted.size", "size", "most"
    PASTED_YAML = "pasted.yaml", "line", "reason"
    PASTED_DOCUMENTS = "pasted.documents", "line"
    PASTED_ALIAS = "pasted.alias", "line", "value"
    PASTED_LARGE = "pasted.large", "line", "depth", "nodes"
    PASTED_KIND = "pasted.kind", "value", "known"
    PASTED_SHAPE = "pasted.shape", "where", "wanted"
    PASTED_NAMESPACE = "pasted.namespace", "value", "namespace"
    PASTED_GONE = "pasted.gone", "kept"

    # The submit as a whole.
    GUEST = "person.guest", "username"
    FORM_KEY = "form.key"
    FORM_USED = "form.used"
    FORM_CHANGED = "form.changed", "name"
    FORM_FILES_ONLY = "form.files_only", "name"

    # What the cluster answered. `upstream` is the server's own sentence.
    CLUSTER_LACKS = "cluster.lacks", "reason"
    CLUSTER_SILENT = "cluster.silent", "upstream"
    CLUSTER_BUSY = "cluster.busy", "upstream"
    NAME_TAKEN = "server.name_taken", "name", "namespace", "upstream"
    FORBIDDEN = "server.forbidden", "upstream", "command"
    OVER_QUOTA = "server.over_quota", "namespace", "upstream"
    DENIED = "server.denied", "upstream"
    INVALID = "server.invalid", "upstream"
    PORTAL_FORBIDDEN = "server.portal_forbidden", "upstream"
    UNTRIED = "server.untried", "kind", "upstream", "command"

    # Taking a request back.
    NOT_YOURS = "withdraw.not_yours", "author", "name"
    NOT_THERE = "withdraw.not_there", "name", "state"
    REPLACED = "withdraw.replaced", "name", "namespace"

    # Classes of the catalogue.
    SELECTOR_UNFIT = "gpuclass.selector", "number", "error"
    CONFIG_SHAPE = "gpuclass.config", "error"
    DEVICE_CLASS_TAKEN = "gpuclass.device_class_taken", "name"
    GPU_CLASS_EXISTS = "gpuclass.exists", "name", "upstream"
    GPU_CLASS_CHANGED = "gpuclass.changed", "name", "upstream"
    GPU_CLASS_NOT_THERE = "gpuclass.not_there", "name", "upstream"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One no: what, which facts, and the form's field it belongs to ("" for the whole)."""

    code: Code
    facts: tuple[tuple[str, str], ...]
    field: str = ""


class RefusalError(Exception):
    """Carries refusals, at least one, up to the page that says them."""

    def __init__(self, *refusals: Refusal) -> None:
        super().__init__(", ".join(refusal.code for refusal in refusals))
        self.refusals = refusals


def refuse(code: Code, field: str = "", /, **facts: object) -> Refusal:
    """The refusal with exactly the facts of its code; ValueError where one lacks or is too many."""
    if facts.keys() != code.facts:
        raise ValueError(f"{code} carries {sorted(code.facts)}, not {sorted(facts)}")
    return Refusal(code, tuple(sorted((name, str(value)) for name, value in facts.items())), field)


def quoted(text: str) -> str:
    """What a person wrote, short enough to be quoted back."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

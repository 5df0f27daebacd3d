"""A wish out of a query's values, or all that is wrong with their shape. Pure.

Only what the mode, the style and the workload read is judged: a form sends its hidden fields too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from claims.refusals import Code, Refusal, quoted
from claims.wish.fields import Fields
from claims.wish.keys import EXAMPLES, LABELS, LISTS, TELLING, numbers_given
from claims.wish.values import (
    MAX_HOURS,
    MAX_PODS,
    MAX_REPLICAS,
    MAX_SLOTS,
    WHOLE,
    Choice,
    Constraint,
    ConstraintKind,
    Interval,
    Mode,
    Owner,
    Preset,
    Strategy,
    Style,
    Toleration,
    Wish,
    Workload,
)
from dra.names import MAX_LABEL, is_dns_label, is_dns_subdomain, is_label_key, is_label_value

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}", re.ASCII)  # apimachinery IsCIdentifier, DeviceMaxIDLength
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)  # SHA-256
_MAX_SECONDS = 2**31 - 1
_REPLICATED = frozenset({Workload.DEPLOYMENT, Workload.STATEFUL_SET, Workload.JOB})


class _Operator(StrEnum):
    EXISTS = "Exists"
    EQUAL = "Equal"


class _Effect(StrEnum):
    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"


def wish_of(values: Mapping[str, str]) -> tuple[Wish | None, tuple[Refusal, ...]]:
    """The wish and nothing refused, or no wish and everything that is refused."""
    form = Fields(values)
    names = _names(form)
    wish = Wish(
        **names,
        **_choice(form, _mode(form)),
        **_config(form),
        **_lists(form),
        **_workload(form),
        **_plans(form),
    )
    return (None if form.refusals else wish), tuple(form.refusals)


def mode_of(values: Mapping[str, str], prefix: str = "") -> Mode:
    """The mode that a query means, even where its other values are wrong. `prefix` as in `Fields`."""
    return _mode(Fields(values, prefix))


def _names(form: Fields) -> dict[str, Any]:
    for key in EXAMPLES:
        form.lacking(key)
    name = form.text("name")
    if name and not is_dns_label(name):
        form.no(Code.NAME_SHAPE, "name", value=quoted(name), most=MAX_LABEL, example=EXAMPLES["name"][1])
    return {"namespace": form.text("ns"), "name": name}


def _mode(form: Fields) -> Mode:
    """The mode that is named, else the one that the other fields amount to."""
    if form.text("mode"):
        return form.member("mode", Mode) or Mode.WHOLE
    if form.text("profile"):
        return Mode.SLICE
    if form.text("slots"):
        return Mode.TIMESLICED
    return Mode.WHOLE if form.text("share") in {"", str(WHOLE)} else Mode.SHARE


def _choice(form: Fields, mode: Mode) -> dict[str, Any]:
    device_class = form.text("class")
    if device_class and not is_dns_subdomain(device_class):
        form.no(Code.CLASS_UNKNOWN, "class", value=quoted(device_class))
    return {
        "device_class": device_class,
        "count": form.count(),
        "share": form.share() if mode is Mode.SHARE else WHOLE,
        "profile": form.profile() if mode is Mode.SLICE else "",
        "slots": (form.number("slots", 1, MAX_SLOTS) or 1) if mode is Mode.TIMESLICED else None,
        "memory": form.memory(),
    }


def _config(form: Fields) -> dict[str, Any]:
    strategy = form.text("strategy")
    if strategy and strategy not in set(Strategy):
        form.no(Code.STRATEGY_UNKNOWN, "strategy", value=quoted(strategy), known=", ".join(Strategy))
    return {
        "strategy": Strategy(strategy) if strategy in set(Strategy) else None,
        "interval": form.member("interval", Interval),
        "owner": form.member("claim", Owner) or Owner.OWN,
        "style": form.member("style", Style) or Style.CLAIMS,
    }


def _lists(form: Fields) -> dict[str, Any]:
    alternatives = [form.under(f"alt.{number}.") for number in _numbers(form, "alt")]
    return {
        "alternatives": tuple(Choice(**_choice(each, _mode(each))) for each in alternatives),
        "cel": tuple(form.cel(f"cel.{number}") for number in _numbers(form, "cel")),
        "constraints": tuple(
            _constraint(form.under(f"constraint.{number}.")) for number in _numbers(form, "constraint")
        ),
        "tolerations": tuple(
            _toleration(form.under(f"toleration.{number}.")) for number in _numbers(form, "toleration")
        ),
    }


def _numbers(form: Fields, name: str) -> Iterator[int]:
    """The numbers of the entries that were filled in, as far as the list goes."""
    most = LISTS[name][1]
    for number in numbers_given(name, form.values):
        if number <= most:
            yield number
        else:
            form.no(Code.ENTRIES_MANY, f"{name}.{number}.{TELLING[name][0]}".rstrip("."), label=LABELS[name], most=most)


def _constraint(form: Fields) -> Constraint:
    attribute = form.text("attribute")
    domain, slash, identifier = attribute.partition("/")
    if not slash or len(domain) > MAX_LABEL or not is_dns_subdomain(domain) or not _IDENTIFIER.fullmatch(identifier):
        _misshapen(
            form, "attribute", "a domain of small letters, a slash and a name of letters", "gpu.example.com/numa"
        )
    return Constraint(form.member("kind", ConstraintKind) or ConstraintKind.MATCH, attribute)


def _toleration(form: Fields) -> Toleration:
    key, value = form.text("key"), form.text("value")
    operator = form.member("operator", _Operator) or (_Operator.EQUAL if value else _Operator.EXISTS)
    if (key and not is_label_key(key)) or (not key and operator is _Operator.EQUAL):
        _misshapen(form, "key", "a label key, and may lack only with the operator Exists", "gpu.example.com/unhealthy")
    if not is_label_value(value) or (value and operator is _Operator.EXISTS):
        _misshapen(form, "value", "a label value, and goes with the operator Equal only", "true")
    effect = form.member("effect", _Effect)
    seconds = form.number("seconds", 0, _MAX_SECONDS) if effect is _Effect.NO_EXECUTE else None
    return Toleration(key=key, operator=operator.value, value=value, effect=effect or "", seconds=seconds)


def _workload(form: Fields) -> dict[str, Any]:
    workload = form.member("workload", Workload) or Workload.POD
    most = MAX_PODS if form.text("claim") == Owner.SHARED else MAX_REPLICAS
    autoscale = _autoscale(form, most) if workload is Workload.DEPLOYMENT else None
    replicas = form.number("replicas", 1, most) if workload in _REPLICATED and not autoscale else None
    priority = form.text("priority")
    if priority and not is_dns_subdomain(priority):
        _misshapen(form, "priority", "a name of small letters, digits, - and dots", "high-priority")
    return {
        "workload": workload,
        "replicas": replicas or 1,
        "autoscale": autoscale,
        "priority": priority,
        "manifest": _manifest(form) if workload is Workload.OWN else "",
    }


def _manifest(form: Fields) -> str:
    """The digest of the workload that was pasted; an address tells no more of it."""
    digest = form.text("manifest")
    if not _DIGEST.fullmatch(digest):
        form.no(Code.FIELD_MISSING, "manifest", label=LABELS["manifest"], example="a Deployment")
    return digest


def _autoscale(form: Fields, most: int) -> tuple[int, int] | None:
    """Least and most replicas; none without the most."""
    highest = form.number("scale.max", 1, most)
    if highest is None:
        return None
    lowest = form.number("scale.min", 1, most) or 1
    if lowest > highest:
        form.no(Code.SCALE_ORDER, "scale.min", least=lowest, most=highest)
    return lowest, highest


def _plans(form: Fields) -> dict[str, Any]:
    return {
        "hours": form.number("hours", 1, MAX_HOURS),
        "until": form.day("until"),
        "preset": form.member("preset", Preset),
    }


def _misshapen(form: Fields, key: str, rule: str, example: str) -> None:
    form.no(Code.TEXT_SHAPE, key, label=LABELS[key], value=quoted(form.text(key)), rule=rule, example=example)

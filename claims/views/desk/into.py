"""The part "Into what": workload, replicas, style and preset, with what can't be chosen and why.

It decides nothing: what an extended resource can't say is judged by `claims.wish`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from claims.refusals import Code, Refusal
from claims.services.preview import Preview
from claims.wish import MAX_PODS, MAX_REPLICAS, Owner, Preset, Style, Workload, judge

_WORKLOADS: Final[Mapping[Workload, tuple[str, str]]] = {
    Workload.POD: ("Pod", "one of it, to try things"),
    Workload.DEPLOYMENT: ("Deployment", "pods that are replaced when they end"),
    Workload.JOB: ("Job", "runs to its end"),
    Workload.STATEFUL_SET: ("StatefulSet", "pods with names and volumes of their own"),
    Workload.OWN: ("My own manifest", "paste it, and the devices are put in"),
}
_STYLES: Final[Mapping[Style, tuple[str, str]]] = {
    Style.CLAIMS: ("Resource claims", "all of this form can be said"),
    Style.EXTENDED: ("Extended resource", "one line in the container's limits, for tools that know no claims"),
}
_PRESETS: Final[Mapping[str, tuple[str, str]]] = {
    "": ("None", ""),
    Preset.NOTEBOOK: (
        "Notebook (Jupyter)",
        "Port 8888, a volume for /home/jovyan and shared memory. Best as a StatefulSet, which keeps its volume.",
    ),
    Preset.KUBEFLOW: (
        "Kubeflow pipeline step",
        "Pipelines name an extended resource: choose that style, and pipeline.py is among the files.",
    ),
    Preset.NIM: (
        "NIM (inference)",
        "Port 8000, probes, a volume for models and the secrets of NGC. Best as a Deployment.",
    ),
}
_REPLICATED: Final = frozenset({Workload.DEPLOYMENT, Workload.JOB, Workload.STATEFUL_SET})


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One of several to choose from; `closed` says why it can't be chosen now, "" where it can."""

    value: str
    title: str
    text: str
    chosen: bool
    closed: str = ""


def into(seen: Preview) -> dict[str, Any]:
    """The values of the part's template."""
    values = seen.reading.values
    workload, preset = values.get("workload") or Workload.POD, values.get("preset", "")
    return {
        "workloads": _options(_WORKLOADS, workload),
        "styles": _styles(seen, values.get("style") or Style.CLAIMS),
        "presets": _options(_PRESETS, preset),
        "preset_text": _PRESETS.get(preset, ("", ""))[1],
        "own_workload": workload == Workload.OWN,
        "replicated": workload in _REPLICATED,
        "scaled": workload == Workload.DEPLOYMENT,
        "most_replicas": MAX_PODS if values.get("claim") == Owner.SHARED else MAX_REPLICAS,
        "manifest": seen.manifest or "",
    }


def _options(known: Mapping[Any, tuple[str, str]], chosen: str) -> tuple[Option, ...]:
    return tuple(
        Option(value=str(value), title=title, text=text, chosen=value == chosen)
        for value, (title, text) in known.items()
    )


def _styles(seen: Preview, chosen: str) -> tuple[Option, ...]:
    """Both styles. One that is chosen stays open, so that nobody has to guess what was sent."""
    claims, extended = _options(_STYLES, chosen)
    return claims, extended if extended.chosen else replace(extended, closed=_unsayable(seen))


def _unsayable(seen: Preview) -> str:
    """What of the wish no extended resource can say, "" for nothing or where there is no wish yet."""
    if seen.reading.wish is None:
        return ""
    refusals = judge(replace(seen.reading.wish, style=Style.EXTENDED), seen.bounds)
    if lacks := next((each for each in refusals if each.code is Code.CLUSTER_LACKS and each.field == "style"), None):
        return _fact(lacks, "reason")
    names = [_fact(refusal, "label") for refusal in refusals if refusal.code is Code.STYLE_UNSAYABLE]
    if names:
        return f"It can't say: {', '.join(names)}."
    if part := next((refusal for refusal in refusals if refusal.code is Code.STYLE_PART), None):
        return f"The class is a part of {_fact(part, 'device_class')}, and a resource name stands for all of that."
    if any(refusal.code is Code.STYLE_NO_NAME for refusal in refusals):
        return "The class carries no resource name, and its own name is too long for one."
    return ""


def _fact(refusal: Refusal, name: str) -> str:
    return dict(refusal.facts)[name]

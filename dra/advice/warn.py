"""Warnings: where the scheduler stops with an error or runs out of time, as the person will meet it.

A fatal error on one node ends the placement of the pod on all nodes (kube-scheduler's DynamicResources plugin).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dra.advice.explanation import (
    AdviceWarning,
    Code,
    DeviceRequestExplanation,
    Facts,
    Fallen,
    Step,
    StepKind,
    WarningCode,
)
from dra.allocation import Answer, Failed

_CODES: Final = {
    "fatal": WarningCode.SCHEDULER_ABORTS,
    "panic": WarningCode.SCHEDULER_ABORTS,
    "node": WarningCode.NODE_FAILS,
    "budget": WarningCode.SEARCH_GAVE_UP,
}
_SELECTING: Final = frozenset({StepKind.CLASS, StepKind.SELECTOR})


def warnings(
    node_name: str, answer: Answer, device_requests: Sequence[DeviceRequestExplanation]
) -> tuple[AdviceWarning, ...]:
    """What the answer means for the pod, then selectors that fail on devices which were not reached this time."""
    said = list(_answered(node_name, answer))
    if isinstance(answer, Failed) and answer.code == "selector":
        return tuple(said)
    return (*said, *_latent(device_requests))


def _answered(node_name: str, answer: Answer) -> Iterator[AdviceWarning]:
    if isinstance(answer, Failed):
        yield AdviceWarning(code=_CODES[answer.kind], facts=_failure_facts(node_name, answer))
    for timeout in answer.warnings:
        facts: Facts = {"node": node_name, "steps": timeout.steps, "seconds": int(timeout.seconds)}
        yield AdviceWarning(code=WarningCode.SCHEDULER_TIMES_OUT, facts=facts)


def _failure_facts(node_name: str, failed: Failed) -> Facts:
    facts: Facts = {"node": node_name, "error": failed.code, "message": failed.message}
    named = {
        "resource_claim": failed.resource_claim,
        "device_request": failed.device_request,
        "device_class": failed.device_class,
        "device": str(failed.device or ""),
    }
    facts |= {name: text for name, text in named.items() if text}
    if failed.selector is not None:
        facts["selector"] = failed.selector
    return facts


def _latent(device_requests: Sequence[DeviceRequestExplanation]) -> Iterator[AdviceWarning]:
    for device_request in device_requests:
        for step in device_request.steps:
            for fallen in _errors(step):
                facts: Facts = {
                    "device_request": device_request.device_request,
                    "device_class": device_request.device_class if step.kind is StepKind.CLASS else "",
                    "device": str(fallen.devices[0]),
                    "devices": fallen.count,
                    **fallen.miss.facts,
                }
                yield AdviceWarning(code=WarningCode.SELECTOR_MAY_ABORT, facts=facts)


def _errors(step: Step) -> Iterator[Fallen]:
    if step.kind in _SELECTING:
        yield from (fallen for fallen in step.fallen if fallen.miss.code is Code.SELECTOR_ERROR)

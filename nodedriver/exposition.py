"""Prometheus's text format, version 0.0.4 ("Exposition formats"): families of samples to text. Pure.

Apart from what is counted, so that the MPS supervisor has it without the driver's memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

type Labels = Mapping[str, str]
type Sample = tuple[str, Labels, float]  # what follows the family's name ("_sum"), labels, value


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with its samples. `name` stands without the prefix that all of ours have."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    samples: tuple[Sample, ...]


def text(families: Iterable[Family]) -> bytes:
    """All of them, one after another."""
    return "".join(line + "\n" for family in families for line in _lines(family)).encode()


def _lines(family: Family) -> Iterator[str]:
    name = f"portico_dra_{family.name}"
    yield f"# HELP {name} {family.help}"
    yield f"# TYPE {name} {family.kind}"
    for suffix, labels, value in family.samples:
        pairs = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        yield f"{name}{suffix}{{{pairs}}} {value:.15g}"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

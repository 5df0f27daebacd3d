"""Manifests as people publish them: every document is read, named as a kind that is not read, or refused with a place.

`make test SAMPLES=<folder>` reads a folder of one's own instead of `tests/dra/samples`.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra.errors import InvalidObjectError, UnreadKindError
from dra.objects.versions import read

OWN = Path(__file__).parent / "samples"
FOLDER = Path(os.environ.get("SAMPLES") or OWN)


class TextTimes(yaml.SafeLoader):
    """YAML as the API takes it: times stay texts."""


TextTimes.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents(path: Path) -> Iterator[object]:
    with path.open(encoding="utf-8") as text:
        for document in yaml.load_all(text, Loader=TextTimes):  # a safe loader
            if document is not None:
                yield from entries(document)


def entries(document: Any) -> Iterator[object]:
    """The document, or what a List holds."""
    if isinstance(document, dict) and document.get("kind") == "List":
        yield from document["items"]
    else:
        yield document


def outcome(document: object) -> str:
    try:
        return f"read {type(read(json.dumps(document).encode())).__name__}"
    except UnreadKindError as error:
        return f"unread {error}"
    except InvalidObjectError as error:
        return f"refused {error}"


def test_every_document_is_read_named_or_refused_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(FOLDER.glob("**/*.yaml"))
    outcomes = [(path, outcome(document)) for path in files for document in documents(path)]
    counts = Counter(said.partition(" ")[0] for _, said in outcomes)
    with capsys.disabled():
        print(f"\nsamples: {len(files)} files, {len(outcomes)} documents:", *(f"{n} {c}" for c, n in counts.items()))
        print(*(f"  {path.name}: {said}" for path, said in outcomes if said.startswith("refused")), sep="\n")

    assert counts["read"] > 0
    assert not [said for _, said in outcomes if said.startswith("refused") and ": /" not in said]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("slice-h100-mig.yaml", ["read ResourceSlice", "read ResourceSlice"]),
        ("slice-v1beta1.yaml", ["read ResourceSlice"]),
        ("slice-network.yaml", ["read ResourceSlice"]),
        ("slices-list.yaml", ["read ResourceSlice", "read ResourceSlice"]),
        ("class-extended.yaml", ["read DeviceClass", "read Pod"]),
        ("claim-shares.yaml", [
            "unread Namespace of v1 is not read", "read ResourceClaim", "read ResourceClaimTemplate",
        ]),
        ("claim-first-available.yaml", ["read ResourceClaim", "read ResourceClaim"]),
        ("claim-allocated.yaml", ["read ResourceClaim"]),
        ("taint-rule.yaml", ["read DeviceTaintRule", "read DeviceTaintRule"]),
        ("node-and-quota.yaml", ["read Node", "read ResourceQuota"]),
        ("other-kinds.yaml", [
            "unread CustomResourceDefinition of apiextensions.k8s.io/v1 is not read",
            "unread PodGroup of scheduling.k8s.io/v1alpha2 is not read",
        ]),
        ("refused-bare-counters.yaml", [
            "refused ResourceSlice: /spec/sharedCounters/0/counters/memory is '24576Mi', must be an object",
        ]),
        ("refused-bare-attributes.yaml", [
            "refused ResourceSlice: /spec/devices/0/attributes/gpu.example.io~1vendor is 'nvidia', must be an object",
        ]),
        ("refused-fragment.yaml", ["refused ResourceSlice: /spec/driver is required"]),
    ],
)  # fmt: skip
def test_our_own_samples_end_as_they_should(file: str, expected: list[str]) -> None:
    assert [outcome(document) for document in documents(OWN / file)] == expected


def test_every_sample_of_ours_is_in_the_table_above() -> None:
    assert len(list(OWN.glob("*.yaml"))) == 14

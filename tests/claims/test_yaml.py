"""Every string that we write as YAML is read back as that string. The same is asked of the real API server in
tests/cluster/test_yaml_reading.py; PyYAML knows fewer words of YAML 1.1, so the table below names them.
"""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from claims.manifests.yaml import Value, document
from tests.claims.yamltexts import NASTY

TEXTS = st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(NASTY))
SCALARS = st.one_of(TEXTS, st.integers(), st.booleans())
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner), st.dictionaries(TEXTS, inner, max_size=4)), max_leaves=12
)


@pytest.mark.parametrize("text", NASTY)
def test_a_text_that_could_be_something_else_is_quoted(text: str) -> None:
    written = document({"value": text})
    assert written.startswith('value: "')
    assert yaml.safe_load(written) == {"value": text}


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-h100-mps",
        "resource.k8s.io/v1",
        "registry.example/replace-me:latest",
        "ResourceClaimTemplate",
        "gpu",
        "no-n",
    ],
)
def test_plain_words_stay_bare(text: str) -> None:
    assert document({"value": text}) == f"value: {text}\n"


def test_an_expression_of_several_lines_is_a_block() -> None:
    assert document({"cel": {"expression": "a &&\nb"}}) == "cel:\n  expression: |-\n    a &&\n    b\n"


def test_lists_and_empty_values() -> None:
    value: dict[str, Value] = {"list": [{"name": "gpu", "count": 1}, "x", [True]], "none": [], "nothing": {}}
    written = "list:\n- name: gpu\n  count: 1\n- x\n-\n  - true\nnone: []\nnothing: {}\n"
    assert document(value) == written
    assert yaml.safe_load(written) == value


def test_a_comment_stands_above() -> None:
    assert document({"a": 1}, comment="one\ntwo") == "# one\n# two\na: 1\n"


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_written_is_read_back(value: dict[str, Value]) -> None:
    assert yaml.safe_load(document({"root": value})) == {"root": value}

"""Every refusal has its sentences, and every fact it carries is said in them."""

from __future__ import annotations

from pathlib import Path
from string import Formatter

import pytest

from claims.messages import CATALOGUE, say
from claims.refusals import Code, quoted, refuse

DOCUMENT = Path(__file__).parents[2] / "docs" / "dev" / "messages.md"


def test_every_code_has_its_sentences_and_no_other_has() -> None:
    assert set(CATALOGUE) == set(Code)


@pytest.mark.parametrize("code", Code)
def test_the_facts_of_a_code_are_exactly_those_its_sentences_name(code: Code) -> None:
    named = {field for _, field, _, _ in Formatter().parse(str(CATALOGUE[code])) if field is not None}
    assert named == code.facts


@pytest.mark.parametrize("code", Code)
def test_a_message_has_three_whole_sentences(code: Code) -> None:
    sentences = CATALOGUE[code]
    for part in (sentences.what, sentences.why, sentences.next):
        assert part
        assert part[0].isupper() or part[0] in "{“"
        assert part.rstrip("}”")[-1] in ".:" or part.endswith(("}", "”"))


def test_a_fact_is_said_as_it_is() -> None:
    said = say(refuse(Code.NAME_SHAPE, "name", value="{most}", most=63, example="trainer"))
    assert said.what == "“{most}” can't be the name."
    assert "1 to 63" in said.why


def test_a_refusal_with_other_facts_is_a_fault_of_ours() -> None:
    with pytest.raises(ValueError, match="carries"):
        refuse(Code.NAME_SHAPE, "name", value="x")


def test_long_texts_are_quoted_short() -> None:
    assert quoted("x" * 81) == "x" * 80 + "…"
    assert quoted("x" * 80) == "x" * 80


def test_the_catalogue_is_documented_word_for_word() -> None:
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    documented = {code.strip("`"): tuple(parts) for code, *parts in (_cells(row) for row in rows)}
    assert len(documented) == len(rows)
    assert documented == {str(code): (each.what, each.why, each.next) for code, each in CATALOGUE.items()}


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split(" | ")]

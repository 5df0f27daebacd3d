"""Quantities and semantic versions. Rows of an expression and what cel-go says of it."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import told

QUANTITIES = (
    ("quantity('1.5Gi') == quantity('1536Mi')", "true"),
    ("isQuantity('1.3Gi')", "true"),
    ("isQuantity('200K')", "false"),
    ("isQuantity('')", "false"),
    ("quantity('50k').add(quantity('20k')) == quantity('70k')", "true"),
    ("quantity('50k').add(20) == quantity('50020')", "true"),
    ("quantity('50k').sub(quantity('20k')) == quantity('30k')", "true"),
    ("quantity('50k').sub(20000) == quantity('30k')", "true"),
    ("quantity('2') == quantity('1').add(1)", "error: no such overload"),
    ("quantity('1').add(1) == quantity('1').add(1)", "error: no such overload"),
    ("[quantity('1').add(1)].indexOf(quantity('2')) == 0", "true"),
    ("[quantity('2')].indexOf(quantity('1').add(1)) == 0", "false"),
    ("quantity('1').add(1) in [quantity('2')]", "true"),
    ("quantity('2') in [quantity('1').add(1)]", "false"),
    ("quantity('200M').compareTo(quantity('0.2G')) == 0", "true"),
    ("quantity('50M').compareTo(quantity('50Mi')) == -1", "true"),
    ("quantity('150Mi').isGreaterThan(quantity('100Mi'))", "true"),
    ("quantity('50M').isLessThan(quantity('50M'))", "false"),
    ("sign(quantity('-5')) == -1", "true"),
    ("quantity('50k').asInteger() == 50000", "true"),
    ("quantity('1000m').isInteger()", "false"),
    ("quantity('1.0').isInteger()", "false"),
    ("quantity('1.5Gi').isInteger()", "false"),
    ("quantity('1Ei').isInteger()", "false"),
    ("quantity('1.5').asInteger() == 1", "error: cannot convert value to integer"),
    ("quantity('50k').sub(20000).asApproximateFloat() == 30000.0", "true"),
    ("quantity('9999999999999999999999999999999999999G').asApproximateFloat() > 1e45", "true"),
    ("quantity('1e400').asApproximateFloat() > 1e308", "true"),
    ("quantity('1').sub(-9223372036854775807 - 1).asInteger() == -9223372036854775807", "true"),
    ("quantity('0').sub(quantity('0').sub(-9223372036854775807 - 1)).isLessThan(quantity('0'))", "true"),
    ("quantity('1') < quantity('2')", "does not compile"),
)

VERSIONS = (
    ("semver('1.2.3').major() == 1", "true"),
    ("semver('1.2.3').minor() == 2", "true"),
    ("semver('1.2.3').patch() == 3", "true"),
    ("semver('9223372036854775808.0.0').major() == -9223372036854775807 - 1", "true"),
    ("semver('1.0.0-alpha').isLessThan(semver('1.0.0'))", "true"),
    ("semver('1.0.0-alpha.2').isGreaterThan(semver('1.0.0-alpha.10'))", "false"),
    ("semver('1.2.3').compareTo(semver('1.2.3+b')) == 0", "true"),
    ("semver('1.2.3') == semver('1.2.3+b')", "true"),
    ("semver('v1.0', true) == semver('1.0.0')", "true"),
    ("semver('01.01.01', true) == semver('1.1.1')", "true"),
    ("isSemver('1.0.0')", "true"),
    ("isSemver('v1.0')", "false"),
    ("isSemver('v1.0', true)", "true"),
    ("isSemver('1-a', true)", "false"),
    ("isSemver('01.0.0')", "false"),
    ("isSemver('1.2.3-01')", "false"),
    ("isSemver('18446744073709551616.0.0')", "false"),
    ("dyn(semver('1.0.0')) == 1", "error: no such overload"),
    ("dyn(1) == semver('1.0.0')", "false"),
    ("dyn(semver('1.0.0')) != 1", "true"),
)


@pytest.mark.parametrize(("text", "answer"), QUANTITIES)
def test_quantities(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), VERSIONS)
def test_versions(text: str, answer: str) -> None:
    assert told(text) == answer

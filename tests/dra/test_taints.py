"""Taints and tolerations, one row a rule (KEP-5055; `ToleratesTaint`, `taintPreventsAllocation`)."""

from __future__ import annotations

import pytest

from dra.names import DeviceID
from dra.objects import DeviceTaint, DeviceTaintRule, DeviceToleration
from dra.taints import rule_concerns, rule_selects, tolerates, untolerated
from tests.dra.builders import a_rule

BROKEN = DeviceTaint(key="broken", effect="NoSchedule", value="yes")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param(DeviceToleration(key="broken", value="yes"), True, id="equal by default"),
        pytest.param(DeviceToleration(key="broken", value="no"), False, id="another value"),
        pytest.param(DeviceToleration(key="broken", operator="Exists"), True, id="exists needs no value"),
        pytest.param(DeviceToleration(operator="Exists"), True, id="no key stands for all keys"),
        pytest.param(DeviceToleration(key="", value="yes"), True, id="no key with equal, too"),
        pytest.param(DeviceToleration(effect="NoSchedule"), False, id="no value tolerates only the empty value"),
        pytest.param(DeviceToleration(key="hot", operator="Exists"), False, id="another key"),
        pytest.param(DeviceToleration(operator="Exists", effect="NoExecute"), False, id="another effect"),
        pytest.param(DeviceToleration(operator="Exists", effect="NoSchedule"), True, id="this effect"),
        pytest.param(DeviceToleration(key="broken", operator="Like", value="yes"), False, id="an unknown operator"),
        pytest.param(DeviceToleration(key="broken", operator="", value="yes"), True, id="no operator is equal"),
    ],
)
def test_a_toleration(toleration: DeviceToleration, *, tolerated: bool) -> None:
    assert tolerates(toleration, BROKEN) is tolerated


@pytest.mark.parametrize(
    ("effect", "prevents"),
    [("NoSchedule", True), ("NoExecute", True), ("None", False), ("PreferNoSchedule", False), ("Later", False)],
)
def test_an_effect_without_toleration(effect: str, *, prevents: bool) -> None:
    taint = DeviceTaint(key="k", effect=effect)

    assert untolerated([taint], ()) == (taint if prevents else None)


def test_all_taints_must_be_tolerated() -> None:
    hot = DeviceTaint(key="hot", effect="NoExecute")

    assert untolerated([BROKEN, hot], [DeviceToleration(key="broken", operator="Exists")]) == hot


@pytest.mark.parametrize(
    ("rule", "concerned", "selected"),
    [
        pytest.param(a_rule(selector=None), False, False, id="no selector selects nothing"),
        pytest.param(a_rule(selector={}), True, True, id="an empty selector selects everything"),
        pytest.param(a_rule(selector={"driver": "d", "pool": "p", "device": "x"}), True, True, id="all three"),
        pytest.param(a_rule(selector={"device": "y"}), True, False, id="another device of the pool"),
        pytest.param(a_rule(selector={"pool": "q"}), False, False, id="another pool"),
        pytest.param(a_rule(selector={"driver": "e", "device": "x"}), False, False, id="another driver"),
    ],
)
def test_a_rule_of_taints(rule: DeviceTaintRule, *, concerned: bool, selected: bool) -> None:
    assert rule_concerns(rule, "d", "p") is concerned
    assert rule_selects(rule, DeviceID("d", "p", "x")) is selected

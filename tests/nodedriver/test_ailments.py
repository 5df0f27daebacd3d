"""What ails cards, and the taints that say so: each rule by hand, without hardware."""

from dataclasses import replace

import pytest

from dra.objects import DeviceTaint
from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.health.ailments import (
    Ailment,
    Ailments,
    CardEvent,
    CardLook,
    Cause,
    Policy,
    severity_of_action,
    taints_of,
)
from nodedriver.health.xids import Severity, severity_of

DRIVER = "gpu.portico.dev"
CARD, OTHER = PciAddress("0000:17:00.0"), PciAddress("0000:2a:00.0")
LEFT, RIGHT = MigPlacement(9, 0, 4), MigPlacement(9, 4, 4)
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
WELL = CardLook(answers=True, recovery=Severity.INFORMATION, placements=frozenset({LEFT}))
ASKS_RESET, ASKS_NODE = replace(WELL, recovery=Severity.RESET), replace(WELL, recovery=Severity.NODE)
SILENT = CardLook(answers=False)
UNTOLD = replace(WELL, recovery=None)
NOTHING = Ailments(boot_id="b")

# XID, what it asks for, taint key and value, effect (None: no taint at all).
XIDS = [
    (13, Severity.APPLICATION, None),
    (94, Severity.APPLICATION, None),
    (63, Severity.INFORMATION, ("xid", "63", "None")),
    (48, Severity.RESET, ("xid", "48", "NoSchedule")),
    (119, Severity.RESET, ("xid", "119", "NoSchedule")),
    (79, Severity.NODE, ("gpu-lost", "node", "NoSchedule")),
    (158, Severity.NODE, ("xid", "158", "NoSchedule")),
    (4711, Severity.RESET, ("xid", "4711", "NoSchedule")),
]


def keys(ailments: Ailments, placement: MigPlacement | None = None, policy: Policy | None = None) -> list[DeviceTaint]:
    return list(taints_of(DRIVER, ailments.of(CARD, placement), policy or Policy()))


def test_cards_that_can_not_be_heard_are_those_of_now() -> None:
    first = NOTHING.with_unheard([CARD], NOW)
    assert [(taint.key, taint.effect, taint.time_added) for taint in keys(first)] == [
        (f"{DRIVER}/unmonitored", "None", NOW)
    ]
    assert first.with_unheard([CARD], LATER) is first
    both = first.with_event(CardEvent(CARD, 48), NOW)
    assert [each.cause for each in both.with_unheard([OTHER], LATER).of(CARD, None)] == [Cause.XID]


@pytest.mark.parametrize(("xid", "severity", "taint"), XIDS)
def test_an_xid_becomes_a_taint(xid: int, severity: Severity, taint: tuple[str, str, str] | None) -> None:
    assert severity_of(xid) is severity
    found = keys(NOTHING.with_event(CardEvent(CARD, xid), NOW))
    if taint is None:
        assert found == []
    else:
        cause, value, effect = taint
        assert found == [DeviceTaint(key=f"{DRIVER}/{cause}", value=value, effect=effect, time_added=NOW)]


def test_the_hardest_of_a_cause_is_shown_and_keeps_its_time() -> None:
    ailments = NOTHING.with_event(CardEvent(CARD, 158), NOW).with_event(CardEvent(CARD, 63), LATER)
    assert [(taint.value, taint.time_added) for taint in keys(ailments)] == [("158", NOW)]
    again = ailments.with_event(CardEvent(CARD, 158), LATER)
    assert again == ailments


def test_an_error_of_the_whole_card_reaches_every_instance_and_no_other_card() -> None:
    ailments = NOTHING.with_event(CardEvent(CARD, 48), NOW)
    assert [taint.value for taint in keys(ailments, LEFT)] == ["48"]
    assert ailments.of(OTHER, None) == ()


def test_an_error_of_an_instance_reaches_what_overlaps_it() -> None:
    ailments = NOTHING.with_event(CardEvent(CARD, 48, LEFT), NOW)
    assert [bool(keys(ailments, placement)) for placement in (LEFT, None, RIGHT)] == [True, True, False]


@pytest.mark.parametrize(
    ("policy", "effects"),
    [("none", ["NoSchedule"] * 2), ("node", ["NoSchedule", "NoExecute"]), ("reset", ["NoExecute"] * 2)],
)
def test_the_policy_says_who_is_evicted(policy: str, effects: list[str]) -> None:
    found = [keys(NOTHING.with_event(CardEvent(CARD, xid), NOW), policy=Policy.named(policy)) for xid in (48, 158)]
    assert [taint.effect for (taint,) in found] == effects


def test_information_evicts_nobody() -> None:
    (taint,) = keys(NOTHING.with_event(CardEvent(CARD, 63), NOW), policy=Policy.named("reset"))
    assert taint.effect == "None"


def test_a_card_that_asks_for_nothing_is_well_again() -> None:
    ailing = NOTHING.with_event(CardEvent(CARD, 48), NOW).with_event(CardEvent(OTHER, 48), NOW)
    after = ailing.after_look(CARD, WELL, LATER)
    assert [each.gpu for each in after.found] == [OTHER]


def test_a_card_that_still_asks_or_does_not_tell_stays_tainted() -> None:
    ailing = NOTHING.with_event(CardEvent(CARD, 48), NOW)
    assert ailing.after_look(CARD, UNTOLD, LATER) == ailing
    assert keys(ailing.after_look(CARD, ASKS_RESET, LATER)) == keys(ailing) != []


def recovery_taint(value: str, effect: str = "NoSchedule", since: str = NOW) -> DeviceTaint:
    return DeviceTaint(key=f"{DRIVER}/recovery-action", value=value, effect=effect, time_added=since)


def test_what_a_card_asks_for_taints_it_though_no_error_was_heard_until_it_asks_for_nothing() -> None:
    asking = NOTHING.after_look(CARD, ASKS_RESET, NOW)
    assert keys(asking) == keys(asking, RIGHT) == [recovery_taint("reset")]
    assert asking.of(OTHER, None) == ()
    assert asking.after_look(CARD, ASKS_RESET, LATER) == asking.after_look(CARD, UNTOLD, LATER) == asking
    assert asking.after_look(CARD, WELL, LATER) == NOTHING


def test_a_card_that_asks_for_something_else_says_that_alone() -> None:
    more = NOTHING.after_look(CARD, ASKS_RESET, NOW).after_look(CARD, ASKS_NODE, LATER)
    assert keys(more) == [recovery_taint("node", since=LATER)]
    assert keys(more.after_look(CARD, ASKS_RESET, NOW)) == [recovery_taint("reset")]


@pytest.mark.parametrize(
    ("policy", "effects"),
    [
        ("none", ["NoSchedule", "NoSchedule"]),
        ("node", ["NoSchedule", "NoExecute"]),
        ("reset", ["NoExecute", "NoExecute"]),
    ],
)
def test_what_a_card_asks_for_evicts_as_an_error_that_asks_for_the_same(policy: str, effects: list[str]) -> None:
    found = [keys(NOTHING.after_look(CARD, look, NOW), policy=Policy.named(policy)) for look in (ASKS_RESET, ASKS_NODE)]
    assert [taint.effect for (taint,) in found] == effects


def test_a_recovery_action_that_changed_has_the_effect_of_what_it_asks_for() -> None:
    heard = NOTHING.with_event(CardEvent(CARD, 154), NOW)
    notice = DeviceTaint(key=f"{DRIVER}/xid", value="154", effect="None", time_added=NOW)
    asking = heard.after_look(CARD, ASKS_RESET, LATER)
    assert keys(asking, policy=Policy.named("reset")) == [recovery_taint("reset", "NoExecute", LATER), notice]
    assert keys(asking.after_look(CARD, WELL, LATER)) == [notice]


@pytest.mark.parametrize(
    "ailing",
    [
        NOTHING.with_event(CardEvent(CARD, 48), NOW).after_look(CARD, ASKS_RESET, NOW),
        NOTHING.after_look(CARD, ASKS_RESET, NOW).with_event(CardEvent(CARD, 48), NOW),
    ],
    ids=["heard first", "seen first"],
)
def test_an_error_that_asks_for_as_much_says_it_alone(ailing: Ailments) -> None:
    assert [taint.value for taint in keys(ailing)] == ["48"]
    assert [each.cause for each in ailing.of(CARD, None)] == [Cause.XID]
    harder = ailing.after_look(CARD, ASKS_NODE, LATER)
    assert [taint.value for taint in keys(harder)] == ["node", "48"]
    assert harder.after_look(CARD, WELL, LATER) == NOTHING


def test_an_error_of_an_instance_does_not_speak_for_its_neighbours() -> None:
    ailing = NOTHING.with_event(CardEvent(CARD, 48, LEFT), NOW).after_look(CARD, ASKS_RESET, NOW)
    shown = [[taint.value for taint in keys(ailing, each)] for each in (LEFT, None, RIGHT)]
    assert shown == [["48"], ["48"], ["reset"]]
    without = ailing.after_look(CARD, replace(ASKS_RESET, placements=frozenset()), LATER)
    assert keys(without) == [recovery_taint("reset")]


def test_information_stays_until_the_next_boot() -> None:
    ailing = NOTHING.with_event(CardEvent(CARD, 63), NOW)
    assert ailing.after_look(CARD, WELL, LATER) == ailing
    assert ailing.at_boot("b") == ailing
    assert ailing.at_boot("c") == Ailments(boot_id="c")


def test_an_ailment_goes_with_its_instance() -> None:
    ailing = NOTHING.with_event(CardEvent(CARD, 48, RIGHT), NOW)
    assert ailing.after_look(CARD, replace(UNTOLD, placements=frozenset({LEFT})), LATER) == NOTHING


def test_a_card_that_does_not_answer_is_lost_until_it_does() -> None:
    lost = NOTHING.after_look(CARD, SILENT, NOW)
    assert lost.found == (Ailment(gpu=CARD, cause=Cause.LOST, severity=Severity.NODE, since=NOW),)
    assert lost.after_look(CARD, SILENT, LATER) == lost
    assert lost.after_look(CARD, UNTOLD, LATER) == NOTHING


# nvmlGpuRecoveryAction 0 to 7: none, GPU reset, node reboot, drain P2P, drain and reset, recover IMEX, bus reset,
# system reboot.
ACTIONS = ["information", "reset", "node", "reset", "reset", "node", "reset", "node"]


def test_recovery_actions() -> None:
    assert [severity_of_action(action).value for action in range(8)] == ACTIONS

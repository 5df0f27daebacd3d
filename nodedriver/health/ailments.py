"""What ails the cards, as values: a new event added, the taints of a device, what a look at the card lifts. Pure.

An ailment concerns a whole card, or one GPU instance on it; one of the whole card reaches every device of it, MIG ones
too. NVML's recovery action, where a card tells it, decides over the table of XIDs: what it asks for ails the card, even
where no XID was heard, and where it asks for nothing the card is well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from dra.objects import DeviceTaint
from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.health.xids import Severity, name_of, severity_of


class Cause(StrEnum):
    """What was seen; the last part of the taint's key."""

    XID = "xid"
    RECOVERY = "recovery-action"
    LOST = "gpu-lost"
    MPS = "mps-fault"
    UNMONITORED = "unmonitored"


SILENT = "supervisor-silent"  # instead of a daemon's state: nobody tells it


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailment:
    """One thing that is wrong. `code` is the XID; `since` is RFC 3339; `placement` None concerns the whole card.

    `state` is how the MPS daemon is, for a fault of one, or SILENT.
    """

    gpu: PciAddress
    cause: Cause
    severity: Severity
    since: str
    code: int = 0
    placement: MigPlacement | None = None
    state: str = ""

    @property
    def value(self) -> str:
        """The taint's value, a label value: the XID's number, the daemon's state, else what it asks for."""
        return str(self.code) if self.cause is Cause.XID else self.state or self.severity.value

    @property
    def is_untold(self) -> bool:
        """Whether it says that nobody can tell how the device is, and not that the device is ill."""
        return self.cause is Cause.UNMONITORED or self.state == SILENT

    def __str__(self) -> str:
        what = f"XID {self.code} ({name_of(self.code) or 'unknown'})" if self.cause is Cause.XID else self.cause.value
        what += f" ({self.state})" if self.state else ""
        return f"{what} since {self.since}, asks for: {self.severity}"


@dataclass(frozen=True, slots=True)
class CardEvent:
    """A critical XID, of a whole card or of the GPU instance at that placement."""

    gpu: PciAddress
    xid: int
    placement: MigPlacement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLook:
    """What a look at a card found. `recovery` is what NVML says it asks for, None where it does not tell."""

    answers: bool
    recovery: Severity | None = None
    placements: frozenset[MigPlacement] = frozenset()


@dataclass(frozen=True, slots=True)
class Policy:
    """How hard taints are: ailments of these severities also evict the pods that hold the device."""

    evicts: frozenset[Severity] = frozenset()

    @classmethod
    def named(cls, name: str) -> Policy:
        """The setting's words: nothing evicts, what asks for the node does, or what asks for a reset too."""
        named = {"none": (), "node": (Severity.NODE,), "reset": (Severity.NODE, Severity.RESET)}
        return cls(frozenset(named[name]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailments:
    """All that is wrong now, oldest first, under the boot in which it was seen."""

    boot_id: str = ""
    found: tuple[Ailment, ...] = field(default=())

    def with_event(self, event: CardEvent, now: str) -> Ailments:
        """The XID added. One that only ends a process leaves no ailment; a repeated one keeps its first time."""
        severity = severity_of(event.xid)
        if severity is Severity.APPLICATION:
            return self
        cause = Cause.LOST if event.xid == _OFF_THE_BUS else Cause.XID
        seen = Ailment(gpu=event.gpu, cause=cause, severity=severity, since=now, code=event.xid)
        return self.having(replace(seen, placement=event.placement))

    def having(self, ailment: Ailment) -> Ailments:
        """With that ailment; nothing changes where the same was known."""
        known = any(replace(each, since="") == replace(ailment, since="") for each in self.found)
        return self if known else replace(self, found=(*self.found, ailment))

    def with_daemons(self, faults: Iterable[Ailment]) -> Ailments:
        """With exactly these faults of MPS daemons; one that was known keeps its first time."""
        return self._with_exactly(Cause.MPS, faults)

    def with_unheard(self, gpus: Iterable[PciAddress], now: str) -> Ailments:
        """With exactly these cards as those whose errors can't be heard: the next driver may hear them again."""
        severity = Severity.INFORMATION
        unheard = (Ailment(gpu=gpu, cause=Cause.UNMONITORED, severity=severity, since=now) for gpu in gpus)
        return self._with_exactly(Cause.UNMONITORED, unheard)

    def _with_exactly(self, cause: Cause, ailments: Iterable[Ailment]) -> Ailments:
        known = {replace(each, since="") for each in self.found if each.cause is cause}
        wanted = {replace(each, since=""): each for each in ailments}
        kept = [each for each in self.found if each.cause is not cause or replace(each, since="") in wanted]
        new = [each for key, each in wanted.items() if key not in known]
        return self if not new and len(kept) == len(self.found) else replace(self, found=(*kept, *new))

    def after_look(self, gpu: PciAddress, look: CardLook, now: str) -> Ailments:
        """What is left after a look at the card: what it recovered from is gone, what it lost or asks for is new.

        A card that answers and asks for nothing is well again, but for what only informs. One that does not tell keeps
        what asks for a reset or more until the next boot. An ailment of a GPU instance goes with the instance.
        """
        if not look.answers:
            return self.having(Ailment(gpu=gpu, cause=Cause.LOST, severity=Severity.NODE, since=now))
        left = tuple(each for each in self.found if each.gpu != gpu or not _is_over(each, look))
        rest = self if left == self.found else replace(self, found=left)
        if look.recovery is None or look.recovery is Severity.INFORMATION:
            return rest
        return rest.having(Ailment(gpu=gpu, cause=Cause.RECOVERY, severity=look.recovery, since=now))

    def at_boot(self, boot_id: str) -> Ailments:
        """Under that boot: a restart of the node ends all of them, and what is still wrong is seen again."""
        return self if boot_id == self.boot_id else Ailments(boot_id=boot_id)

    def of(self, gpu: PciAddress, placement: MigPlacement | None) -> tuple[Ailment, ...]:
        """What concerns that device: the whole card's, and those of what overlaps it.

        What the card asks for is left out beside what it follows from: another ailment that asks for as much.
        """
        mine = tuple(each for each in self.found if each.gpu == gpu and _touches(each.placement, placement))
        return tuple(each for each in mine if each.cause is not Cause.RECOVERY or not _explained(each, mine))


_OFF_THE_BUS = 79
_BY_ACTION = {0: None, 1: Severity.RESET, 2: Severity.NODE, 3: Severity.RESET, 4: Severity.RESET, 6: Severity.RESET}
_ORDER = (Severity.APPLICATION, Severity.INFORMATION, Severity.DAEMON, Severity.RESET, Severity.NODE)


def severity_of_action(action: int) -> Severity:
    """What nvmlGpuRecoveryAction (field 230) asks for; INFORMATION for none."""
    return _BY_ACTION.get(action, Severity.NODE) or Severity.INFORMATION


def taints_of(driver_name: str, ailments: Iterable[Ailment], policy: Policy) -> tuple[DeviceTaint, ...]:
    """One taint a cause, of its hardest ailment: the key says what was seen, the value which, the time since when."""
    hardest: dict[Cause, Ailment] = {}
    for each in ailments:
        known = hardest.get(each.cause)
        if known is None or _hardness(each) > _hardness(known):
            hardest[each.cause] = each
    return tuple(_taint(driver_name, each, policy) for _, each in sorted(hardest.items()))


def _hardness(ailment: Ailment) -> int:
    return _ORDER.index(ailment.severity)


def _explained(asked: Ailment, ailments: Iterable[Ailment]) -> bool:
    return any(each.cause is not Cause.RECOVERY and _hardness(each) >= _hardness(asked) for each in ailments)


def _taint(driver_name: str, ailment: Ailment, policy: Policy) -> DeviceTaint:
    return DeviceTaint(
        key=f"{driver_name}/{ailment.cause}",
        value=ailment.value,
        effect=_effect(ailment.severity, policy),
        time_added=ailment.since,
    )


def _effect(severity: Severity, policy: Policy) -> str:
    if severity is Severity.INFORMATION:
        return "None"
    return "NoExecute" if severity in policy.evicts else "NoSchedule"


def _is_over(ailment: Ailment, look: CardLook) -> bool:
    if ailment.placement is not None and ailment.placement not in look.placements:
        return True
    if ailment.cause is Cause.MPS:
        return False  # the supervisor knows
    if ailment.cause is Cause.LOST:
        return True  # it answers
    if ailment.cause is Cause.RECOVERY:
        return look.recovery not in (None, ailment.severity)
    return look.recovery is Severity.INFORMATION and ailment.severity is not Severity.INFORMATION


def _touches(ailing: MigPlacement | None, device: MigPlacement | None) -> bool:
    if ailing is None or device is None:
        return True
    return ailing.start < device.start + device.size and device.start < ailing.start + ailing.size

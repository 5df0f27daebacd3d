"""The steps of claims, and what undoes them beside neighbours: written out, without hardware."""

from dataclasses import replace
from typing import Any

import pytest

from dra.names import ClaimUID
from nodedriver.cardmodes import CardMode
from nodedriver.facts import ComputeMode, DeviceType, MigPlacement, PciAddress
from nodedriver.gpuconfig import Interval, MpsLimits
from nodedriver.holding import ClaimState, PreparedClaim, PreparedDevice
from nodedriver.ports import MpsShare
from nodedriver.steps import (
    EndClients,
    EnterMode,
    GiveBack,
    MakeInstance,
    RemoveInstance,
    RemoveSpec,
    RunDaemon,
    SetComputeMode,
    SetTimeSlice,
    SettleMode,
    Step,
    StopDaemon,
    WriteSpec,
    steps_of,
    undo_of,
)
from nodedriver.vfioconfig import VfioConfig

CARD, OTHER = PciAddress("0000:17:00.0"), PciAddress("0000:2a:00.0")
AT_4 = MigPlacement(9, 4, 4)
QUARTER, HALF = MpsLimits(thread_percentage=25), MpsLimits(thread_percentage=50)
OF_A = MpsShare(claim=ClaimUID("a"), name="share", limits=QUARTER)
OF_B = MpsShare(claim=ClaimUID("b"), name="share", limits=HALF)


def device(**fields: Any) -> PreparedDevice:
    return replace(
        PreparedDevice(device_request="gpu", pool="node-1", device="gpu-0", gpu=CARD, cdi_device_id="share"), **fields
    )


def claim(*devices: PreparedDevice, uid: str = "a") -> PreparedClaim:
    return PreparedClaim(
        namespace="t", name=uid, uid=ClaimUID(uid), state=ClaimState.STARTED, devices=devices
    )  # fmt: skip


WHOLE = device(uuid="GPU-1")
PART = device(placement=AT_4, type=DeviceType.MIG, made_instance=True, uuid="MIG-1")
SHARE = device(uuid="GPU-1", share=25, mps=QUARTER, exclusive_process=True)
SHARED_PART = replace(PART, share=25, mps=QUARTER)
VIRTUAL = device(uuid="u", type=DeviceType.VFIO, vfio=VfioConfig(), bound=True, persistence=True)
LONG = device(uuid="GPU-1", interval=Interval.LONG)

FORWARD: dict[str, tuple[PreparedClaim, tuple[PreparedClaim, ...], list[Step]]] = {
    "whole": (claim(WHOLE), (), [EnterMode(CARD, CardMode.WHOLE), WriteSpec()]),
    "time slice": (
        claim(LONG),
        (),
        [EnterMode(CARD, CardMode.WHOLE), SetTimeSlice(CARD, Interval.LONG), WriteSpec()],
    ),
    "MIG": (claim(PART), (), [EnterMode(CARD, CardMode.MIG), MakeInstance(0, CARD, AT_4), WriteSpec()]),
    "share beside a larger one": (
        claim(SHARE),
        (claim(replace(SHARE, share=50, mps=HALF), uid="b"),),
        [
            EnterMode(CARD, CardMode.WHOLE),
            SetComputeMode(CARD, ComputeMode.EXCLUSIVE_PROCESS),
            RunDaemon(0, (OF_A, OF_B)),
            WriteSpec(),
        ],
    ),
    "two cards, one under MPS on MIG": (
        claim(replace(WHOLE, gpu=OTHER), SHARED_PART),
        (),
        [
            EnterMode(OTHER, CardMode.WHOLE),
            EnterMode(CARD, CardMode.MIG),
            MakeInstance(1, CARD, AT_4),
            RunDaemon(1, (OF_A,)),
            WriteSpec(),
        ],
    ),
    "admin access": (claim(replace(WHOLE, admin_access=True)), (), [WriteSpec()]),
    "a card for a virtual machine": (claim(VIRTUAL), (), [EnterMode(CARD, CardMode.VFIO), WriteSpec()]),
}

BACK: dict[str, tuple[PreparedClaim, tuple[PreparedClaim, ...], list[Step]]] = {
    "whole": (claim(WHOLE), (), [SettleMode(CARD), RemoveSpec()]),
    "time slice": (claim(LONG), (), [SetTimeSlice(CARD, Interval.DEFAULT), SettleMode(CARD), RemoveSpec()]),
    "MIG": (claim(PART), (), [RemoveInstance(CARD, AT_4), SettleMode(CARD), RemoveSpec()]),
    "MIG, made by hand": (claim(replace(PART, made_instance=False)), (), [SettleMode(CARD), RemoveSpec()]),
    "MIG beside another instance": (
        claim(PART),
        (claim(replace(PART, placement=MigPlacement(9, 0, 4)), uid="b"),),
        [RemoveInstance(CARD, AT_4), RemoveSpec()],
    ),
    "last share": (
        claim(SHARE),
        (),
        [StopDaemon("GPU-1"), SetComputeMode(CARD, ComputeMode.DEFAULT), SettleMode(CARD), RemoveSpec()],
    ),
    "a share of several": (
        claim(SHARE),
        (claim(replace(SHARE, share=50, mps=HALF), uid="b"),),
        [EndClients("GPU-1"), RunDaemon(0, (OF_B,)), RemoveSpec()],
    ),
    "share of a MIG instance that was never made": (
        claim(replace(SHARED_PART, uuid="")),
        (),
        [RemoveInstance(CARD, AT_4), SettleMode(CARD), RemoveSpec()],
    ),
    "admin access": (claim(replace(WHOLE, admin_access=True)), (claim(WHOLE, uid="b"),), [RemoveSpec()]),
    "a card for a virtual machine": (
        claim(VIRTUAL),
        (),
        [GiveBack(CARD, persistence=True), SettleMode(CARD), RemoveSpec()],
    ),
    "a card that an administrator bound": (
        claim(replace(VIRTUAL, bound=False)),
        (),
        [SettleMode(CARD), RemoveSpec()],
    ),
}


@pytest.mark.parametrize(("prepared", "others", "steps"), FORWARD.values(), ids=FORWARD)
def test_prepare(prepared: PreparedClaim, others: tuple[PreparedClaim, ...], steps: list[Step]) -> None:
    assert list(steps_of(prepared, others)) == steps


@pytest.mark.parametrize(("prepared", "others", "steps"), BACK.values(), ids=BACK)
def test_undo(prepared: PreparedClaim, others: tuple[PreparedClaim, ...], steps: list[Step]) -> None:
    assert list(undo_of(prepared, others)) == steps

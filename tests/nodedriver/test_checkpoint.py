"""The checkpoint file and who holds what: real files, a reboot, newer writers, and content that can't be read."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from dra.names import ClaimUID
from nodedriver.checkpoint import CheckpointError, read_checkpoint, write_checkpoint
from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.gpuconfig import MpsLimits
from nodedriver.holding import Checkpoint, ClaimState, PreparedClaim, PreparedDevice, why_not
from nodedriver.locks import Locks
from nodedriver.prepared import PreparedClaims
from nodedriver.vfioconfig import VfioConfig

CARD, OTHER_CARD = PciAddress("0000:17:00.0"), PciAddress("0000:2a:00.0")
LEFT, RIGHT, INSIDE_LEFT = MigPlacement(9, 0, 4), MigPlacement(9, 4, 4), MigPlacement(14, 2, 2)
BOOT = "boot-1"


def device(
    share: int = 100, *, gpu: PciAddress = CARD, placement: MigPlacement | None = None, admin: bool = False
) -> PreparedDevice:
    limits = MpsLimits(thread_percentage=share, memory_limit=share * 2**20) if share < 100 else None
    return PreparedDevice(
        device_request="gpu",
        pool="node-1",
        device="gpu-0" if placement is None else f"gpu-0-mig-{placement.profile_id}-{placement.start}",
        share=share,
        admin_access=admin,
        gpu=gpu,
        placement=placement,
        made_instance=placement is not None,
        mps=limits,
        exclusive_process=limits is not None,
        cdi_device_id="gpu.portico.dev/claim=x",
    )


def claim(uid: str, *devices: PreparedDevice, state: ClaimState = ClaimState.COMPLETED) -> PreparedClaim:
    return PreparedClaim(
        namespace="ml-team", name=f"claim-{uid}", uid=ClaimUID(uid), state=state, devices=devices, prepared_at="2026"
    )


def holding(*claims: PreparedClaim) -> Checkpoint:
    return Checkpoint(boot_id=BOOT, claims={each.uid: each for each in claims})


def prepared(folder: Path, boot_id: str = BOOT) -> PreparedClaims:
    return PreparedClaims(folder / "checkpoint.json", boot_id=boot_id, locks=Locks(folder / "locks", deadline=1))


def nothing(_claims: Iterable[PreparedClaim]) -> dict[PciAddress, str]:
    raise AssertionError("the hardware was looked at without need")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = holding(claim("a", device(25), device(placement=LEFT)), claim("b", state=ClaimState.STARTED))
    write_checkpoint(tmp_path / "checkpoint.json", written)
    assert read_checkpoint(tmp_path / "checkpoint.json", BOOT) == written


def test_no_file_is_an_empty_checkpoint(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path / "checkpoint.json", BOOT) == Checkpoint(boot_id=BOOT)


def test_fields_of_a_newer_writer_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    write_checkpoint(path, holding(claim("a", device())))
    document = json.loads(path.read_bytes())
    document["new"] = {"x": 1}
    document["claims"]["a"]["devices"][0]["new"] = [1]
    path.write_text(json.dumps(document))
    assert read_checkpoint(path, BOOT) == holding(claim("a", device()))


def test_after_a_reboot_every_claim_is_to_be_prepared_anew(tmp_path: Path) -> None:
    claims = prepared(tmp_path)
    claims.save(claim("a", device(25), device(placement=LEFT)))
    after = prepared(tmp_path, boot_id="boot-2")
    assert after.open((), nothing).aside is None
    entry = json.loads((tmp_path / "checkpoint.json").read_bytes())
    assert entry["boot_id"] == "boot-2"
    assert entry["claims"]["a"]["state"] == "started"
    assert [(d["made_instance"], d["exclusive_process"]) for d in entry["claims"]["a"]["devices"]] == [
        (False, False)
    ] * 2


def test_a_reboot_ends_bindings_to_vfio(tmp_path: Path) -> None:
    """What is bound after it was bound by an administrator, and stays so."""
    claims = prepared(tmp_path)
    claims.save(claim("a", replace(device(), vfio=VfioConfig(), bound=True, persistence=True)))
    assert claims.read().passed_through == {CARD}
    after = prepared(tmp_path, boot_id="boot-2")
    after.open((), nothing)
    assert after.read().passed_through == frozenset()


UNREADABLE = {
    "cut off": b'{"version": 1, "boot_id": "boot-1", "claims": {"a": {"names',
    "empty": b"",
    "not text": b"\xff\xfe\x00\x01",
    "other JSON": b'["claims"]',
    "field of the wrong type": b'{"version": 1, "boot_id": "boot-1", "claims": {"a": 3}}',
    "newer version": b'{"version": 2, "boot_id": "boot-1"}',
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_is_set_aside_and_never_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "checkpoint.json"
    path.write_bytes(content)
    aside = prepared(tmp_path).open((), lambda _: {CARD: "2 MIG instances"}).aside
    assert aside is not None
    assert aside.path.name.startswith("checkpoint.json.unreadable-")
    assert aside.path.read_bytes() == content
    assert str(path) in aside.reason
    assert read_checkpoint(path, BOOT).claims == {}


def test_a_checkpoint_that_breaks_while_we_run_is_not_overwritten(tmp_path: Path) -> None:
    claims = prepared(tmp_path)
    claims.open((), nothing)
    (tmp_path / "checkpoint.json").write_bytes(b"{")
    with pytest.raises(CheckpointError):
        claims.save(claim("a", device()))
    assert (tmp_path / "checkpoint.json").read_bytes() == b"{"


def test_unclean_cards_stay_refused_until_they_are_clean(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.json").write_bytes(b"broken")
    prepared(tmp_path).open((), lambda _: {CARD: "1 MIG instances", OTHER_CARD: "compute mode EXCLUSIVE_PROCESS"})
    again = prepared(tmp_path)
    assert again.open((), lambda _: {CARD: "1 MIG instances"}).aside is None
    assert set(again.read().unclean) == {CARD}
    reason = why_not(again.read(), claim("a", device()))
    assert "GPU 0000:17:00.0 takes no new claims, since the checkpoint could not be read" in reason
    assert "the card still has 1 MIG instances. An operator must make it clean" in reason
    assert why_not(again.read(), claim("a", device(gpu=OTHER_CARD))) == ""
    prepared(tmp_path).open((), lambda _: {})
    assert again.read().unclean == {}


def test_what_the_cdi_files_note_is_taken_over_where_nothing_contradicts_it(tmp_path: Path) -> None:
    claims = prepared(tmp_path)
    claims.open((), nothing)
    claims.save(claim("a", device(50)))
    noted = [claim("a", device(10)), claim("b", device(50)), claim("c", device(5))]
    opened = prepared(tmp_path).open(noted, nothing)
    assert [ref.uid for ref in opened.restored] == ["b"]
    assert claims.read() == holding(claim("a", device(50)), claim("b", device(50)))


def test_a_broken_checkpoint_is_made_anew_from_the_cdi_files(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.json").write_bytes(b"broken")
    looked: list[PreparedClaim] = []

    def look(claims: Iterable[PreparedClaim]) -> dict[PciAddress, str]:
        looked.extend(claims)
        return {OTHER_CARD: "1 MIG instances"}

    opened = prepared(tmp_path).open([claim("a", device())], look)
    assert looked == [claim("a", device())]
    assert opened.aside is not None
    checkpoint = prepared(tmp_path).read()
    assert (set(checkpoint.claims), set(checkpoint.unclean)) == ({"a"}, {OTHER_CARD})


HELD: dict[str, tuple[PreparedClaim, PreparedClaim, str]] = {
    "free": (claim("a"), claim("b", device()), ""),
    "held whole": (
        claim("a", device()),
        claim("b", device()),
        "claims hold (100 %) its shares would be 200 %",
    ),
    "shares fit": (claim("a", device(50)), claim("b", device(50)), ""),
    "shares do not fit": (claim("a", device(50)), claim("b", device(55)), "would be 105 % of it"),
    "share of a whole": (claim("a", device()), claim("b", device(5)), "would be 105 % of it"),
    "other card": (claim("a", device()), claim("b", device(gpu=OTHER_CARD)), ""),
    "MIG of a held card": (claim("a", device(5)), claim("b", device(placement=LEFT)), "it overlaps gpu-0, which"),
    "card with a held MIG": (claim("a", device(placement=LEFT)), claim("b", device()), "it overlaps gpu-0-mig-9-0"),
    "MIG beside MIG": (claim("a", device(placement=LEFT)), claim("b", device(placement=RIGHT)), ""),
    "MIG inside MIG": (claim("a", device(placement=LEFT)), claim("b", device(placement=INSIDE_LEFT)), "it overlaps"),
    "shares of one MIG": (claim("a", device(40, placement=LEFT)), claim("b", device(60, placement=LEFT)), ""),
    "admin beside a holder": (claim("a", device()), claim("b", device(admin=True)), ""),
    "holder beside an admin": (claim("a", device(admin=True)), claim("b", device()), ""),
    "half prepared holds too": (
        claim("a", device(), state=ClaimState.STARTED),
        claim("b", device(5)),
        "would be 105 %",
    ),
    "two shares of one claim": (claim("a"), claim("b", device(60), device(60)), "the other shares of this claim"),
    "its own entry is no holder": (claim("b", device()), claim("b", device()), ""),
}


@pytest.mark.parametrize(("holder", "wanting", "reason"), HELD.values(), ids=HELD)
def test_why_not(holder: PreparedClaim, wanting: PreparedClaim, reason: str) -> None:
    answer = why_not(holding(holder), wanting)
    assert reason in answer if reason else answer == ""
    assert holder.name not in answer  # it may be another team's


def test_entries_are_saved_replaced_and_dropped_one_by_one(tmp_path: Path) -> None:
    claims = prepared(tmp_path)
    claims.open((), nothing)
    started = claim("a", device(), state=ClaimState.STARTED)
    claims.save(started)
    claims.save(claim("b", device(gpu=OTHER_CARD)))
    claims.save(replace(started, state=ClaimState.COMPLETED))
    assert claims.read() == holding(claim("a", device()), claim("b", device(gpu=OTHER_CARD)))
    claims.drop(ClaimUID("a"))
    claims.drop(ClaimUID("unknown"))
    assert set(claims.read().claims) == {"b"}

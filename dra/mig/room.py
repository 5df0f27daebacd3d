"""Which sets of MIG instances a card may hold, and what still fits beside those that it has.

Facts come from `dra.mig.profiles`. Where a number is not confirmed there, no rule is made of it. The rules: legal
starts, no memory slice twice, compute slices, instances per profile and engines within the card (MIG User Guide).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields

from dra.mig.counters import Contents, card_contents
from dra.mig.placement import PlacedProfile, best_first
from dra.mig.profiles import MigModel, MigProfile

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Room:
    """What of one profile still fits: how many further instances together, and each start that one could take."""

    count: int
    starts: tuple[int, ...]


def placements(model: MigModel) -> tuple[PlacedProfile, ...]:
    """Every profile of the model at each of its legal starts, best first."""
    return best_first(placed(profile, start) for profile in model.profiles for start in profile.starts)


def placed(profile: MigProfile, start: int) -> PlacedProfile:
    """The profile at this start, legal or not."""
    return PlacedProfile(
        profile=profile.name,
        start=start,
        size=profile.memory_slices,
        compute_slices=profile.compute_slices,
        max_instances=profile.max_instances,
    )


def contents(profile: MigProfile) -> Contents | None:
    """What an instance of the profile holds, or None where the table lacks a number of it."""
    engines = profile.engines
    if engines is None or profile.memory_mib is None or profile.multiprocessors is None:
        return None
    return Contents(
        memory=profile.memory_mib * _MIB,
        multiprocessors=profile.multiprocessors,
        copy_engines=engines.copy,
        decoders=engines.decoder,
        encoders=engines.encoder,
        jpeg_engines=engines.jpeg,
        ofa_engines=engines.ofa,
    )


def card(model: MigModel) -> Contents | None:
    """What a whole card holds, as `card_contents` concludes from its profiles; None where one's numbers are lacking."""
    known = [each for profile in model.profiles if (each := contents(profile)) is not None]
    return card_contents((model.total_memory_mib or 0) * _MIB, known) if len(known) == len(model.profiles) else None


def legal(model: MigModel, chosen: Iterable[PlacedProfile]) -> bool:
    """Whether a card of the model can hold all of these at once; KeyError for a profile that it does not have."""
    every = tuple(chosen)
    if any(choice.start not in model.profile(choice.profile).starts for choice in every):
        return False
    slices = Counter(index for choice in every for index in choice.memory_slices)
    if any(times > 1 for times in slices.values()):
        return False
    if sum(choice.compute_slices for choice in every) > model.compute_slices:
        return False
    instances = Counter(choice.profile for choice in every)
    if any(times > model.profile(name).max_instances for name, times in instances.items()):
        return False
    return _engines_suffice(model, every)


def can_still_host(model: MigModel, chosen: Iterable[PlacedProfile]) -> dict[str, Room]:
    """For each profile, best first, the room that is left beside what the card holds.

    Counts are for one profile alone: what fits of two profiles together is asked again with the first one chosen.
    """
    held = tuple(chosen)
    rooms = {}
    for name in dict.fromkeys(choice.profile for choice in placements(model)):
        starts = tuple(choice.start for choice in placements(model) if choice.profile == name)
        free = tuple(start for start in starts if legal(model, (*held, placed(model.profile(name), start))))
        rooms[name] = Room(_most_together(model, held, model.profile(name)), free)
    return rooms


def _most_together(model: MigModel, held: tuple[PlacedProfile, ...], profile: MigProfile) -> int:
    """Taking each start from the low end is best where all instances have one size and need the same besides."""
    added: tuple[PlacedProfile, ...] = ()
    for start in sorted(profile.starts):
        more = (*added, placed(profile, start))
        added = more if legal(model, (*held, *more)) else added
    return len(added)


def _engines_suffice(model: MigModel, chosen: tuple[PlacedProfile, ...]) -> bool:
    whole = card(model)
    if whole is None:
        return True
    drawn = [each for choice in chosen if (each := contents(model.profile(choice.profile))) is not None]
    return all(sum(getattr(each, f.name) for each in drawn) <= getattr(whole, f.name) for f in fields(Contents))

"""The number of each card in its device names: given out in PCI order, kept on disk, never given to another card.

NVML's index moves when a card leaves; a device name must not, since claims hold it. A card that comes into the place of
another (the same PCI address) takes over its number.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from pathlib import Path

import msgspec

from nodedriver.facts import PciAddress
from nodedriver.files import write_atomically


class RanksError(Exception):
    """The file of ranks can't be read. The text names it and what to do."""


def assign_ranks(path: Path, cards: Iterable[PciAddress]) -> dict[PciAddress, int]:
    """The rank of every card ever seen, these among them; new ones take the lowest numbers that nobody has had.

    RanksError for a file that is not ours: guessing could give a claim's device name to another card.
    """
    known = _read(path)
    free = (rank for rank in count() if rank not in set(known.values()))
    ranks = known | {card: next(free) for card in sorted(set(cards) - known.keys())}
    if ranks != known:
        write_atomically(path, msgspec.json.encode(ranks, order="sorted"))
    return ranks


def _read(path: Path) -> dict[PciAddress, int]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[PciAddress, int])
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError as error:
        raise RanksError(
            f"the numbers of the cards in {path} can't be read: {error}. Drain the node of GPU pods, remove the file "
            "and start the node driver again."
        ) from error

"""Random choices in words. Everything random in the cases comes from one Dice, so a seed names a run for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random


class Dice:
    """Choices from a seed (a number or a text)."""

    def __init__(self, seed: int | str) -> None:
        self._random = Random(seed)

    def chance(self, share: float) -> bool:
        """True in that share of all throws."""
        return self._random.random() < share

    def number(self, low: int, high: int) -> int:
        """One of low..high, both included."""
        return self._random.randint(low, high)

    def pick[T](self, options: Sequence[T]) -> T:
        """One of them."""
        return options[self._random.randrange(len(options))]

    def weighted[T](self, options: Mapping[T, float]) -> T:
        """One of the keys, as often as its weight says."""
        return self._random.choices(list(options), list(options.values()))[0]

    def some[T](self, options: Sequence[T], low: int, high: int) -> list[T]:
        """Between low and high different ones, as far as there are so many, in random order."""
        return self._random.sample(options, min(self.number(low, high), len(options)))

    def shuffled[T](self, options: Sequence[T]) -> list[T]:
        """All of them in random order."""
        return self._random.sample(options, len(options))

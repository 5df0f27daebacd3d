"""Go's sort.Slice: not stable, so equal keys come out in an order of its own, which expressions can see.

Pattern-defeating quicksort as src/sort/zsortfunc.go has it; lists of up to 12 are sorted by insertion. Knows no CEL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

type Less = Callable[[int, int], bool]

_MOST_BY_INSERTION: Final = 12
_SHORTEST_NINTHER: Final = 50
_SHORTEST_SHIFTING: Final = 50
_MOST_STEPS: Final = 5
_ALL_SWAPPED: Final = 12
_MASK: Final = 2**64 - 1


def sorted_indices(size: int, less: Less) -> list[int]:
    """0..size-1 in the order that sort.Slice puts them in; `less` compares two of them."""
    sorter = _Sorter(list(range(size)), less)
    sorter.quick(0, size, size.bit_length())
    return sorter.order


class _Sorter:
    """The permutation being made. Positions index `order`; the caller's `less` sees what stands at them."""

    __slots__ = ("_less", "order")

    def __init__(self, order: list[int], less: Less) -> None:
        self.order = order
        self._less = less

    def less(self, left: int, right: int) -> bool:
        return self._less(self.order[left], self.order[right])

    def swap(self, left: int, right: int) -> None:
        order = self.order
        order[left], order[right] = order[right], order[left]

    def quick(self, start: int, end: int, limit: int) -> None:
        """Sort positions start..end-1; `limit` counts the bad pivots that are left before heapsort takes over."""
        balanced = partitioned = True
        while end - start > _MOST_BY_INSERTION:
            if limit == 0:
                self._heap(start, end)
                return
            if not balanced:
                self._break_patterns(start, end)
                limit -= 1
            pivot, swaps = self._choose_pivot(start, end)
            if swaps == _ALL_SWAPPED:
                self.order[start:end] = self.order[start:end][::-1]
                pivot = end - 1 - (pivot - start)
            ascending = swaps in (0, _ALL_SWAPPED)
            if balanced and partitioned and ascending and self._finish_by_insertion(start, end):
                return
            if start > 0 and not self.less(start - 1, pivot):
                start = self._partition_equal(start, end, pivot)
                continue
            middle, partitioned = self._partition(start, end, pivot)
            balanced = min(middle - start, end - middle) >= (end - start) // 8
            if middle - start < end - middle:
                self.quick(start, middle, limit)
                start = middle + 1
            else:
                self.quick(middle + 1, end, limit)
                end = middle
        self._insertion(start, end)

    def _insertion(self, start: int, end: int) -> None:
        for position in range(start + 1, end):
            self._sink_left(position, start)

    def _sink_left(self, position: int, first: int) -> None:
        while position > first and self.less(position, position - 1):
            self.swap(position, position - 1)
            position -= 1

    def _heap(self, first: int, end: int) -> None:
        size = end - first
        for root in range((size - 1) // 2, -1, -1):
            self._sift_down(root, size, first)
        for last in range(size - 1, -1, -1):
            self.swap(first, first + last)
            self._sift_down(0, last, first)

    def _sift_down(self, root: int, size: int, first: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self.less(first + child, first + child + 1):
                child += 1
            if not self.less(first + root, first + child):
                return
            self.swap(first + root, first + child)
            root = child

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Smaller ones left of the pivot's new position, which is returned, and whether they stood so already."""
        self.swap(start, pivot)
        left, right = self._approach(start + 1, end - 1, start)
        already = left > right
        while left <= right:
            self.swap(left, right)
            left, right = self._approach(left + 1, right - 1, start)
        self.swap(right, start)
        return right, already

    def _approach(self, left: int, right: int, pivot: int) -> tuple[int, int]:
        while left <= right and self.less(left, pivot):
            left += 1
        while left <= right and not self.less(right, pivot):
            right -= 1
        return left, right

    def _partition_equal(self, start: int, end: int, pivot: int) -> int:
        """Those equal to the pivot first; none may be smaller. Returns where the greater ones begin."""
        self.swap(start, pivot)
        left, right = start + 1, end - 1
        while True:
            while left <= right and not self.less(start, left):
                left += 1
            while left <= right and self.less(start, right):
                right -= 1
            if left > right:
                return left
            self.swap(left, right)
            left, right = left + 1, right - 1

    def _finish_by_insertion(self, start: int, end: int) -> bool:
        """Whether a few shifts were enough to sort the range."""
        position = start + 1
        for _ in range(_MOST_STEPS):
            while position < end and not self.less(position, position - 1):
                position += 1
            if position == end:
                return True
            if end - start < _SHORTEST_SHIFTING:
                return False
            self.swap(position, position - 1)
            if position - start >= 2:
                self._sink_left(position - 1, 0)
            if end - position >= 2:
                self._rise_right(position + 1, end)
        return False

    def _rise_right(self, position: int, end: int) -> None:
        while position < end and self.less(position, position - 1):
            self.swap(position, position - 1)
            position += 1

    def _break_patterns(self, start: int, end: int) -> None:
        size = end - start
        random = size
        middle = start + size // 4 * 2
        for position in range(middle - 1, middle + 2):
            random ^= random << 13 & _MASK
            random ^= random >> 7
            random ^= random << 17 & _MASK
            other = random & ((1 << size.bit_length()) - 1)
            self.swap(position, start + (other - size if other >= size else other))

    def _choose_pivot(self, start: int, end: int) -> tuple[int, int]:
        """A position, and how many swaps finding it would have taken: 0 hints at ascending, 12 at descending order."""
        quarter = (end - start) // 4
        candidates, swaps = [start + quarter * index for index in (1, 2, 3)], 0
        if end - start >= _SHORTEST_NINTHER:
            for index, candidate in enumerate(candidates):
                candidates[index], more = self._median(candidate - 1, candidate, candidate + 1)
                swaps += more
        pivot, more = self._median(*candidates)
        return pivot, swaps + more

    def _median(self, first: int, second: int, third: int) -> tuple[int, int]:
        swaps = 0
        if self.less(second, first):
            first, second, swaps = second, first, swaps + 1
        if self.less(third, second):
            second, swaps = third, swaps + 1
        if self.less(second, first):
            second, swaps = first, swaps + 1
        return second, swaps

"""Make a case smaller while it still shows what it showed: greedy, one piece after the other.

Anything of the JSON may go: a slice, a device, an attribute, a request. An expression loses tokens.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from tests.oracle.asking import Json
from tests.oracle.cases.expressions import TOKEN

type Path = tuple[str | int, ...]
MOST_TRIES = 3_000


def shrunk(question: Json, shows: Callable[[Json], bool]) -> Json:
    """The smallest question found for which `shows` is still true; it is called MOST_TRIES times at most."""
    tries = iter(range(MOST_TRIES))
    smaller = True
    while smaller:
        smaller = False
        for path in list(paths(question)):
            candidate = without(question, path)
            if candidate is None:
                continue
            if next(tries, None) is None:
                return question
            if shows(candidate):
                question, smaller = candidate, True
    return shorter(question, shows) if len(question.get("expressions", ())) == 1 else question


def paths(value: object, here: Path = ()) -> Iterator[Path]:
    """Everything that can go, large pieces first, the last of a list before the first."""
    if isinstance(value, list):
        pairs: list[tuple[str | int, object]] = list(reversed(list(enumerate(value))))
    elif isinstance(value, dict):
        pairs = list(value.items())
    else:
        return
    yield from ((*here, key) for key, _ in pairs)
    for key, entry in pairs:
        yield from paths(entry, (*here, key))


def without(question: Json, path: Path) -> Json | None:
    """A copy without that piece; None where an earlier step took it."""
    copied = copy.deepcopy(question)
    holder: object = copied
    try:
        for key in path[:-1]:
            holder = holder[key]  # type: ignore[index]
        del holder[path[-1]]  # type: ignore[attr-defined]
    except (KeyError, IndexError, TypeError):
        return None
    return copied


def shorter(question: Json, shows: Callable[[Json], bool]) -> Json:
    """The same with tokens of its one expression left out, long runs first."""
    tokens: list[str] = TOKEN.findall(question["expressions"][0])
    length = len(tokens) // 2
    while length:
        start = 0
        while start < len(tokens):
            left = tokens[:start] + tokens[start + length :]
            candidate = question | {"expressions": ["".join(left)]}
            if left and shows(candidate):
                tokens, question = left, candidate
            else:
                start += 1
        length //= 2
    return question

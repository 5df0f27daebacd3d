"""Any text given to a function that reads text ends in a value or in CelRuntimeError, and in nothing else."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra.cel.environment import ENVIRONMENTS
from dra.cel.errors import CelRuntimeError
from dra.cel.types import STRING

READERS = sorted(
    (name, overload.id)
    for name, overloads in ENVIRONMENTS["stored"].functions.items()
    for overload in overloads
    if overload.params and all(param == STRING for param in overload.params)
)
PIECES = st.sampled_from(
    ["a", "9", "-", "+", ".", ":", "/", "%", "e", "Z", "T", "[", "]", "(", ")", "\\", "é", "𝄞", " "]
)
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))


@pytest.mark.parametrize(("name", "overload_id"), READERS)
@given(data=st.data())
def test_any_text(name: str, overload_id: str, data: st.DataObject) -> None:
    (overload,) = (each for each in ENVIRONMENTS["stored"].functions[name] if each.id == overload_id)
    texts = [data.draw(TEXTS) for _ in overload.params]
    with suppress(CelRuntimeError):
        overload.call(*texts)

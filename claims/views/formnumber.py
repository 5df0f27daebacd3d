"""The number of a form: made by us, carried in its address, and written into the label of what it creates.

With it in the address the form stays a pure function of the address, and pressing Create twice makes one object.
"""

from __future__ import annotations

import re
import secrets

# Not `id`: a field of that name would hide the form element's own id from scripts.
PARAMETER = "form"
# A label's value; half random enough that nobody guesses another's, short enough to read out.
_KEY = re.compile(r"[a-z0-9]{8,40}")


def new() -> str:
    """A number that no other form has."""
    return secrets.token_hex(8)


def is_one(text: str) -> bool:
    """Whether the text can be a form's number."""
    return _KEY.fullmatch(text) is not None

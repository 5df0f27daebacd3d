"""A state as people see it: a glyph, a word and a tone, never colour alone. One look for every table and page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

type Tone = Literal["neutral", "mine", "team", "others", "good", "wait", "bad", "unknown"]


@dataclass(frozen=True, slots=True)
class Badge:
    """What `partials/_badge.html` shows; the tone names the colour token."""

    tone: Tone
    glyph: str
    word: str

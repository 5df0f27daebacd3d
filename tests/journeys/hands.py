"""What a person does on a page, counted: a press or a choice, a text. Waiting and looking cost nothing."""

from __future__ import annotations

from playwright.sync_api import Locator


class Hands:
    """One person's. `done` is the number of interactions so far."""

    def __init__(self) -> None:
        self.done = 0

    def press(self, place: Locator) -> None:
        """Click a link, a button or a choice."""
        self.done += 1
        place.click()

    def write(self, place: Locator, text: str) -> None:
        """Fill a field."""
        self.done += 1
        place.fill(text)

"""What a browser reads out of a page: the text of a file that is shown, and what a form would send."""

from __future__ import annotations

from html.parser import HTMLParser


def code_of(page: str) -> dict[str, str]:
    """The text of every `<code id=…>`, as a browser's textContent."""
    return _Read(page).texts


def create_form(page: str) -> dict[str, str]:
    """What the button Create sends; nothing where the page has none."""
    return _Read(page).sent


class _Read(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.sent: dict[str, str] = {}
        self._code = ""
        self._in_form = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "code":
            self._code = given.get("id", "")
        elif tag == "form":
            self._in_form = given.get("id") == "create"
        elif tag == "input" and self._in_form:
            self.sent[given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "code":
            self._code = ""
        elif tag == "form":
            self._in_form = False

    def handle_data(self, data: str) -> None:
        if self._code:
            self.texts[self._code] = self.texts.get(self._code, "") + data

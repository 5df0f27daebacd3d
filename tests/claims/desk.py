"""What tests of the form's parts read out of the page: a part's HTML, its words, and the queries of its links."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

from django.test import Client

from tests.claims.rows import KEY, QUERY


def form_page(client: Client, more: str = "", *, status: int = 200) -> str:
    """The form's page for the usual wish and what is added to its address."""
    answer = client.get(f"/request/?{QUERY}{more}&form={KEY}")
    assert answer.status_code == status
    return answer.content.decode()


def part(html: str, element_id: str) -> str:
    """A folded part of the form, by its id."""
    found = re.search(rf'<details class="[^"]*fold"? id="{element_id}".*?</details>', html, re.DOTALL)
    assert found, f"no part {element_id}"
    return found[0]


def words(html: str) -> str:
    """Its text, as one line."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html))).strip()


def is_open(html: str) -> bool:
    """Whether it comes unfolded."""
    return re.match(r"<details [^>]*\bopen>", html) is not None


def linked(html: str, text: str) -> list[dict[str, str]]:
    """What the addresses of the links that begin with this text ask for, without what is the same for all."""
    links = re.findall(r'<a href="/request/\?([^"]+)"[^>]*>(.*?)</a>', html, re.DOTALL)
    same = dict(parse_qsl(QUERY)) | {"form": KEY}
    queries = (
        dict(parse_qsl(urlsplit(f"?{unescape(query)}").query)) for query, said in links if words(said).startswith(text)
    )
    return [{key: value for key, value in query.items() if same.get(key) != value} for query in queries]


def value_of(html: str, name: str) -> str | None:
    """What the field of that name would send: an input's value, a textarea's text or the chosen option."""
    name = re.escape(name)
    if found := re.search(rf'<input [^>]*name="{name}"[^>]*>', html):
        value = re.search(r'value="([^"]*)"', found[0])
        return unescape(value[1]) if value else ""
    if found := re.search(rf'<textarea [^>]*name="{name}"[^>]*>\n?(.*?)</textarea>', html, re.DOTALL):
        return unescape(found[1])
    if found := re.search(rf'<select [^>]*name="{name}".*?</select>', html, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected', found[0])
        return unescape(chosen[1]) if chosen else ""
    return None

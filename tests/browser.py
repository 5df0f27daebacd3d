"""Headless Chromium for tests: one browser a run, pages in two sizes and two themes, and axe on each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
WIDTHS = {1280: 900, 390: 844}
type Theme = Literal["light", "dark"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium of the system."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.fail("the browser tests need Chromium: apt-get install chromium", pytrace=False)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield running
        running.close()


@dataclass(frozen=True, slots=True)
class Looks:
    """Takes pictures of a page in both widths and both themes, and asks axe about each."""

    folder: Path

    def at(self, page: Page, name: str) -> list[Path]:
        """The four pictures; AssertionError with axe's own report where it finds anything."""
        pictures = []
        for width, height in WIDTHS.items():
            for theme in ("light", "dark"):
                page.set_viewport_size({"width": width, "height": height})
                page.emulate_media(color_scheme=theme)
                picture = self.folder / f"{name}-{width}-{theme}.png"
                page.screenshot(path=picture, full_page=True)
                pictures.append(picture)
                found = Axe().run(page)
                assert found.violations_count == 0, f"{name} at {width}, {theme}: {found.generate_report()}"
                assert _fits(page), f"{name} at {width} px is wider than the screen"
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme="light")
        return pictures


@pytest.fixture(scope="session")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Looks:
    """Pictures go to $PORTICO_SCREENSHOTS where it is set, to be looked at."""
    wanted = os.environ.get("PORTICO_SCREENSHOTS")
    folder = Path(wanted) if wanted else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return Looks(folder)


def _fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))

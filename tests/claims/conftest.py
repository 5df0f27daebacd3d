"""The fleet that tests of pages look at."""

from __future__ import annotations

import pytest

from tests.claims.rows import put_fleet


@pytest.fixture
def fleet(db: None) -> None:
    """One node with two H100, three DeviceClasses."""
    put_fleet()

"""Environment to settings: typed readers, checks with hints, and the page that documents them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from pytest_django.fixtures import Settings

from portal.env import Env

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        pytest.param({}, "fallback", id="absent"),
        pytest.param({"A": ""}, "fallback", id="empty counts as absent"),
        pytest.param({"A": " value "}, "value", id="given"),
    ],
)
def test_text(variables: dict[str, str], expected: str) -> None:
    assert Env(variables).text("A", "fallback") == expected


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("YES", True), ("1", True), ("off", False), ("0", False), ("", True)]
)
def test_flag(value: str, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert Env({"A": value}).flag("A", default=True) is expected


def test_a_secret_may_come_from_a_file_which_wins(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("from the file\n")
    assert Env({"A": "from the variable", "A_FILE": str(path)}).secret("A") == "from the file"
    assert Env({"A": "from the variable"}).secret("A") == "from the variable"


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        pytest.param(
            lambda: Env({"A": "maybe"}).flag("A", default=False), "A: 'maybe' is neither yes nor no.", id="flag"
        ),
        pytest.param(
            lambda: Env({"A": "0"}).number("A", 5, least=1, most=9),
            "A: '0' is no whole number from 1 to 9.",
            id="number",
        ),
        pytest.param(
            lambda: Env({"A": "x"}).number("A", 5, least=1, most=9),
            "A: 'x' is no whole number from 1 to 9.",
            id="letters",
        ),
        pytest.param(
            lambda: Env({"A_FILE": "/nonexistent"}).secret("A"),
            "A_FILE: can't read /nonexistent: No such file",
            id="file",
        ),
        pytest.param(lambda: Env({"A": "mysql://h/d"}).database("A", ""), "A: mysql database is known.", id="database"),
    ],
)
def test_a_wrong_value_is_named(read: Any, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        read()
    assert sentence.split(":", maxsplit=1)[0] in str(caught.value)


def test_addresses_of_databases() -> None:
    address = "postgres://port%40ico:s%2Fecret@db.example:5433/portico?sslmode=require"
    postgres = Env({"A": address}).database("A", "")
    assert {key: postgres[key] for key in ("USER", "PASSWORD", "HOST", "PORT", "NAME", "OPTIONS")} == {
        "USER": "port@ico", "PASSWORD": "s/ecret", "HOST": "db.example", "PORT": "5433", "NAME": "portico",
        "OPTIONS": {"sslmode": "require"},
    }  # fmt: skip
    sqlite = Env({}).database("A", "sqlite:////var/lib/portico/db.sqlite3")
    assert (sqlite["NAME"], sqlite["OPTIONS"]["transaction_mode"]) == ("/var/lib/portico/db.sqlite3", "IMMEDIATE")


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        pytest.param("SECRET_KEY", "short", "portal.E001", id="a short key"),
        pytest.param("SECRET_KEY", "", "portal.E001", id="no key"),
        pytest.param("IMPERSONATION_PREFIX", "system:", "portal.E002", id="the cluster's own prefix"),
        pytest.param("IMPERSONATION_PREFIX", "", "portal.E002", id="no prefix"),
        pytest.param("IMPERSONATION_PREFIX", "portico", "portal.E002", id="a prefix that runs into the name"),
        pytest.param("KUBECONFIG", "/nonexistent", "portal.E003", id="no such file"),
        pytest.param("LOG_FORMAT", "xml", "portal.E004", id="log format"),
        pytest.param("LOG_LEVEL", "LOUD", "portal.E004", id="log level"),
        pytest.param("ALLOWED_HOSTS", ["*"], "portal.W001", id="any host"),
        pytest.param("SILENT_SECONDS", 20, "portal.E005", id="silence shorter than a watch"),
    ],
)
@pytest.mark.django_db
def test_checks(settings: Settings, name: str, value: object, found: str) -> None:
    assert run_checks() == []
    setattr(settings, name, value)
    (message,) = run_checks()
    assert message.id == found
    assert message.hint


def test_every_setting_is_documented_and_every_documented_one_read() -> None:
    read = set(re.findall(r'_env\.\w+\("(PORTICO_\w+)"', (ROOT / "portal/settings.py").read_text()))
    documented = set(re.findall(r"^\| `(PORTICO_\w+)`", (ROOT / "docs/dev/settings.md").read_text(), re.MULTILINE))
    assert read == documented
    assert len(read) > 10


def test_only_the_settings_read_the_environment() -> None:
    readers = {
        str(path.relative_to(ROOT))
        for app in ("portal", "gpuinventory", "claims")
        for path in (ROOT / app).rglob("*.py")
        if re.search(r"os\.environ(?!\.setdefault\(\"DJANGO_SETTINGS_MODULE\")|getenv", path.read_text())
    }
    assert readers == {"portal/settings.py"}

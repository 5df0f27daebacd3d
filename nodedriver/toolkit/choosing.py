"""Which files of the driver containers get: nvidia-ctk's word, kept by the driver's version, or our own discovery.

Asked once, at the driver's start. A kept answer that can't be read is set aside under a new name; one for another
version of the driver, of nvidia-ctk or of the settings is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import structlog

from nodedriver.cdi import DriverEdits
from nodedriver.config import Config
from nodedriver.files import write_atomically
from nodedriver.toolkit import program
from nodedriver.toolkit.reading import ToolkitError, common_edits

OFF = "off"
SECONDS = 20.0  # NVML may take seconds to start when no client holds the cards
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Roots:
    """NVIDIA's driver as we and as the node see it, and the root that has the node's /dev."""

    driver: Path
    host: Path
    dev: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """How nvidia-ctk is asked. `setting`: `auto`, `off` or its path; `folder` is ours, for the hook; `kept` a file."""

    setting: str
    roots: Roots
    folder: Path
    kept: Path
    driver_name: str
    seconds: float = SECONDS

    @classmethod
    def of(cls, config: Config) -> Toolkit:
        """As the settings say."""
        return cls(
            setting=config.nvidia_ctk,
            roots=Roots(config.driver_root, config.host_driver_root, config.dev_root.parent),
            folder=config.plugin_dir,
            kept=config.driver_files_file,
            driver_name=config.driver_name,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """An answer, and what it is the answer to."""

    asked: dict[str, str]
    edits: DriverEdits


_DECODER = msgspec.json.Decoder(_Kept)


def driver_edits(toolkit: Toolkit, driver_version: str) -> DriverEdits | None:
    """What containers get of the driver; None where the node driver has to find it itself."""
    if toolkit.setting == OFF:
        _log.info("driver's files found by the node driver itself", reason="nvidia-ctk is switched off")
        return None
    try:
        found = program.find(toolkit.setting, toolkit.roots.driver)
        hook = program.install_hook(found, toolkit.folder)
        asked = _question(toolkit, found, hook, driver_version)
        edits, kept = _read(toolkit.kept, asked), True
        if edits is None:
            edits, kept = _ask(toolkit, found, hook), False
            write_atomically(toolkit.kept, msgspec.json.encode(_Kept(asked=asked, edits=edits)))
    except (ToolkitError, OSError) as error:
        _log.warning("driver's files found by the node driver itself", reason=f"nvidia-ctk: {error}")
        return None
    _log.info("driver's files told by nvidia-ctk", program=str(found), driver_version=driver_version, kept=kept)
    return edits


def _question(toolkit: Toolkit, found: Path, hook: Path, driver_version: str) -> dict[str, str]:
    return {
        "driver_version": driver_version,
        "program": f"{found} {found.stat().st_mtime_ns}",
        "hook": str(hook),
        "driver_root": str(toolkit.roots.driver),
        "host_driver_root": str(toolkit.roots.host),
    }


def _ask(toolkit: Toolkit, found: Path, hook: Path) -> DriverEdits:
    roots = toolkit.roots
    arguments = (
        *("--mode", "nvml", "--format", "json", "--vendor", toolkit.driver_name, "--class", "claim"),
        *("--device-name-strategy", "uuid", "--driver-root", str(roots.driver), "--dev-root", str(roots.dev)),
        *("--nvidia-cdi-hook-path", str(hook)),
    )
    answer = program.generate(found, arguments, roots.driver, seconds=toolkit.seconds)
    return common_edits(answer, str(roots.driver), str(roots.host))


def _read(path: Path, asked: dict[str, str]) -> DriverEdits | None:
    """The kept answer to this very question."""
    try:
        kept = _DECODER.decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        aside = path.with_name(f"{path.name}.unreadable-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
        path.replace(aside)
        _log.warning("kept answer of nvidia-ctk set aside", kept_as=str(aside), reason=str(error))
        return None
    return kept.edits if kept.asked == asked else None

"""The doctor as a program: gathers what it needs, prints what it found, says by the exit status whether all is well.

What can't be reached (NVML, the API server, the checkpoint) is told on stderr, and the doctor goes without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import structlog

from dra.errors import DraError
from dra.kube.errors import KubeError
from dra.kube.port import Cluster
from nodedriver import logs
from nodedriver.checkpoint import CheckpointError, read_checkpoint
from nodedriver.config import Config
from nodedriver.doctor import report
from nodedriver.doctor.examination import Doctor
from nodedriver.doctor.findings import has_problem
from nodedriver.facts import GpuFacts
from nodedriver.holding import Checkpoint
from nodedriver.ports import GpuError

_log = structlog.get_logger()
_OUT_OF_REACH = (KubeError, DraError, GpuError, CheckpointError, OSError)


def consult(
    config: Config, cards: Callable[[], tuple[GpuFacts, ...]], cluster: Callable[[], Cluster], *, as_json: bool
) -> int:
    """Print the findings; 1 where something has to be put right, else 0."""
    logs.configure(config.log_level, component="doctor", to=sys.stderr)
    checkpoint = _known(lambda: _checkpoint(config), Checkpoint(boot_id=""))
    findings = Doctor(config, _known(cluster, None), lambda: checkpoint).examine(_known(cards, ()))
    print(report.as_json(findings) if as_json else report.text(findings), end="\n" if as_json else "")  # noqa: T201
    return int(has_problem(findings))


def _known[T, U](ask: Callable[[], T], otherwise: U) -> T | U:
    try:
        return ask()
    except _OUT_OF_REACH as error:
        _log.warning("the doctor goes without this", reason=str(error))
        return otherwise


def _checkpoint(config: Config) -> Checkpoint:
    boot_id = (config.proc_root / "sys/kernel/random/boot_id").read_text().strip()
    return read_checkpoint(config.checkpoint_file, boot_id)

"""Find out what the cluster can do and keep it as one object of the read model. Writes nothing to the cluster.

Asked: the server's version, what it serves of resource.k8s.io, and dry runs of small objects (`dra.kube.probes`).
Steps: 1. take the lease; 2. ask; 3. store with a revision, so that the fleet in memory follows; 4. rest until tomorrow.
A cluster that does not answer leaves what was known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
import structlog
from django.db import transaction

from dra.errors import DraError
from dra.kube.errors import BusyError, InvalidError, KubeError, NotFoundError, RefusedError
from dra.kube.port import Cluster
from dra.kube.probes import PROBES, Probe, plain
from dra.kube.requests import DEVICE_TAINT_RULES, Request, Resource, read
from dra.objects import decode
from gpuinventory.capabilities import Capabilities, Gate, State
from gpuinventory.kinds import CAPABILITIES
from gpuinventory.models import ClusterObject
from gpuinventory.services import lease
from gpuinventory.services.changelog import bump_revision

AGAIN = timedelta(days=1)
_GROUP = "resource.k8s.io"
_SENTENCE = 500
_log = structlog.get_logger(__name__)


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""
    minor: str = ""
    emulation_minor: str = ""


class _Name(msgspec.Struct):
    name: str = ""
    version: str = ""


class _Group(msgspec.Struct):
    versions: tuple[_Name, ...] = ()


class _Resources(msgspec.Struct):
    resources: tuple[_Name, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look needs. `namespace` is where templates are tried; nothing is made there."""

    holder: str
    connect: Callable[[], Cluster]
    clock: Callable[[], datetime]
    namespace: str


def refresh(look: Look) -> None:
    """Look once, unless another does; a fault is recorded, and tried again after a pause."""
    if lease.take(CAPABILITIES, look.holder, look.clock()) is None:
        return
    try:
        found = detect(look.connect(), look.namespace, look.clock())
        _store(look, found)
    except lease.LeaseLostError:
        _log.warning("lease lost", kind=CAPABILITIES)
    except (KubeError, DraError) as error:
        lease.fail(CAPABILITIES, look.holder, look.clock(), str(error))
        _log.warning("capabilities not seen", error=str(error))
    finally:
        lease.release(CAPABILITIES, look.holder)


def detect(cluster: Cluster, namespace: str, now: datetime) -> Capabilities:
    """Everything as it is now. KubeError where the server does not answer, or can't just now."""
    version = decode(cluster.send(read("/version")), _Version)
    served = dict(_served(cluster))
    return Capabilities(
        version=version.git_version,
        minor=_number(version.emulation_minor or version.minor),
        served=served,
        gates=(*_by_probes(cluster, namespace), _taint_rules(served)),
        checked_at=now,
    )


@transaction.atomic
def _store(look: Look, found: Capabilities) -> None:
    lease.rest(CAPABILITIES, look.holder, look.clock(), AGAIN)
    ClusterObject.objects.update_or_create(
        kind=CAPABILITIES,
        namespace="",
        name="cluster",
        defaults={"body": msgspec.json.encode(found), "changed_at_revision": bump_revision()},
    )
    off = [gate.name for gate in found.gates if gate.state == "off"]
    _log.info("capabilities seen", version=found.version, off=off)


def _served(cluster: Cluster) -> Iterator[tuple[str, tuple[str, ...]]]:
    try:
        versions = decode(cluster.send(read(f"/apis/{_GROUP}")), _Group).versions
    except NotFoundError:
        return
    for each in versions:
        resources = decode(cluster.send(read(f"/apis/{_GROUP}/{each.version}")), _Resources).resources
        yield each.version, tuple(sorted(one.name for one in resources if "/" not in one.name))


def _taint_rules(served: Mapping[str, tuple[str, ...]]) -> Gate:
    """No API server drops anything for this gate: the kind is served or it is not."""
    plural, version = DEVICE_TAINT_RULES.plural, DEVICE_TAINT_RULES.version
    if plural in served.get(version, ()):
        return Gate(name="DRADeviceTaintRules", state="on", evidence=f"{plural} are served in {version}")
    others = ", ".join(each for each, plurals in served.items() if plural in plurals)
    evidence = f"{plural} are served in {others} only, and {version} is read here" if others else f"no {plural} served"
    return Gate(name="DRADeviceTaintRules", state="off", evidence=evidence)


def _by_probes(cluster: Cluster, namespace: str) -> Iterator[Gate]:
    plain_answers: dict[Resource, str] = {}
    for probe in PROBES:
        if probe.resource not in plain_answers:
            plain_answers[probe.resource] = _refusal(cluster, plain(probe.resource, namespace))
        refusal = plain_answers[probe.resource]
        state, evidence = _judged(cluster, probe, namespace) if not refusal else ("unknown", refusal)
        yield from (Gate(name=name, state=state, evidence=evidence[:_SENTENCE]) for name in _told(probe, state))


def _told(probe: Probe, state: State) -> tuple[str, ...]:
    """Of several gates that a field needs, the first is off for all that is known where the field is dropped."""
    return probe.gates[:1] if state == "off" else probe.gates


def _judged(cluster: Cluster, probe: Probe, namespace: str) -> tuple[State, str]:
    try:
        return probe.judge(cluster.send(probe.request(namespace)))
    except InvalidError as error:
        return probe.judge_refusal(error.message)
    except BusyError:
        raise
    except RefusedError as error:
        return "unknown", error.message


def _refusal(cluster: Cluster, request: Request) -> str:
    """Why a plain object is refused, "" where it is not: then what is refused of a probe is its field."""
    try:
        cluster.send(request)
    except BusyError:
        raise
    except RefusedError as error:
        return error.message
    return ""


def _number(text: str) -> int:
    """The digits at the start: some providers write `36+`."""
    found = re.match(r"\d+", text)
    return int(found[0]) if found else 0

"""The driver's program, `python -m nodedriver.main driver`: the only place that builds the driver's objects.

Arguments to settings, settings to doors, doors to the driver; then it serves until a signal. Decides nothing else.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from functools import partial
from typing import Protocol

import structlog

from dra.errors import DraError
from dra.kube.client import KubeClient
from dra.kube.errors import KubeError
from dra.names import ClaimUID
from nodedriver import logs
from nodedriver.cdi import file_name
from nodedriver.checkpoint import CheckpointError, read_checkpoint
from nodedriver.claimspecs import ClaimSpecs, ContainerFiles, NodePaths
from nodedriver.claimstatus import StatusSources, StatusWriter
from nodedriver.config import Config, ConfigError, add_flags, load_config
from nodedriver.consulting import consult
from nodedriver.doctor.examination import Doctor
from nodedriver.driver import Driver, Parts
from nodedriver.driverroot import find_nvml
from nodedriver.facts import CardFacts, GpuFacts, PciAddress, PlainCardFacts, Vendor
from nodedriver.hands import Hands, Tools
from nodedriver.health.ailments import Policy
from nodedriver.health.monitor import Health, Monitor
from nodedriver.health.report import DeviceHealth, health_of, unwatched
from nodedriver.holding import PreparedDevice, held_devices
from nodedriver.httpdoor import listening
from nodedriver.inventory import (
    EVERY_FEATURE,
    DeviceRecord,
    InventoryRules,
    TaintsOf,
    no_taints,
    taint_of_unclean,
    take_inventory,
)
from nodedriver.kubelet.health import HealthStreams
from nodedriver.kubelet.probing import kubelet_side
from nodedriver.kubelet.server import Endpoints, serve
from nodedriver.kubelet.stopping import RegistrationRefusedError, stop_at_signal
from nodedriver.lastpublished import LastPublished
from nodedriver.lastseen import LastSeen
from nodedriver.locks import Locks, LockTimeoutError
from nodedriver.maintenance import AwaitedClaims, Ledger, Maintenance, Naming, Present, Workshop, with_present_modes
from nodedriver.metadatafiles import MetadataFiles
from nodedriver.mps import MpsClient
from nodedriver.mpswatch import MpsWatch
from nodedriver.nvml import Nvml
from nodedriver.observing import Watched
from nodedriver.physicalgpus import PhysicalGpus, Sources
from nodedriver.placements import Placements
from nodedriver.plan import PlanRules
from nodedriver.ports import GpuError, MpsError
from nodedriver.prepared import PreparedClaims
from nodedriver.procfs import driver_version
from nodedriver.publisher import Build, Publisher
from nodedriver.ranks import RanksError, assign_ranks
from nodedriver.reconciler import Reconciler, Rounds
from nodedriver.resets import NvidiaSmiReset
from nodedriver.timeslices import NvidiaSmi
from nodedriver.toolkit import Toolkit, driver_edits
from nodedriver.vendors import find_plain_cards, has_nvidia_card
from nodedriver.vfio import Roots, VfioPci, all_cards, as_now, as_served

# Of one wait; all waits of one call of the kubelet together have what `deadline` says.
LOCK_SECONDS = 10.0
PROCESS_SECONDS = 60.0  # between two looks for processes on what claims hold
LOOK_SECONDS = 300.0  # between two comparisons of what claims have with what they should have
UNCLEAN = "checkpoint-unreadable"  # value of the taint; the sentence stands in the refusal

_log = structlog.get_logger()
_START_ERRORS = (
    ConfigError, KubeError, DraError, GpuError, MpsError, CheckpointError, RanksError, LockTimeoutError, OSError,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand until it ends; 0 after a signal, 1 when it can't go on, 2 for wrong arguments or settings."""
    parser = argparse.ArgumentParser(prog="python -m nodedriver.main", description="Portico's node driver.")
    commands = parser.add_subparsers(dest="command", required=True)
    add_flags(commands.add_parser("driver", help="the DRA kubelet plugin"))
    doctor = commands.add_parser("doctor", help="what keeps claims from working on this node, and what to do about it")
    doctor.add_argument("--json", action="store_true", help="for programs")
    add_flags(doctor)
    flags = parser.parse_args(arguments)
    try:
        config = load_config(flags, os.environ)
    except ConfigError as error:
        print(f"{parser.prog} {flags.command}: {error}", file=sys.stderr)  # noqa: T201 - there is no log yet
        return 2
    if flags.command == "doctor":
        cluster = partial(KubeClient.of_node, config.kubeconfig)
        return consult(config, partial(_cards, config), cluster, as_json=flags.json)
    logs.configure(config.log_level, component=flags.command)
    return _run(config)


def _cards(config: Config) -> tuple[GpuFacts, ...]:
    plain = find_plain_cards(config.sys_root, config.proc_root, integrated=config.integrated_cards)
    with closing(_open_nvml(config, plain, Placements(config.placements_file).fill)) as gpus:
        return gpus.facts()


def _run(config: Config) -> int:
    try:
        _run_driver(config)
    except RegistrationRefusedError as error:
        _log.error("kubelet refused the driver", reason=str(error))
        return 1
    except _START_ERRORS as error:
        _log.error("program could not go on", reason=str(error), kind=type(error).__name__)
        return 1
    return 0


def _run_driver(config: Config) -> None:
    """Build everything and serve the kubelet until a signal."""
    cluster = KubeClient.of_node(config.kubeconfig)
    plain = find_plain_cards(config.sys_root, config.proc_root, integrated=config.integrated_cards)
    placements = Placements(config.placements_file)
    with closing(_open_nvml(config, plain, placements.fill)) as gpus:
        locks = Locks(config.locks_dir, deadline=LOCK_SECONDS)
        known = all_cards(_learnt(config, placements, gpus, locks), config.cards_file, roots := Roots.of(config))
        minors = {gpu.pci_address: gpu.minor for gpu in known}
        ranks = assign_ranks(config.ranks_file, [*minors, *(card.pci_address for card in plain)])
        records = _building(config, (*known, *plain), ranks, tuple, no_taints)(EVERY_FEATURE).records
        specs = _claim_specs(config, gpus, vfio := VfioPci(roots, gpus), records)
        hands = _hands(config, gpus, mps := MpsClient(config.mps_socket), specs, vfio)
        prepared = PreparedClaims(config.checkpoint_file, boot_id=_boot_id(config), locks=locks)
        unclean = _take_over(config, prepared, hands, specs)
        facts = as_served(known, prepared.read().passed_through, roots)
        health = Health(config.driver_name, Policy.named(config.health_evicts), config.health_file, _boot_id(config))
        daemons = MpsWatch(mps.watch, prepared.read, health)
        ledger = _ledger(config, locks, hands)
        now = partial(with_present_modes, gpus, ledger.stubborn)
        build = _building(config, (*facts, *plain), ranks, now, _taints(config.driver_name, unclean, health, ledger))
        records = build(EVERY_FEATURE).records
        statuses, watch = _claim_statuses(config, cluster, prepared, gpus, (health, daemons))
        publisher = _publisher(config, cluster)
        examine = Doctor(config, cluster, prepared.read).examine
        every, mode = partial(_every, config, gpus, plain), partial(as_now, gpus, config.sys_root)
        sources = Sources(every, mode, prepared.read, lambda: publisher.published, records, examine)
        cards = _card_objects(config, cluster, sources, (*facts, *plain))
        parts = Parts(
            cluster=cluster,
            records=records,
            rules=_plan_rules(config),
            locks=locks,
            prepared=prepared,
            hands=hands,
            statuses=partial(_held, statuses, cards),
            seen=statuses.saw,
            failed=statuses.failed,
        )
        endpoints = Endpoints(config.driver_name, config.dra_socket, config.registration_socket)
        reconciler = Reconciler(parts, specs)
        rounds = Rounds(_in_turn(reconciler.look, publisher.reconsider, cards.nudge), seconds=LOOK_SECONDS)
        awaited = AwaitedClaims(cluster, Naming(config.driver_name, config.node_name), records)
        published = _published(publisher, awaited.noting(build))
        with _running(statuses, reconciler.within(rounds), watch), published as publish, _running(cards):
            streams = HealthStreams(config.node_name, partial(_healths, parts, health))
            changed = _in_turn(streams.wake, publish, cards.nudge, statuses.wish_all)
            here = _looked_at(facts, prepared)
            maintenance = Maintenance(awaited, ledger, _workshop(config, gpus, prepared, minors), config.reset_wait)
            with (
                _monitored(gpus, here, ranks.keys() - {card.pci_address for card in plain}, health, changed),
                _running(
                    daemons.tell(changed, statuses.wish),
                    maintenance.through(cluster, locks, _in_turn(cards.look_soon, changed)),
                ),
                _listening(config, parts, publisher, endpoints),
            ):
                serve(endpoints, Driver(parts), streams, stop_at_signal())
    _log.info("driver stopped")


def _publisher(config: Config, cluster: KubeClient) -> Publisher:
    last = LastPublished(config.published_file)
    return Publisher(cluster, last, driver_name=config.driver_name, node_name=config.node_name)


def _card_objects(config: Config, cluster: KubeClient, sources: Sources, cards: tuple[CardFacts, ...]) -> PhysicalGpus:
    return PhysicalGpus(cluster, sources, cards, driver_name=config.driver_name, node_name=config.node_name)


def _learnt(config: Config, placements: Placements, gpus: Nvml, locks: Locks) -> tuple[GpuFacts, ...]:
    """The cards, with what one of them had to be asked in MIG mode: none with claims, or where that is not known."""
    facts = gpus.facts()
    lost = not config.checkpoint_file.exists() and _ran_before(config)
    try:
        checkpoint = read_checkpoint(config.checkpoint_file, _boot_id(config))
        held = {gpu for claim in checkpoint.claims.values() for gpu in claim.gpus} | checkpoint.unclean.keys()
        return gpus.facts() if not lost and placements.learn(gpus, facts, held, locks.gpus) else facts
    except (CheckpointError, LockTimeoutError) as error:
        _log.warning("MIG placements not learnt", error=str(error))
        return facts


def _ran_before(config: Config) -> bool:
    """Whether this node has had claims, or could have: what is published, and files of claims, come after the first
    checkpoint.
    """
    return config.published_file.exists() or any(config.cdi_dir.glob(file_name(config.driver_name, ClaimUID("*"))))


def _every(config: Config, gpus: Nvml, plain: tuple[PlainCardFacts, ...]) -> tuple[CardFacts, ...]:
    """The cards of the moment, those that NVML does not see among them."""
    return (*all_cards(gpus.facts(), config.cards_file, Roots.of(config)), *plain)


def _held(statuses: StatusWriter, cards: PhysicalGpus, uids: Iterable[ClaimUID]) -> None:
    """Tell of these claims, and of who holds the cards."""
    statuses.wish(uids)
    cards.nudge()


def _listening(
    config: Config, parts: Parts, publisher: Publisher, endpoints: Endpoints
) -> AbstractContextManager[None]:
    watched = Watched(
        driver_name=config.driver_name,
        node_name=config.node_name,
        requests=parts.requests,
        prepared=parts.prepared,
        published=lambda: publisher.published,
        kubelet=partial(kubelet_side, endpoints),
    )
    return listening(config.http_address, config.http_port, watched)


def _claim_specs(config: Config, gpus: Nvml, vfio: VfioPci, records: Mapping[str, DeviceRecord]) -> ClaimSpecs:
    version = driver_version(config.proc_root) if gpus.is_open else None
    driver = driver_edits(Toolkit.of(config), version) if version else None
    metadata = MetadataFiles(config.driver_name, config.metadata_dir, records, enabled=config.device_metadata)
    return ClaimSpecs(config.driver_name, NodePaths.of(config), gpus, vfio, ContainerFiles(metadata, driver))


def _open_nvml(config: Config, plain: Collection[PlainCardFacts], fill: Callable[[GpuFacts], GpuFacts]) -> Nvml:
    """NVML, unless there are cards and none of them is NVIDIA's."""
    needed = not plain or has_nvidia_card(config.sys_root)
    return Nvml(library=find_nvml(config.driver_root), sys_root=config.sys_root, needed=needed, fill=fill)


def _monitored(
    gpus: Nvml, here: Iterable[PciAddress], ever: Iterable[PciAddress], health: Health, changed: Callable[[], None]
) -> AbstractContextManager[None]:
    """Meanwhile hear of errors of the cards that NVML ever had, and look at those that are here or should be."""
    if not gpus.is_open:
        return nullcontext()
    return _running(Monitor(health, gpus.events(ever), gpus.look, changed).watch(tuple(here)))


def _looked_at(facts: Iterable[GpuFacts], prepared: PreparedClaims) -> set[PciAddress]:
    """The cards that are here, and those that claims hold though they are gone."""
    held = {each.gpu for each in held_devices(prepared.read()) if each.vendor is Vendor.NVIDIA}
    return held | {gpu.pci_address for gpu in facts}


def _plan_rules(config: Config) -> PlanRules:
    return PlanRules(
        driver_name=config.driver_name,
        pool=config.node_name,
        mps_reserve=config.mps_reserve,
        nvidia_configs=config.nvidia_configs,
    )


def _hands(config: Config, gpus: Nvml, mps: MpsClient, specs: ClaimSpecs, vfio: VfioPci) -> Hands:
    times = NvidiaSmi(config.driver_root)
    keep = config.mig_mode == "keep"
    return Hands(Tools(gpus=gpus, mps=mps, time_slices=times, vfio=vfio, specs=specs, keep_mig_mode=keep))


def _building(
    config: Config, cards: Iterable[CardFacts], ranks: Mapping[PciAddress, int], now: Present, taints: TaintsOf
) -> Build:
    """What makes the inventory of the moment; `now` makes the cards what they are then."""
    rules = InventoryRules(config.driver_name, config.time_slices)
    return lambda features: take_inventory(rules, now(cards), ranks, taints=taints, features=features)


def _ledger(config: Config, locks: Locks, hands: Hands) -> Ledger:
    ledger = Ledger(config.driver_name, config.maintenance_file, _boot_id(config), locks)
    hands.tell_of_refusals(ledger.mark)
    return ledger


def _workshop(config: Config, gpus: Nvml, prepared: PreparedClaims, minors: dict[PciAddress, int]) -> Workshop:
    resets = NvidiaSmiReset(config.driver_root)
    return Workshop(modes=gpus, resets=resets, prepared=prepared, proc_root=config.proc_root, minors=minors)


def _taints(driver_name: str, unclean: Collection[PciAddress], health: Health, ledger: Ledger) -> TaintsOf:
    """What keeps claims from a device: an unreadable checkpoint, what ails its card, and a reset of it."""
    taint = taint_of_unclean(driver_name, UNCLEAN)
    return lambda gpu, part: (
        *((taint,) if gpu in unclean else ()),
        *health.taints(gpu, part),
        *ledger.taints(gpu, part),
    )


def _claim_statuses(
    config: Config, cluster: KubeClient, prepared: PreparedClaims, gpus: Nvml, around: tuple[Health, MpsWatch]
) -> tuple[StatusWriter, Rounds]:
    """What keeps claim statuses written, and what looks for processes on what claims hold."""
    seen = LastSeen(config.proc_root, prepared.read, gpus.processes)
    sources = StatusSources(read=prepared.read, seen=seen.of, ailing=around[0].of, protocol=around[1].protocol)
    statuses = StatusWriter(config.driver_name, cluster, sources)
    return statuses, Rounds(_in_turn(seen.look, statuses.wish_all), seconds=PROCESS_SECONDS, name="last-seen")


def _healths(parts: Parts, health: Health) -> list[DeviceHealth]:
    """Of what the cards give, and of what claims hold although its card is gone."""
    held = {each.device: each for each in held_devices(parts.prepared.read())}
    every: dict[str, DeviceRecord | PreparedDevice] = {**held, **parts.records}
    return [
        health_of(name, health.of(each.gpu, each.placement))
        if each.vendor is Vendor.NVIDIA
        else unwatched(name, each.vendor)
        for name, each in every.items()
    ]


def _take_over(config: Config, prepared: PreparedClaims, hands: Hands, specs: ClaimSpecs) -> Collection[PciAddress]:
    """Open the checkpoint; the cards that take no new claims."""
    opened = prepared.open(specs.noted().values(), hands.look_for_unclean, ran_before=_ran_before(config))
    specs.sweep(lambda: prepared.read().claims)
    unclean = prepared.read().unclean
    if opened.aside is not None:
        _log.error("unreadable checkpoint set aside", kept_as=str(opened.aside.path), reason=opened.aside.reason)
    if opened.was_deleted:
        _log.error("checkpoint had been deleted, and is made anew from the CDI files")
    for ref in opened.restored:
        _log.warning("resource claim taken over from its CDI file", namespace=ref.namespace, name=ref.name, uid=ref.uid)
    for reason in unclean.values():
        _log.error("card takes no new claims", reason=reason)
    return unclean.keys()


def _boot_id(config: Config) -> str:
    return (config.proc_root / "sys/kernel/random/boot_id").read_text().strip()


def _in_turn(*looks: Callable[[], object]) -> Callable[[], None]:
    def every() -> None:
        for look in looks:
            look()

    return every


class _Thread(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


@contextmanager
def _running(*threads: _Thread) -> Iterator[None]:
    """All of them; the last one that was started is the first to be stopped."""
    with ExitStack() as started:
        for thread in threads:
            thread.start()
            started.callback(thread.stop)
        yield


@contextmanager
def _published(publisher: Publisher, build: Build) -> Iterator[Callable[[], None]]:
    """Publish now if the API server lets us, and keep the slices so; running pods don't wait for it to come back.

    Gives what publishes again after a change.
    """

    def publish() -> None:
        try:
            publisher.publish(build)
        except (KubeError, DraError, OSError) as error:
            _log.warning("ResourceSlices not published yet", error=str(error))

    publish()
    with _running(publisher):
        yield publish


if __name__ == "__main__":
    sys.exit(main())

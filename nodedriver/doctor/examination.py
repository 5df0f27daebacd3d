"""The whole examination of a node: looks, what the API server says of the node, and the findings of both.

It only reads. Without an answer of the API server what depends on it is "not known", and the rest is told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import structlog

from dra.errors import DraError
from dra.kube.errors import KubeError
from dra.kube.port import Cluster, list_all
from dra.kube.requests import DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, Resource, get
from dra.objects import DeviceClass, ResourceClaim, decode
from dra.objects.meta import ApiStruct, QuantityText
from nodedriver.config import Config
from nodedriver.doctor import cards as judged
from nodedriver.doctor import judging, looks, runtimes
from nodedriver.doctor.findings import Finding
from nodedriver.doctor.processes import Process, processes
from nodedriver.doctor.seen import Holder, Offers
from nodedriver.facts import CardFacts, GpuFacts
from nodedriver.holding import Checkpoint, PreparedClaim

_log = structlog.get_logger()


class _NodeInfo(ApiStruct, frozen=True, kw_only=True):
    kubelet_version: str = ""
    container_runtime_version: str = ""


class _NodeStatus(ApiStruct, frozen=True, kw_only=True):
    node_info: _NodeInfo = _NodeInfo()
    allocatable: dict[str, QuantityText] = {}  # noqa: RUF012 - msgspec gives each struct its own


class _Node(ApiStruct, frozen=True, kw_only=True):
    """The part of a Node that the doctor reads."""

    status: _NodeStatus = _NodeStatus()


class Doctor:
    """Examines one node. `cluster` is None where there is no way to the API server."""

    def __init__(self, config: Config, cluster: Cluster | None, checkpoint: Callable[[], Checkpoint]) -> None:
        self._config = config
        self._cluster = cluster
        self._checkpoint = checkpoint

    def examine(self, found: tuple[CardFacts, ...]) -> tuple[Finding, ...]:
        """Every finding, the node's first. `found` are the cards of this moment; those of NVIDIA are looked at."""
        cards = tuple(card for card in found if isinstance(card, GpuFacts))
        claims = tuple(self._checkpoint().claims.values())
        running = tuple(processes(self._config.proc_root))
        node = self._node()
        return (
            *self._of_node(running, node),
            judged.plugins(self._offers(node)),
            *judged.agents(cards, tuple(self._agents(running, cards, claims))),
            *judged.instances(cards, claims),
        )

    def _of_node(self, running: tuple[Process, ...], node: _Node | None) -> Iterator[Finding]:
        config, info = self._config, node.status.node_info if node else _NodeInfo()
        command = looks.kubelet_command(config, running)
        settings = looks.kubelet_settings(config, command)
        unified, there = looks.cgroup_version(config)
        yield judging.kernel(looks.kernel_release(config))
        yield judging.cgroups(unified=unified, there=there)
        runtime = looks.runtime(config, running, settings, info.container_runtime_version)
        yield runtimes.runtime(runtime, str(config.cdi_dir))
        yield judging.vendor_driver(looks.vendor_driver(config))
        yield judging.kubelet(looks.kubelet(config, command, settings, info.kubelet_version))
        yield judging.vfio(looks.iommu_groups(config), looks.vfio_modules_missing(config))

    def _agents(
        self, running: Iterable[Process], cards: Iterable[GpuFacts], claims: Collection[PreparedClaim]
    ) -> Iterator[Holder]:
        """Processes with a card open that are neither ours nor of one of the card's claims."""
        by_minor = {card.minor: card for card in cards}
        for process in running:
            for minor in sorted(process.minors() & by_minor.keys()):
                card = by_minor[minor]
                held = [claim for claim in claims if card.pci_address in claim.gpus]
                if not process.is_ours and not self._is_claims(process, held):
                    yield Holder(pid=process.pid, name=process.name, gpu=card.pci_address, pod=process.pod)

    def _is_claims(self, process: Process, claims: Collection[PreparedClaim]) -> bool:
        """Whether it is marked with one of these claims, or in a pod that may use one: taken for true without an answer
        of the API server, since a program may have cleared its environment.
        """
        if process.claims & {claim.uid for claim in claims}:
            return True
        pod = process.pod
        for claim in claims if pod else ():
            found = self._ask(ResourceClaim, RESOURCE_CLAIMS, claim.name, claim.namespace)
            if found is None or pod in (each.uid for each in found.status.reserved_for):
                return True
        return False

    def _offers(self, node: _Node | None) -> Offers:
        registered, sockets = looks.registered_plugins(self._config)
        amounts = node.status.allocatable if node else registered
        return Offers(amounts=amounts, names=self._served_names(), sockets=sockets)

    def _node(self) -> _Node | None:
        return self._ask(_Node, NODES, self._config.node_name)

    def _served_names(self) -> frozenset[str]:
        """The extended resources that DeviceClasses serve by claims."""
        if self._cluster is None:
            return frozenset()
        try:
            items = [item for page in list_all(self._cluster, DEVICE_CLASSES) for item in page.items]
            names = (decode(item, DeviceClass).spec.extended_resource_name for item in items)
            return frozenset(name for name in names if name)
        except (KubeError, DraError) as error:
            _log.info("DeviceClasses not read for the doctor", error=str(error))
            return frozenset()

    def _ask[S: ApiStruct](self, kind: type[S], resource: Resource, name: str, namespace: str = "") -> S | None:
        """The object, or None where there is no way to it or no answer."""
        if self._cluster is None:
            return None
        try:
            return decode(self._cluster.send(get(resource, name, namespace=namespace)), kind)
        except (KubeError, DraError) as error:
            _log.info("object not read for the doctor", kind=resource.kind, name=name, error=str(error))
            return None

"""A wish as values, and the bounds of its numbers. Pure.

Whether a value is possible is said by `reading` and `judging`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Final

from dra.quantity import Format, Quantity

MAX_COUNT: Final = 32  # devices that one ResourceClaim can take (resource.k8s.io/v1, AllocationResultsMaxSize)
MAX_ALTERNATIVES: Final = 7  # besides the first (resource.k8s.io/v1, FirstAvailableDeviceRequestMaxSize 8)
MAX_PODS: Final = 256  # that one ResourceClaim can serve (resource.k8s.io/v1, ResourceClaimReservedForMaxSize)
MAX_REPLICAS: Final = 1000
MAX_SLOTS: Final = 128
MAX_HOURS: Final = 24 * 366
LEAST_SHARE: Final = 5  # percent; steps of 5 keep within the 48 client contexts of an MPS server
SHARE_STEP: Final = 5
WHOLE: Final = 100
LEAST_MEMORY: Final = Quantity.of(2**20, Format.BINARY_SI)
MOST_MEMORY: Final = Quantity.of(2**44, Format.BINARY_SI)


class Mode(StrEnum):
    """How much of a device each pod gets."""

    WHOLE = "whole"
    SLICE = "slice"
    SHARE = "share"
    TIMESLICED = "timesliced"


class Strategy(StrEnum):
    """How the processes of a pod share a whole device, where the person chooses."""

    MPS = "MPS"


class Interval(StrEnum):
    """How long a time slice is (`nvidia-smi compute-policy`)."""

    DEFAULT = "Default"
    SHORT = "Short"
    MEDIUM = "Medium"
    LONG = "Long"


class Owner(StrEnum):
    """Whether each pod has a resource claim of its own, or all pods share one."""

    OWN = "own"
    SHARED = "shared"


class Style(StrEnum):
    """Whether the workload asks by resource claims, or by an extended resource that the class serves (KEP-5004)."""

    CLAIMS = "claims"
    EXTENDED = "extended"


class Workload(StrEnum):
    """What the devices go into."""

    POD = "pod"
    DEPLOYMENT = "deployment"
    JOB = "job"
    STATEFUL_SET = "statefulset"
    OWN = "own"


class Preset(StrEnum):
    """A workload that is known by name."""

    NOTEBOOK = "notebook"
    KUBEFLOW = "kubeflow"
    NIM = "nim"


class ConstraintKind(StrEnum):
    """Whether all devices of the claim must agree in an attribute, or all differ (DeviceConstraint)."""

    MATCH = "matchAttribute"
    DISTINCT = "distinctAttribute"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint over all devices of the claim. `attribute` is fully qualified, such as `gpu.example/numa`."""

    kind: ConstraintKind
    attribute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A DeviceToleration: taints it accepts. `seconds` None: for ever. An empty key tolerates every key."""

    key: str = ""
    operator: str = "Exists"
    value: str = ""
    effect: str = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to serve a wish. `device_class` names the GPU class: a DeviceClass, or a kind or offer of its devices.

    `memory` is bytes per device, `share` percent of each device (100: the whole).
    """

    device_class: str
    memory: Quantity | None = None
    count: int = 1
    share: int = WHOLE
    profile: str = ""
    slots: int | None = None

    @property
    def mode(self) -> Mode:
        """How much of a device it takes; the fields say it, so that nothing can contradict them."""
        if self.profile:
            return Mode.SLICE
        if self.slots is not None:
            return Mode.TIMESLICED
        return Mode.SHARE if self.share < WHOLE else Mode.WHOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish(Choice):
    """One request for GPUs. `cel`, constraints and tolerations hold for the first choice and each alternative.

    `hours` and `until` are kept with the request and stand in no file. `autoscale` is the least and most replicas.
    `manifest` is the SHA-256 in hex of a workload that was pasted, "" where the workload is written here.
    """

    namespace: str
    name: str
    strategy: Strategy | None = None
    interval: Interval | None = None
    owner: Owner = Owner.OWN
    alternatives: tuple[Choice, ...] = ()
    cel: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    style: Style = Style.CLAIMS
    workload: Workload = Workload.POD
    replicas: int = 1
    autoscale: tuple[int, int] | None = None
    priority: str = ""
    hours: int | None = None
    until: date | None = None
    preset: Preset | None = None
    manifest: str = ""

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The first choice and its alternatives, in the order in which they are tried."""
        return (self, *self.alternatives)

"""What the cluster can do, as the last look at it found: versions served, and feature gates with the evidence. Pure.

Only the API server is seen. That scheduler and kubelets run with the same gates is taken for granted; where they don't,
kube-scheduler says so in the events of pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from dra.features import Features

type State = Literal["on", "off", "unknown"]

# What a gate gives, as the rest of "This cluster has no …".
OFFERS: Final[Mapping[str, str]] = {
    "DRAAdminAccess": "administrator access to devices that are in use",
    "DRAConsumableCapacity": "shares of a device",
    "DRADerivedAttributes": "attributes that a claim computes",
    "DRADeviceBindingConditions": "devices that are made ready after they were allocated",
    "DRADeviceCompatibilityGroups": "compatibility groups",
    "DRADeviceTaintRules": "taint rules that an administrator sets",
    "DRADeviceTaints": "device taints, nor tolerations of them",
    "DRAExtendedResource": "extended resources that are served by device classes",
    "DRAFractionalCapacityRange": "fractions in the steps of a capacity",
    "DRAListTypeAttributes": "attributes with several values",
    "DRAOptionalNodeOperations": "devices that no driver has to prepare",
    "DRAPartitionableDevices": "slices of a GPU that exclude each other",
    "DRAPrioritizedList": "alternatives within one request (firstAvailable)",
    "DRAResourceClaimDeviceStatus": "statuses of allocated devices",
}
_BEFORE_136: Final = dict.fromkeys(
    ("DRAConsumableCapacity", "DRADeviceBindingConditions", "DRADeviceTaints", "DRAPartitionableDevices"), False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One feature gate and why we think so: what the API server does, or what it said where that is not known."""

    name: str
    state: State
    evidence: str

    @property
    def offer(self) -> str:
        """What it gives, in words."""
        return OFFERS.get(self.name, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """`version` and `minor` are what the API server says of itself, an emulated version before its own; "" and 0 where
    nobody has looked yet. `served`: versions of resource.k8s.io with the plurals of their kinds.
    """

    version: str = ""
    minor: int = 0
    served: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()
    checked_at: datetime | None = None

    @property
    def is_known(self) -> bool:
        """Whether anybody has looked."""
        return self.checked_at is not None

    @property
    def has_dra(self) -> bool:
        """Whether resource.k8s.io/v1 is served, without which nothing here works; true until somebody has looked."""
        return not self.is_known or "v1" in self.served

    @property
    def features(self) -> Features:
        """The gates for the engine: what was seen, for the rest the defaults of the release."""
        seen = {gate.name: gate.state == "on" for gate in self.gates if gate.state != "unknown"}
        known = Features.gates()
        return self._defaults().with_gates({name: on for name, on in seen.items() if name in known})

    def state(self, gate: str) -> State:
        """What is known of a gate by its Kubernetes name."""
        return next((each.state for each in self.gates if each.name == gate), "unknown")

    def lacks(self, gate: str) -> str:
        """Why the cluster can't do what the gate gives, "" where it can or nobody knows."""
        found = next((each for each in self.gates if each.name == gate and each.state == "off"), None)
        if found is None:
            return ""
        return f"This cluster has no {found.offer}: the API server has feature gate {gate} off ({found.evidence})."

    def _defaults(self) -> Features:
        if not self.is_known or self.minor >= 37:
            return Features.of_release("1.37")
        release = Features.of_release("1.36")
        return release if self.minor == 36 else release.with_gates(_BEFORE_136)


NOT_SEEN: Final = Capabilities()

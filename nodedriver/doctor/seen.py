"""What was seen of a node, as plain values between the looks and the judging. None and "" stand for: not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodedriver.facts import PciAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The container runtime. `cdi_enabled` and `spec_dirs` are what its configuration states, `trouble` why not."""

    name: Literal["containerd", "CRI-O"]
    version: str = ""
    config_file: str = ""
    cdi_enabled: bool | None = None
    spec_dirs: tuple[str, ...] | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubelet:
    """The kubelet: its version, the feature gates that were set, whether its plugin folder is where we look."""

    version: str = ""
    gates: Mapping[str, bool] = field(default_factory=dict)
    registrar_dir: str = ""
    registrar_there: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorDriver:
    """NVIDIA's driver: version of the kernel module, of the library, and how many of its cards are on the PCI bus."""

    module: str = ""
    library: str = ""
    cards: int = 0
    root: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that has a card open; `pod` is the uid of the pod that it belongs to, "" outside of pods."""

    pid: int
    name: str
    gpu: PciAddress
    pod: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Extended resources that device plugins offer on the node, with amounts; None where that is not known.

    `names` are those that a DeviceClass serves by claims, `sockets` what lies in the kubelet's folder for plugins.
    """

    amounts: Mapping[str, str] | None = None
    names: frozenset[str] = frozenset()
    sockets: tuple[str, ...] = ()

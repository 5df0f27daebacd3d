"""Which opaque parameters hold for an allocated device: the kinds of documents, for whose devices, who binds. Pure.

A kind is a row of a table: a new one needs its reader (a module such as `gpuconfig`) and its row here. Everything that
applies is read strictly, so an invalid entry is an error even where a later one would win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dra.objects import DeviceAllocationConfiguration, DeviceRequestAllocationResult, JsonObject
from nodedriver.configfields import DeviceConfigError, Fields, Spelling
from nodedriver.facts import DeviceType
from nodedriver.gpuconfig import (
    GpuConfig,
    read_gpu_config,
    read_mig_config,
    read_nvidia_gpu_config,
    read_nvidia_mig_config,
    tighten,
)
from nodedriver.vfioconfig import VfioConfig, bound_by_class, read_vfio_config


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """What is read: documents of our own group, which follows the driver's name, and NVIDIA's too if told so."""

    driver_name: str
    nvidia: bool = False

    @property
    def versions(self) -> dict[str, Spelling]:
        """The apiVersions that are read, and how each is spelled."""
        own = {f"resource.{self.driver_name}/v1alpha1": Spelling.OWN}
        return own | ({"resource.nvidia.com/v1beta1": Spelling.NVIDIA} if self.nvidia else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind[C]:
    """One kind of document. `nothing`: what holds where no entry speaks; `together`: where class and claim both do."""

    name: str
    types: frozenset[DeviceType]
    fields: tuple[str, ...]
    readers: Mapping[Spelling, Callable[[Fields], C]]
    nothing: C
    together: Callable[[C, C], C]


GPU = Kind(
    name="GpuConfig",
    types=frozenset({DeviceType.PHYSICAL, DeviceType.TIME_SLICED}),
    fields=("sharing",),
    readers={Spelling.OWN: read_gpu_config, Spelling.NVIDIA: read_nvidia_gpu_config},
    nothing=GpuConfig(),
    together=tighten,
)
MIG = Kind(
    name="MigDeviceConfig",
    types=frozenset({DeviceType.MIG}),
    fields=("sharing",),
    readers={Spelling.OWN: read_mig_config, Spelling.NVIDIA: read_nvidia_mig_config},
    nothing=GpuConfig(),
    together=tighten,
)
VFIO = Kind(
    name="VfioDeviceConfig",
    types=frozenset({DeviceType.VFIO}),
    fields=("iommu",),
    readers={Spelling.OWN: read_vfio_config, Spelling.NVIDIA: read_vfio_config},
    nothing=VfioConfig(),
    together=bound_by_class,
)
KINDS: tuple[Kind[Any], ...] = (GPU, MIG, VFIO)
_BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class _Said[C]:
    kind: Kind[C]
    config: C


def sharing_of(
    result: DeviceRequestAllocationResult,
    device_type: DeviceType,
    entries: Iterable[DeviceAllocationConfiguration],
    rules: ConfigRules,
) -> GpuConfig:
    """How a device that can be shared is shared."""
    return config_for(MIG if device_type in MIG.types else GPU, result, entries, rules)


def config_for[C](
    kind: Kind[C],
    result: DeviceRequestAllocationResult,
    entries: Iterable[DeviceAllocationConfiguration],
    rules: ConfigRules,
) -> C:
    """What holds for one allocated device of that kind: the class's last entry for it, with the claim's last entry.

    An entry names `main`, `main/sub` or no request, which means all (DRA, "Config merge order"). The class binds, as
    users can't forge its source. Who serves devices of several types may say something of each: entries of other kinds
    are passed over where the same source also has one of the right kind, and are an error where it has none.
    """
    said: dict[str, list[_Said[Any]]] = {"FromClass": [], "FromClaim": []}
    for entry in entries:
        if entry.opaque and entry.opaque.driver == rules.driver_name and _applies(entry, result):
            said[entry.source].append(_read(entry, entry.opaque.parameters, rules))
    of_class, of_claim = (_last(kind, source, found, result.device) for source, found in said.items())
    return kind.together(of_class, of_claim)


def _applies(entry: DeviceAllocationConfiguration, result: DeviceRequestAllocationResult) -> bool:
    return not entry.requests or not {result.request, result.device_request}.isdisjoint(entry.requests)


def _read(entry: DeviceAllocationConfiguration, parameters: JsonObject, rules: ConfigRules) -> _Said[Any]:
    name = parameters.get("kind")
    kind = _BY_NAME.get(name) if isinstance(name, str) else None
    try:
        return _said(kind, parameters, rules)
    except DeviceConfigError as error:
        what = kind.name if kind else "opaque parameters"
        raise DeviceConfigError(f"{what} of the {_ORIGINS[entry.source]}: {error}") from error


def _said(kind: Kind[Any] | None, parameters: JsonObject, rules: ConfigRules) -> _Said[Any]:
    every = tuple(dict.fromkeys(field for each in KINDS for field in each.fields))
    document = Fields("", parameters, ("apiVersion", "kind", *(kind.fields if kind else every)))
    versions = rules.versions
    spelling = versions[document.must_be("apiVersion", tuple(versions))]
    known = _BY_NAME[document.must_be("kind", tuple(_BY_NAME))]
    return _Said(known, known.readers[spelling](document))


def _last[C](kind: Kind[C], source: str, found: list[_Said[Any]], device: str) -> C:
    own = [each.config for each in found if each.kind is kind]
    if found and not own:
        wrong, types = found[-1].kind.name, " or ".join(sorted(kind.types))
        raise DeviceConfigError(
            f"{wrong} of the {_ORIGINS[source]}: kind: {wrong!r} does not go with {device}, a device of type "
            f"{types}: use {kind.name}"
        )
    config: C = own[-1] if own else kind.nothing
    return config


_ORIGINS = {"FromClass": "DeviceClass", "FromClaim": "ResourceClaim"}

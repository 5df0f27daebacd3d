"""Counters of a card: what they are, and that they allow exactly what the hardware allows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra.mig.counters import Contents, card_contents, counter_set, draw, draw_everything
from dra.mig.profiles import MODELS, MigModel, MigProfile
from dra.objects import Counter, CounterSet, DeviceCounterConsumption
from dra.quantity import parse_quantity
from simulator.silicon.hardware import Gpu
from simulator.silicon.rules import Refused, create_gpu_instance

GIB = 2**30
KNOWN = [m for m in MODELS if all(p.engines and p.memory_mib and p.multiprocessors for p in m.profiles)]


def contents(profile: MigProfile) -> Contents:
    engines = profile.engines
    assert engines
    return Contents(
        memory=(profile.memory_mib or 0) * 2**20,
        multiprocessors=profile.multiprocessors or 0,
        copy_engines=engines.copy,
        decoders=engines.decoder,
        encoders=engines.encoder,
        jpeg_engines=engines.jpeg,
        ofa_engines=engines.ofa,
    )


def card_counters(model: MigModel) -> CounterSet:
    card = card_contents((model.total_memory_mib or 0) * 2**20, [contents(p) for p in model.profiles])
    return counter_set("gpu-0", card, memory_slices=model.memory_slices)


def stand_in(model: MigModel) -> Gpu:
    return Gpu(
        pci_address="0000:65:00.0", uuid="GPU-00000000-0000-0000-0000-000000000000", index=0, minor=0, serial="",
        product=model.product_names[0], architecture=model.nvml_architecture,
        compute_capability=model.compute_capability, total_memory_mib=model.total_memory_mib or 0,
        reserved_memory_mib=0, pci_device_id=0, pcie_root="pci0000:64", numa_node=0, mig_current=True,
    )  # fmt: skip


def test_counters_of_an_h100() -> None:
    model = next(m for m in MODELS if m.name == "H100-80GB")
    values = {name: counter.value for name, counter in card_counters(model).counters.items()}
    assert values == {
        "memory": "81559Mi",
        "multiprocessors": "132",
        "copy-engines": "8",
        "decoders": "7",
        "jpeg-engines": "7",
        "ofa-engines": "1",
    } | {f"memory-slice-{i}": "1" for i in range(8)}


def test_a_placement_draws_its_slices_and_engines() -> None:
    three = next(p for m in MODELS if m.name == "H100-80GB" for p in m.profiles if p.name == "3g.40gb")
    drawn = draw("gpu-3", contents(three), range(4, 8))
    assert drawn.counter_set == "gpu-3"
    assert {name: counter.value for name, counter in drawn.counters.items()} == {
        "memory": "40448Mi", "multiprocessors": "60", "copy-engines": "3", "decoders": "3", "jpeg-engines": "3",
        "memory-slice-4": "1", "memory-slice-5": "1", "memory-slice-6": "1", "memory-slice-7": "1",
    }  # fmt: skip


def test_a_card_without_profiles_has_memory_alone() -> None:
    counters = counter_set("gpu-0", card_contents(48 * GIB, []), memory_slices=0)
    assert counters == CounterSet(name="gpu-0", counters={"memory": Counter(value="48Gi")})
    assert draw_everything(counters) == DeviceCounterConsumption(counter_set="gpu-0", counters=counters.counters)


@pytest.mark.parametrize("model", KNOWN, ids=lambda model: model.name)
def test_api_limits_hold(model: MigModel) -> None:
    assert len(card_counters(model).counters) <= 32


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_counters_allow_what_the_hardware_allows(data: st.DataObject) -> None:
    """A random sequence of placements: as long as both agree, each next one fits both or neither."""
    model = data.draw(st.sampled_from(KNOWN))
    gpu = stand_in(model)
    left = {name: parse_quantity(counter.value) for name, counter in card_counters(model).counters.items()}
    every = [(profile, start) for profile in model.profiles for start in profile.starts]
    for profile, start in data.draw(st.lists(st.sampled_from(every), max_size=10)):
        drawn = draw("gpu-0", contents(profile), range(start, start + profile.memory_slices)).counters
        fits = all(parse_quantity(counter.value) <= left[name] for name, counter in drawn.items())
        try:
            gpu, _ = create_gpu_instance(gpu, profile.id, (start, profile.memory_slices))
        except Refused:
            assert not fits, f"the counters allow {profile.name}@{start}, the hardware does not"
        else:
            assert fits, f"the hardware allows {profile.name}@{start}, the counters do not"
            left |= {name: left[name] - parse_quantity(counter.value) for name, counter in drawn.items()}

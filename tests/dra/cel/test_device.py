"""Devices as selectors see them: names with and without a domain, values of every kind, what cannot be converted."""

from __future__ import annotations

import pytest

from dra.cel import CelDevice, CelRuntimeError, compile_expression
from dra.objects import DeviceAttribute, DeviceCapacity

DRIVER = "gpu.example.com"


def asked(text: str, device: CelDevice) -> bool:
    return compile_expression(text).matches(device)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (DeviceAttribute(), "attribute x: unsupported attribute value"),
        (DeviceAttribute(version="1.0"), "attribute x: parse semantic version: "),
        (DeviceAttribute(versions=("1.0.0", "v1")), "attribute x: parse semantic version: "),
    ],
)
def test_an_attribute_that_has_no_value_fails_every_selector(attribute: DeviceAttribute, message: str) -> None:
    device = CelDevice.of(DRIVER, {"x": attribute}, {})  # surprise 55: only the evaluation fails
    for _ in range(2):
        with pytest.raises(CelRuntimeError) as raised:
            asked("true", device)
        assert str(raised.value).startswith(message)


def test_a_capacity_that_is_no_quantity_fails_every_selector() -> None:
    device = CelDevice.of(DRIVER, {}, {"memory": DeviceCapacity(value="80 Gi")})
    with pytest.raises(CelRuntimeError, match="capacity memory: "):
        asked("true", device)


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (DeviceAttribute(int_=5), "a.x == 5 && type(a.x) == int"),
        (DeviceAttribute(bool_=False), "a.x == false && type(a.x) == bool"),
        (DeviceAttribute(string=""), "a.x == '' && type(a.x) == string"),
        (DeviceAttribute(version="1.2.3"), "a.x == semver('1.2.3+build') && a.x.minor() == 2"),
        (DeviceAttribute(ints=(1, 2)), "a.x == [1, 2] && type(a.x) == list"),
        (DeviceAttribute(bools=(True,)), "a.x[0]"),
        (DeviceAttribute(strings=()), "a.x == []"),
        (DeviceAttribute(versions=("1.0.0", "2.0.0")), "a.x.all(v, v.isLessThan(semver('3.0.0')))"),
    ],
)
def test_values_keep_their_types(attribute: DeviceAttribute, text: str) -> None:
    device = CelDevice.of(DRIVER, {"x": attribute}, {})
    assert asked(f'cel.bind(a, device.attributes["{DRIVER}"], {text})', device)


@pytest.mark.parametrize("name", ["model", f"{DRIVER}/model"])
def test_the_driver_is_the_domain_of_names_without_one(name: str) -> None:
    device = CelDevice.of(DRIVER, {name: DeviceAttribute(string="H100")}, {name: DeviceCapacity(value="1")})
    assert asked(f'device.attributes["{DRIVER}"].model == "H100" && "model" in device.capacity["{DRIVER}"]', device)


def test_only_the_first_slash_ends_a_domain() -> None:
    device = CelDevice.of(DRIVER, {"a.example.com/b/c": DeviceAttribute(int_=1)}, {})
    assert asked('device.attributes["a.example.com"]["b/c"] == 1', device)


@pytest.mark.parametrize(
    ("text", "answer"),
    [  # surprise 47
        ('device.attributes["absent.example.com"].size() == 0', True),
        ('device.attributes[?"absent.example.com"].hasValue()', True),
        ("has(device.attributes.absent)", True),
        ('"absent.example.com" in device.attributes', False),
        ('"absent.example.com" in device.capacity', False),
        ('device.capacity["absent.example.com"].size() == 0', True),
        ("device.attributes.size() == 0", True),
        ("{'absent': {}} == dyn({'absent': {}}) && device.attributes == {}", True),
    ],
)
def test_a_domain_that_is_not_there_reads_as_empty(text: str, answer: bool) -> None:  # noqa: FBT001
    assert asked(text, CelDevice.of(DRIVER, {}, {})) is answer


@pytest.mark.parametrize("allowed", [True, False])
def test_whether_it_can_be_shared(allowed: bool) -> None:  # noqa: FBT001
    device = CelDevice.of(DRIVER, {}, {}, allow_multiple=allowed)
    assert asked("device.allowMultipleAllocations", device) is allowed
    assert asked("dyn(device).allowMultipleAllocations", device) is allowed

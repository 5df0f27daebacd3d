"""The cases of k8s.io/dynamic-resource-allocation/cel/compile_test.go: what its authors expect of selectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from dra.cel import CelCompileError, CelDevice, compile_expression
from dra.cel.environment import EnvironmentName
from dra.objects import DeviceAttribute, DeviceCapacity
from tests.dra.cel.asking import word


@dataclass(frozen=True, slots=True)
class Row:
    """A selector, the device it is asked about, and the answer."""

    name: str
    text: str
    answer: str
    driver: str = "dra.example.com"
    attributes: Mapping[str, DeviceAttribute] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    allow_multiple: bool = False
    environment: EnvironmentName = "stored"


ROWS = (
    Row("true", "true", "true", driver=""),
    Row("false", "false", "false", driver=""),
    Row("syntax-error", "?!", "does not compile", driver=""),
    Row("type-error", "1", "does not compile", driver=""),
    Row(
        "runtime-error-lookup-identifier",
        'device.attributes["no-such-domain"].noSuchAttr.isGreaterThan(quantity("0"))',
        "error",
        driver="",
    ),
    Row(
        "runtime-error-lookup-map",
        'device.attributes["no-such-domain"]["noSuchAttr"].isGreaterThan(quantity("0"))',
        "error",
        driver="",
    ),
    Row("domain-check-negative", '"no-such-domain" in device.attributes', "false", driver=""),
    Row(
        "domain-check-positive",
        '"dra.example.com" in device.attributes',
        "true",
        driver="",
        attributes={"dra.example.com/something": DeviceAttribute(bool_=True)},
    ),
    Row("empty-driver-name", 'device.driver == ""', "true", driver=""),
    Row("real-driver-name", 'device.driver == "dra.example.com"', "true"),
    Row(
        "driver-name-qualifier",
        'device.attributes["dra.example.com"].name',
        "true",
        attributes={"name": DeviceAttribute(bool_=True)},
    ),
    Row(
        "driver-name-qualifier-map-lookup",
        'device.attributes["dra.example.com"]["name"]',
        "true",
        attributes={"name": DeviceAttribute(bool_=True)},
    ),
    Row(
        "bind",
        'cel.bind(dra, device.attributes["dra.example.com"], dra.name)',
        "true",
        attributes={"name": DeviceAttribute(bool_=True)},
    ),
    Row(
        "qualified-attribute-name",
        'device.attributes["other.example.com"].name',
        "true",
        attributes={"other.example.com/name": DeviceAttribute(bool_=True)},
    ),
    Row("bool", 'device.attributes["dra.example.com"].name', "true", attributes={"name": DeviceAttribute(bool_=True)}),
    Row("int", 'device.attributes["dra.example.com"].name > 0', "true", attributes={"name": DeviceAttribute(int_=1)}),
    Row(
        "string",
        'device.attributes["dra.example.com"].name == "fish"',
        "true",
        attributes={"name": DeviceAttribute(string="fish")},
    ),
    Row(
        "macro-compilation-error-new-expressions",
        'device.attributes["dra.example.com"].ids.exists(id, id == 1)',
        "does not compile",
        environment="new",
    ),
    Row(
        "macro-exists-on-int",
        'device.attributes["dra.example.com"].name.exists(x, x > 0)',
        "error",
        attributes={"name": DeviceAttribute(int_=1)},
    ),
    Row(
        "macro-exists-on-bool",
        'device.attributes["dra.example.com"].name.exists(x, x == true)',
        "error",
        attributes={"name": DeviceAttribute(bool_=True)},
    ),
    Row(
        "macro-exists-on-string",
        'device.attributes["dra.example.com"].name.exists(x, x == "fish")',
        "error",
        attributes={"name": DeviceAttribute(string="fish")},
    ),
    Row(
        "list-result-type-causes-match-error",
        'device.attributes["dra.example.com"].names',
        "error",
        attributes={"names": DeviceAttribute(strings=("fish", "bird"))},
    ),
    Row(
        "includes-function-can-evaluate",
        'device.attributes["dra.example.com"].name.includes("fish")',
        "true",
        attributes={"name": DeviceAttribute(strings=("fish", "bird"))},
    ),
    Row(
        "list-of-bool",
        'device.attributes["dra.example.com"].names.size() == 2',
        "true",
        attributes={"names": DeviceAttribute(bools=(True, False))},
    ),
    Row(
        "list-of-int",
        'device.attributes["dra.example.com"].names.size() == 2',
        "true",
        attributes={"names": DeviceAttribute(ints=(1, 2))},
    ),
    Row(
        "list-of-string",
        'device.attributes["dra.example.com"].names.size() == 2',
        "true",
        attributes={"names": DeviceAttribute(strings=("fish", "bird"))},
    ),
    Row(
        "list-of-semver",
        'device.attributes["dra.example.com"].names.size() == 2',
        "true",
        attributes={"names": DeviceAttribute(versions=("1.0.0", "2.0.0"))},
    ),
    Row(
        "macro-on-list-of-int",
        'device.attributes["dra.example.com"].names.exists(x, x > 0)',
        "true",
        attributes={"names": DeviceAttribute(ints=(1, 2))},
    ),
    Row(
        "macro-on-list-of-string",
        'device.attributes["dra.example.com"].names.all(x, x != "")',
        "true",
        attributes={"names": DeviceAttribute(strings=("fish", "bird"))},
    ),
    Row(
        "macro-on-list-of-semver",
        'device.attributes["dra.example.com"].names.all(x, x.isGreaterThan(semver("0.0.1")))',
        "true",
        attributes={"names": DeviceAttribute(versions=("1.0.0", "2.0.0"))},
    ),
    Row(
        "includes-function-compilation-error",
        'device.attributes["dra.example.com"].attr.includes("fish")',
        "does not compile",
        environment="new",
    ),
    Row(
        "includes-function-compilation-and-eval-success",
        'device.attributes["dra.example.com"].attr.includes("fish")',
        "true",
        attributes={"attr": DeviceAttribute(string="fish")},
    ),
    Row(
        "includes-function-on-bool-scalar-positive",
        'device.attributes["dra.example.com"].name.includes(true)',
        "true",
        attributes={"name": DeviceAttribute(bool_=True)},
    ),
    Row(
        "includes-function-on-bool-list-positive",
        'device.attributes["dra.example.com"].name.includes(true)',
        "true",
        attributes={"name": DeviceAttribute(bools=(True, False))},
    ),
    Row(
        "includes-function-on-bool-list-negative",
        'device.attributes["dra.example.com"].name.includes(false)',
        "false",
        attributes={"name": DeviceAttribute(bools=(True, True))},
    ),
    Row(
        "includes-function-on-int-scalar-positive",
        'device.attributes["dra.example.com"].name.includes(1)',
        "true",
        attributes={"name": DeviceAttribute(int_=1)},
    ),
    Row(
        "includes-function-on-int-scalar-negative",
        'device.attributes["dra.example.com"].name.includes(1)',
        "false",
        attributes={"name": DeviceAttribute(int_=2)},
    ),
    Row(
        "includes-function-on-int-list-positive",
        'device.attributes["dra.example.com"].name.includes(1)',
        "true",
        attributes={"name": DeviceAttribute(ints=(1, 2))},
    ),
    Row(
        "includes-function-on-int-list-negative",
        'device.attributes["dra.example.com"].name.includes(3)',
        "false",
        attributes={"name": DeviceAttribute(ints=(1, 2))},
    ),
    Row(
        "includes-function-on-string-scalar-positive",
        'device.attributes["dra.example.com"].name.includes("fish")',
        "true",
        attributes={"name": DeviceAttribute(string="fish")},
    ),
    Row(
        "includes-function-on-string-scalar-negative",
        'device.attributes["dra.example.com"].name.includes("bird")',
        "false",
        attributes={"name": DeviceAttribute(string="fish")},
    ),
    Row(
        "includes-function-on-string-list-positive",
        'device.attributes["dra.example.com"].name.includes("fish")',
        "true",
        attributes={"name": DeviceAttribute(strings=("fish", "bird"))},
    ),
    Row(
        "includes-function-on-string-list-negative",
        'device.attributes["dra.example.com"].name.includes("cat")',
        "false",
        attributes={"name": DeviceAttribute(strings=("fish", "bird"))},
    ),
    Row(
        "includes-function-on-semver-scalar-positive",
        'device.attributes["dra.example.com"].name.includes(semver("1.0.0"))',
        "true",
        attributes={"name": DeviceAttribute(version="1.0.0")},
    ),
    Row(
        "includes-function-on-semver-scalar-negative",
        'device.attributes["dra.example.com"].name.includes(semver("2.0.0"))',
        "false",
        attributes={"name": DeviceAttribute(version="1.0.0")},
    ),
    Row(
        "includes-function-on-semver-list-positive",
        'device.attributes["dra.example.com"].name.includes(semver("1.0.0"))',
        "true",
        attributes={"name": DeviceAttribute(versions=("1.0.0", "2.0.0"))},
    ),
    Row(
        "includes-function-on-semver-list-negative",
        'device.attributes["dra.example.com"].name.includes(semver("3.0.0"))',
        "false",
        attributes={"name": DeviceAttribute(versions=("1.0.0", "2.0.0"))},
    ),
    Row(
        "in-operator-on-list",
        '1 in device.attributes["dra.example.com"].names',
        "true",
        attributes={"names": DeviceAttribute(ints=(1, 2, 3))},
    ),
    Row(
        "version",
        'device.attributes["dra.example.com"].name.isGreaterThan(semver("0.0.1"))',
        "true",
        attributes={"name": DeviceAttribute(version="1.0.0")},
    ),
    Row(
        "version_v",
        'device.attributes["dra.example.com"].name.isGreaterThan(semver("v0.0.1", true)) && isSemver("v1.0.0", true)',
        "true",
        attributes={"name": DeviceAttribute(version="1.0.0")},
    ),
    Row(
        "macro-exists-on-version",
        'device.attributes["dra.example.com"].name.exists(x, x.isGreaterThan(semver("0.0.1")))',
        "error",
        attributes={"name": DeviceAttribute(version="1.0.0")},
    ),
    Row(
        "quantity",
        'device.capacity["dra.example.com"].name.isGreaterThan(quantity("1Ki"))',
        "true",
        capacity={"name": "1Mi"},
    ),
    Row(
        "check-positive",
        '"name" in device.capacity["dra.example.com"] && '
        'device.capacity["dra.example.com"].name.isGreaterThan(quantity("1Ki"))',
        "true",
        capacity={"name": "1Mi"},
    ),
    Row(
        "check-negative",
        '!("name" in device.capacity["dra.example.com"]) || '
        'device.capacity["dra.example.com"].name.isGreaterThan(quantity("1Ki"))',
        "true",
        driver="",
    ),
    Row(
        "all",
        'device.capacity["dra.example.com"].quantity.isGreaterThan(quantity("1Ki")) && '
        'device.attributes["dra.example.com"].bool && '
        'device.attributes["dra.example.com"].int > 0 && '
        'device.attributes["dra.example.com"].string == "fish" && '
        'device.attributes["dra.example.com"].version.isGreaterThan(semver("0.0.1")) && '
        'device.capacity["dra.example.com"]["quantity"].isGreaterThan(quantity("1Ki")) && '
        'device.attributes["dra.example.com"]["bool"] && '
        'device.attributes["dra.example.com"]["int"] > 0 && '
        'device.attributes["dra.example.com"]["string"] == "fish" && '
        'device.attributes["dra.example.com"]["version"].isGreaterThan(semver("0.0.1"))',
        "true",
        attributes={
            "bool": DeviceAttribute(bool_=True),
            "int": DeviceAttribute(int_=1),
            "string": DeviceAttribute(string="fish"),
            "version": DeviceAttribute(version="1.0.0"),
        },
        capacity={"quantity": "1Mi"},
    ),
    Row(
        "many",
        'device.attributes["dra.example.com"].a && '
        'device.attributes["dra.example.com"].b && '
        'device.attributes["dra.example.com"].c',
        "true",
        attributes={
            "a": DeviceAttribute(bool_=True),
            "b": DeviceAttribute(bool_=True),
            "c": DeviceAttribute(bool_=True),
        },
    ),
    Row(
        "check_attribute_domains",
        'device.attributes.exists_one(x, x == "dra.example.com")',
        "true",
        attributes={"services": DeviceAttribute(string="some_example_value")},
    ),
    Row(
        "check_attribute_ids",
        'device.attributes["dra.example.com"].exists_one(x, x == "services")',
        "true",
        attributes={"services": DeviceAttribute(string="some_example_value")},
    ),
    Row(
        "split_attribute",
        'device.attributes["dra.example.com"].services.split("example").size() >= 2',
        "true",
        attributes={"services": DeviceAttribute(string="some_example_value")},
    ),
    Row(
        "regexp_attribute",
        'device.attributes["dra.example.com"].services.matches("[^a]?sym")',
        "true",
        attributes={"services": DeviceAttribute(string="asymetric")},
    ),
    Row(
        "check_capacity_domains",
        'device.capacity.exists_one(x, x == "dra.example.com")',
        "true",
        capacity={"memory": "1Mi"},
    ),
    Row(
        "check_capacity_ids",
        'device.capacity["dra.example.com"].exists_one(x, x == "memory")',
        "true",
        capacity={"memory": "1Mi"},
    ),
    Row("allow_multiple_allocations", "device.allowMultipleAllocations == true", "true", allow_multiple=True),
    Row("allow_multiple_allocations_default", "device.allowMultipleAllocations == false", "true"),
    Row("allow_multiple_allocations_false", "device.allowMultipleAllocations == false", "true"),
    Row("allow_multiple_allocations_new", "device.allowMultipleAllocations == false", "true"),
    Row("allow_multiple_allocations_enabled", "device.allowMultipleAllocations == false", "true"),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_case_of_upstream(row: Row) -> None:
    capacity = {name: DeviceCapacity(value=value) for name, value in row.capacity.items()}
    device = CelDevice.of(row.driver, row.attributes, capacity, allow_multiple=row.allow_multiple)
    try:
        program = compile_expression(row.text, environment=row.environment)
    except CelCompileError:
        assert row.answer == "does not compile"
    else:
        assert word(program, device) == row.answer

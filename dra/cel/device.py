"""A device as selectors see it: its attributes and capacity as CEL values, by domain and id.

Follows `DeviceMatches` and `getAttributeValue` of k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dra.cel.errors import CelRuntimeError
from dra.cel.values import CelMap
from dra.errors import InvalidQuantityError, InvalidSemverError
from dra.objects import DeviceAttribute, DeviceCapacity
from dra.quantity import Quantity, parse_quantity
from dra.semver import Semver, parse_semver

type Domains = dict[str, dict[str, object]]


class DomainMap(CelMap):
    """Values by domain and id. A domain that is not there reads as an empty map, but is not `in`."""

    __slots__ = ()

    def find(self, key: object, default: object = None) -> object:
        """The ids of a domain, empty where there is none; never the default."""
        return super().find(key, _EMPTY)


class IdMap(CelMap):
    """Values of one domain by id."""

    __slots__ = ()


_EMPTY: Final = IdMap({})


class DeviceView:
    """The values behind the variable `device`, ready to be read."""

    __slots__ = ("allow_multiple", "attributes", "capacity", "driver")

    def __init__(self, driver: str, attributes: Domains, capacity: Domains, *, allow_multiple: bool) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.allow_multiple = allow_multiple

    def attribute_map(self) -> CelMap:
        """`device.attributes` as a value."""
        return domain_map(self.attributes)

    def as_map(self) -> CelMap:
        """`device` where it is used as a value: a map of its fields."""
        fields: dict[object, object] = {
            "driver": self.driver,
            "allowMultipleAllocations": self.allow_multiple,
            "attributes": self.attribute_map(),
            "capacity": domain_map(self.capacity),
        }
        return CelMap(fields)


def domain_map(domains: Domains) -> DomainMap:
    """`device.attributes` or `device.capacity` as a value."""
    return DomainMap({domain: IdMap.of(*ids.items()) for domain, ids in domains.items()})


@dataclass(slots=True)
class CelDevice:
    """One device, converted once. An attribute that cannot be converted is an error of every evaluation."""

    driver: str
    attributes: Mapping[str, DeviceAttribute]
    capacity: Mapping[str, DeviceCapacity]
    allow_multiple: bool
    _view: DeviceView | CelRuntimeError | None = None

    @classmethod
    def of(
        cls,
        driver: str,
        attributes: Mapping[str, DeviceAttribute],
        capacity: Mapping[str, DeviceCapacity],
        *,
        allow_multiple: bool = False,
    ) -> CelDevice:
        """Of what a ResourceSlice says; the driver is also the domain of names without one. Converts nothing yet."""
        return cls(driver, attributes, capacity, allow_multiple)

    def view(self) -> DeviceView:
        """The converted values, or CelRuntimeError for an attribute without value, a bad version or quantity."""
        if self._view is None:
            try:
                self._view = self._converted()
            except CelRuntimeError as error:
                self._view = error
        if isinstance(self._view, CelRuntimeError):
            raise self._view
        return self._view

    def _converted(self) -> DeviceView:
        attributes: Domains = {}
        for name, attribute in self.attributes.items():
            domain, id_ = split_name(name, self.driver)
            attributes.setdefault(domain, {})[id_] = _attribute_value(name, attribute)
        capacity: Domains = {}
        for name, each in self.capacity.items():
            domain, id_ = split_name(name, self.driver)
            capacity.setdefault(domain, {})[id_] = _capacity_value(name, each)
        return DeviceView(self.driver, attributes, capacity, allow_multiple=self.allow_multiple)


def split_name(name: str, driver: str) -> tuple[str, str]:
    """Domain and id of a qualified name; the driver is the domain of a name without one (`parseQualifiedName`)."""
    domain, slash, id_ = name.partition("/")
    return (domain, id_) if slash else (driver, name)


def _attribute_value(name: str, attribute: DeviceAttribute) -> object:
    """Of several values that are set, the one that the scheduler takes."""
    plain = attribute.ints, attribute.bools, attribute.strings
    found: object = next((each for each in plain if each is not None), None)
    if found is not None:
        return found
    if attribute.versions is not None:
        return tuple(_version(name, each) for each in attribute.versions)
    found = next((each for each in (attribute.int_, attribute.bool_, attribute.string) if each is not None), None)
    if found is None and attribute.version is None:
        raise CelRuntimeError(f"attribute {name}: unsupported attribute value")
    return _version(name, attribute.version) if found is None and attribute.version is not None else found


def _version(name: str, text: str) -> Semver:
    try:
        return parse_semver(text)
    except InvalidSemverError as error:
        raise CelRuntimeError(f"attribute {name}: parse semantic version: {error}") from None


def _capacity_value(name: str, capacity: DeviceCapacity) -> Quantity:
    try:
        return parse_quantity(capacity.value)
    except InvalidQuantityError as error:
        raise CelRuntimeError(f"capacity {name}: {error}") from None

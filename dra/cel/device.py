"""A device as selectors see it: its attributes and capacity as CEL values, by domain and id.

Follows `DeviceMatches` and `getAttributeValue` of k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dra.cel.errors import CelRuntimeError
from dra.cel.values import CelMap
from dra.errors import InvalidQuantityError, InvalidSemverError
from dra.objects import DeviceAttribute, DeviceCapacity
from dra.quantity import Quantity, parse_quantity
from dra.semver import Semver, parse_semver

type Ids = dict[object, object]
type Domains = dict[str, Ids]


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
_quantity: Final = lru_cache(maxsize=4096)(parse_quantity)


class DeviceView:
    """The values behind the variable `device`, ready to be read."""

    __slots__ = ("_maps", "allow_multiple", "attributes", "capacity", "driver")

    def __init__(self, driver: str, attributes: Domains, capacity: Domains, *, allow_multiple: bool) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.allow_multiple = allow_multiple
        self._maps: dict[str, IdMap] = {}

    def attributes_of(self, domain: str) -> IdMap:
        """`device.attributes[domain]` as a value."""
        found = self._maps.get(domain)
        if found is None:
            found = self._maps[domain] = IdMap(self.attributes.get(domain, {}))
        return found

    def as_map(self) -> CelMap:
        """`device` where it is used as a value: a map of its fields."""
        fields: dict[object, object] = {
            "driver": self.driver,
            "allowMultipleAllocations": self.allow_multiple,
            "attributes": _domain_map(self.attributes),
            "capacity": _domain_map(self.capacity),
        }
        return CelMap(fields)


def _domain_map(domains: Domains) -> DomainMap:
    """`device.attributes` or `device.capacity` as a value."""
    return DomainMap({domain: IdMap(ids) for domain, ids in domains.items()})


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
        attributes = {name: _attribute_value(name, each) for name, each in self.attributes.items()}
        capacity = {name: _capacity_value(name, each) for name, each in self.capacity.items()}
        by_domain = _by_domain(attributes, self.driver), _by_domain(capacity, self.driver)
        return DeviceView(self.driver, *by_domain, allow_multiple=self.allow_multiple)


def _by_domain(values: Mapping[str, object], driver: str) -> Domains:
    own: Ids = {}
    domains: Domains = {}
    for name, value in values.items():
        if "/" not in name:
            own[name] = value
        else:
            domain, id_ = split_name(name, driver)
            domains.setdefault(domain, {})[id_] = value
    if own:
        domains[driver] = domains.get(driver, {}) | own
    return domains


def split_name(name: str, driver: str) -> tuple[str, str]:
    """Domain and id of a qualified name; the driver is the domain of a name without one (`parseQualifiedName`)."""
    domain, slash, id_ = name.partition("/")
    return (domain, id_) if slash else (driver, name)


def _attribute_value(name: str, attribute: DeviceAttribute) -> object:
    """Of several values that are set, the one that the scheduler takes."""
    found: object = attribute.ints
    if found is None:
        found = attribute.bools
    if found is None:
        found = attribute.strings
    if found is None and attribute.versions is not None:
        found = tuple(_version(name, each) for each in attribute.versions)
    if found is None:
        found = attribute.int_
    if found is None:
        found = attribute.bool_
    if found is None:
        found = attribute.string
    if found is None and attribute.version is not None:
        found = _version(name, attribute.version)
    if found is None:
        raise CelRuntimeError(f"attribute {name}: unsupported attribute value")
    return found


def _version(name: str, text: str) -> Semver:
    try:
        return parse_semver(text)
    except InvalidSemverError as error:
        raise CelRuntimeError(f"attribute {name}: parse semantic version: {error}") from None


def _capacity_value(name: str, capacity: DeviceCapacity) -> Quantity:
    try:
        return _quantity(capacity.value)
    except InvalidQuantityError as error:
        raise CelRuntimeError(f"capacity {name}: {error}") from None

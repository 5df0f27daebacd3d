"""DeviceTaintRule: a taint that an administrator puts on devices by name (resource.k8s.io/v1, KEP-5055)."""

from __future__ import annotations

from dra.objects.device import DeviceTaint
from dra.objects.meta import ApiStruct, ObjectMeta
from dra.objects.resourceclaim import Condition
from dra.objects.resourceslice import API_VERSION


class DeviceTaintSelector(ApiStruct, frozen=True, kw_only=True):
    """Which devices: what is set must be equal, what is unset matches all. An empty selector takes every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiStruct, frozen=True, kw_only=True):
    """The taint, and which devices get it. No selector at all means no device."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint


class DeviceTaintRuleStatus(ApiStruct, frozen=True, kw_only=True):
    """How far eviction has come: condition type EvictionInProgress."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(ApiStruct, frozen=True, kw_only=True):
    """One rule."""

    api_version: str = API_VERSION
    kind: str = "DeviceTaintRule"
    metadata: ObjectMeta
    spec: DeviceTaintRuleSpec
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()

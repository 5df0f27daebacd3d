"""Reads of the inventory: frozen values, each in a pinned number of queries. What other apps may ask stands here."""

from gpuinventory.selectors.capabilities import capabilities
from gpuinventory.selectors.capacity import Capacity, ClassCapacity, capacity
from gpuinventory.selectors.claims import (
    ClaimView,
    GivenDevice,
    TemplateView,
    claim_names,
    claim_uids,
    resource_claim,
    resource_claim_template,
    resource_claims,
)
from gpuinventory.selectors.device import DeviceDetail, Segment, device_detail
from gpuinventory.selectors.devices import (
    CounterView,
    DeviceFilter,
    DeviceList,
    DeviceView,
    HolderView,
    filter_choices,
    list_devices,
    unsettled_pools,
)
from gpuinventory.selectors.freshness import (
    Clocks,
    Freshness,
    KindState,
    clock_ahead,
    clocks,
    freshness,
    kind_states,
    revision,
)
from gpuinventory.selectors.nodes import NodeView
from gpuinventory.selectors.totals import ProductTotals, ProfileTotals, totals_by_product, totals_by_profile

__all__ = [
    "Capacity",
    "ClaimView",
    "ClassCapacity",
    "Clocks",
    "CounterView",
    "DeviceDetail",
    "DeviceFilter",
    "DeviceList",
    "DeviceView",
    "Freshness",
    "GivenDevice",
    "HolderView",
    "KindState",
    "NodeView",
    "ProductTotals",
    "ProfileTotals",
    "Segment",
    "TemplateView",
    "capabilities",
    "capacity",
    "claim_names",
    "claim_uids",
    "clock_ahead",
    "clocks",
    "device_detail",
    "filter_choices",
    "freshness",
    "kind_states",
    "list_devices",
    "resource_claim",
    "resource_claim_template",
    "resource_claims",
    "revision",
    "totals_by_product",
    "totals_by_profile",
    "unsettled_pools",
]

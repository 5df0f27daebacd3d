"""What ends kube-scheduler's search for a wish: which selector fails, on which kind of device, and by which part of it.

Values in, a value out. It names devices and what they are, never who holds them.
"""

from __future__ import annotations

from dataclasses import dataclass

from dra.advice.explanation import Miss
from dra.advice.selectors import selector_miss
from dra.allocation import Failed, Shape, Snapshot
from dra.allocation.shapes import Identity
from dra.names import DeviceID
from dra.objects import DeviceSelector, ResourceClaim
from dra.pools import PoolID
from gpuinventory.gpuclasses import Traits, traits_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The error of the scheduler, and for which choice, 0 for the first.

    Where a selector fails on a device, `expression` is the selector, `kind` what that device is, and `miss` the part of
    the selector that fails; nothing where it is another error.
    """

    failed: Failed
    choice: int = 0
    expression: str = ""
    kind: Traits | None = None
    miss: Miss | None = None


def stop_of(failed: Failed, claim: ResourceClaim, snapshot: Snapshot) -> Stop:
    """What that error for that claim, which makes one device request, means in this fleet."""
    choice, selectors = _asked(claim, failed.device_request)
    if failed.device_class:
        device_class = snapshot.classes.get(failed.device_class)
        selectors = device_class.spec.selectors if device_class else ()
    found = _found(snapshot, failed.device) if failed.device else None
    number = failed.selector
    cel = selectors[number].cel if number is not None and number < len(selectors) else None
    if cel is None or number is None or found is None:
        return Stop(failed=failed, choice=choice)
    shape, identity = found
    miss = selector_miss(number, cel.expression, shape, identity)
    return Stop(failed=failed, choice=choice, expression=cel.expression, kind=traits_of(shape), miss=miss)


def _asked(claim: ResourceClaim, name: str) -> tuple[int, tuple[DeviceSelector, ...]]:
    """Which choice a name in an error means, and its selectors: that of the request or of one of its alternatives."""
    (request,) = claim.spec.devices.requests
    choices = request.first_available or ((request.exactly,) if request.exactly else ())
    names = [each.name for each in request.first_available]
    number = names.index(name) if name in names else 0
    return number, choices[number].selectors if choices else ()


def _found(snapshot: Snapshot, device: DeviceID) -> tuple[Shape, Identity] | None:
    """What that device publishes, in the newest generation of its pool."""
    slices = snapshot.pools.get(PoolID(device.driver, device.pool), ())
    for slice_ in sorted(slices, key=lambda each: -each.generation):
        place = slice_.layout.index.get(device.device)
        if place is not None:
            return slice_.layout.shapes[place], slice_.identities[place] if slice_.identities else ()
    return None

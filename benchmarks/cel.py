"""Selectors over 100,000 devices, against cel-go as kube-scheduler uses it; both start from decoded devices.

By shape: the devices have 40 contents that differ in name and UUID only; ours converts and asks each content once and
then reads every device's verdict. Each on its own: no content is shared, every device is converted and asked.
Compiling is left out on both sides; the answers of both sides are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import machines
from benchmarks.peer import Peer, seconds
from benchmarks.report import Report
from dra.cel import CelDevice, Program, compile_expression
from dra.objects import Device, decode

DEVICES = 100_000
SHAPES = 40
SELECTORS = {
    "the driver": f'device.driver == "{machines.DRIVER}"',
    "product and memory": (
        f'device.attributes["{machines.DRIVER}"].productName.lowerAscii().contains("h100") && '
        f'device.capacity["{machines.DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
    ),
}


def run(report: Report) -> None:
    """Print ours divided by cel-go's, by selector and by how much the devices share."""
    contents = machines.contents(SHAPES)
    bodies = list(machines.many(contents, DEVICES))
    devices = [decode(body, Device) for body in bodies]
    with Peer() as peer:
        peer.keep_devices(machines.DRIVER, bodies)
        for words, text in SELECTORS.items():
            theirs, verdicts = peer.evaluate(machines.DRIVER, text)
            program = compile_expression(text)
            if _by_shape(program, contents) != verdicts or _each(program, devices) != verdicts:
                raise AssertionError(f"the two sides disagree about {text}")
            by_shape = seconds(lambda: _by_shape(program, contents))  # noqa: B023 - called at once
            each = seconds(lambda: _each(program, devices), rounds=3)  # noqa: B023 - called at once
            report.ratio(f"by shape to cel-go, {words}", by_shape / theirs, budget=1 / 20)
            report.ratio(f"each on its own to cel-go, {words}", each / theirs, budget=1.0)


def _by_shape(program: Program, contents: Sequence[Device]) -> list[bool]:
    verdicts = _each(program, contents)
    return [verdicts[number % len(contents)] for number in range(DEVICES)]


def _each(program: Program, devices: Sequence[Device]) -> list[bool]:
    return [program.matches(_converted(device)) for device in devices]


def _converted(device: Device) -> CelDevice:
    multiple = device.allow_multiple_allocations
    return CelDevice.of(machines.DRIVER, device.attributes, device.capacity, allow_multiple=multiple)

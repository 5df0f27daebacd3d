"""What selectors say of two devices, in one word each. The rows of the tests hold what cel-go says."""

from __future__ import annotations

from dra.cel import CelCompileError, CelDevice, CelRuntimeError, Program, compile_expression
from dra.objects import DeviceAttribute, DeviceCapacity

DRIVER = "gpu.example.com"
FULL = CelDevice.of(
    DRIVER,
    {
        "model": DeviceAttribute(string="H100"),
        "index": DeviceAttribute(int_=1),
        "healthy": DeviceAttribute(bool_=True),
        "v": DeviceAttribute(version="1.2.3"),
        "l": DeviceAttribute(strings=("a", "b")),
    },
    {"memory": DeviceCapacity(value="80Gi")},
)
BARE = CelDevice.of(DRIVER, {}, {})


def said(text: str) -> str | tuple[str, str]:
    """true, false, error, or does not compile; of the full and the bare device, if that is not the same."""
    try:
        program = compile_expression(text)
    except CelCompileError:
        return "does not compile"
    full, bare = word(program, FULL), word(program, BARE)
    return full if full == bare else (full, bare)


def word(program: Program, device: CelDevice) -> str:
    """true, false or error."""
    try:
        return str(program.matches(device)).lower()
    except CelRuntimeError:
        return "error"


def told(text: str) -> str:
    """true, false, error with its text, or does not compile; of the bare device."""
    try:
        return str(compile_expression(text).matches(BARE)).lower()
    except CelCompileError:
        return "does not compile"
    except CelRuntimeError as fault:
        return f"error: {fault}"

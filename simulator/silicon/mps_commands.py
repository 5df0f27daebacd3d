"""The control commands of nvidia-cuda-mps-control, one line in, text out (classic interface, MPS documentation).

Commands that NVIDIA documents and this stand-in lacks are answered as unknown. `quit` is the daemon's own
(`mps_daemon.py`), since it ends connections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from simulator.silicon.contexts import CudaRefused
from simulator.silicon.hardware import MpsDaemon, MpsServer
from simulator.silicon.mps_limits import format_memory, parse_memory, parse_percentage, resolve_device
from simulator.silicon.mps_service import Service


def run(service: Service, line: str) -> str:
    """Answer one command. ValueError, with words for a person, when it cannot be done."""
    name, *arguments = line.split() or [""]
    command = _COMMANDS.get(name)
    if command is None:
        raise ValueError(f"Unknown command {name!r}.")
    function, count = command
    if len(arguments) != count:
        raise ValueError(f"{name} takes {count} arguments, got {len(arguments)}.")
    try:
        return function(service, *arguments)
    except CudaRefused as refusal:
        raise ValueError(str(refusal)) from refusal


def _get_server_list(service: Service) -> str:
    return "\n".join(str(server.pid) for server in service.daemon().servers)


def _get_server_status(service: Service, pid: str) -> str:
    return "FAULT" if service.is_faulty(_server(service, pid).pid) else "ACTIVE"


def _start_server(service: Service, option: str, uid: str) -> str:
    if option != "-uid":
        raise ValueError("start_server takes -uid <uid>.")
    if service.daemon().servers:
        raise ValueError("A server is running already; one is active at a time.")
    service.start_server(int(uid))
    return ""


def _shutdown_server(service: Service, pid: str) -> str:
    service.stop_server(_server(service, pid).pid)
    return ""


def _get_client_list(service: Service, pid: str) -> str:
    server = _server(service, pid)
    return "\n".join(str(c.pid) for _, c in service.clients() if c.server_pid == server.pid)


def _ps(service: Service) -> str:
    lines = ["PID       ID    SERVER    DEVICE"]
    lines += [f"{c.pid:<9} {c.context:<5} {c.server_pid:<9} {uuid[:15]}" for uuid, c in service.clients()]
    return "\n".join(lines)


def _get_default_percentage(service: Service) -> str:
    return str(service.daemon().default_active_thread_percentage)


def _set_default_percentage(service: Service, value: str) -> str:
    percentage = parse_percentage(value)
    service.change(lambda daemon: replace(daemon, default_active_thread_percentage=percentage))
    return ""


def _get_default_memory(service: Service, device: str) -> str:
    daemon = service.daemon()
    return _memory_text(daemon.default_memory_limits, device, daemon)


def _set_default_memory(service: Service, device: str, value: str) -> str:
    """A device that is not there is taken without a word, as NVIDIA's daemon does; reading back shows nothing."""
    size = parse_memory(value)
    uuid = resolve_device(device, service.daemon().devices)
    if uuid is not None:
        service.change(lambda d: replace(d, default_memory_limits={**d.default_memory_limits, uuid: size}))
    return ""


def _get_percentage(service: Service, pid: str) -> str:
    return str(_server(service, pid).active_thread_percentage)


def _set_percentage(service: Service, pid: str, value: str) -> str:
    percentage = parse_percentage(value)
    _change_server(service, pid, lambda server: replace(server, active_thread_percentage=percentage))
    return ""


def _get_memory(service: Service, pid: str, device: str) -> str:
    return _memory_text(_server(service, pid).memory_limits, device, service.daemon())


def _set_memory(service: Service, pid: str, device: str, value: str) -> str:
    size = parse_memory(value)
    uuid = resolve_device(device, service.daemon().devices)
    if uuid is not None:
        _change_server(service, pid, lambda s: replace(s, memory_limits={**s.memory_limits, uuid: size}))
    return ""


def _memory_text(limits: dict[str, int], device: str, daemon: MpsDaemon) -> str:
    size = limits.get(resolve_device(device, daemon.devices) or "")
    return "" if size is None else format_memory(size)


def _server(service: Service, pid: str) -> MpsServer:
    for server in service.daemon().servers:
        if str(server.pid) == pid:
            return server
    raise ValueError(f"There is no MPS server {pid}.")


def _change_server(service: Service, pid: str, step: Callable[[MpsServer], MpsServer]) -> None:
    service.change_server(_server(service, pid).pid, step)


_COMMANDS: dict[str, tuple[Callable[..., str], int]] = {
    "get_server_list": (_get_server_list, 0),
    "get_server_status": (_get_server_status, 1),
    "start_server": (_start_server, 2),
    "shutdown_server": (_shutdown_server, 1),
    "get_client_list": (_get_client_list, 1),
    "ps": (_ps, 0),
    "get_default_active_thread_percentage": (_get_default_percentage, 0),
    "set_default_active_thread_percentage": (_set_default_percentage, 1),
    "get_default_device_pinned_mem_limit": (_get_default_memory, 1),
    "set_default_device_pinned_mem_limit": (_set_default_memory, 2),
    "get_active_thread_percentage": (_get_percentage, 1),
    "set_active_thread_percentage": (_set_percentage, 2),
    "get_device_pinned_mem_limit": (_get_memory, 2),
    "set_device_pinned_mem_limit": (_set_memory, 3),
}

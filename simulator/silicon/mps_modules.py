"""The commands of MPS version 3, `module verb [arguments]`, in words, answered in text (MPS documentation, "MPS v3").

Modules and verbs that NVIDIA documents and this stand-in lacks are answered as unknown. `client terminate` and `-q` are
the daemon's own (`mps_daemon.py`), since they end connections.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from simulator.silicon.contexts import CudaRefused
from simulator.silicon.hardware import MpsNamespace, MpsServer
from simulator.silicon.mps_limits import format_memory, parse_memory, parse_percentage
from simulator.silicon.mps_service import DEFAULT_NAMESPACE, Service

OFFERED_SINCE = 615  # of NVIDIA's drivers; older ones know the classic interface only
HELP = "modules: server, namespace, client, device, sm-partition, feature, memacct, context-share"
_NAME = re.compile(r"[a-z0-9_]{1,64}")

type Options = Mapping[str, str]


def is_offered(driver_version: str) -> bool:
    """Whether the program of that driver knows version 3."""
    return int(driver_version.split(".", maxsplit=1)[0]) >= OFFERED_SINCE


def run(service: Service, words: Sequence[str]) -> str:
    """Answer one command. ValueError, with words for a person, when it cannot be done."""
    command = _COMMANDS.get((*words[:2],))
    if command is None:
        raise ValueError(f"Unknown command {' '.join(words[:2])!r}.")
    plain = [word for word in words[2:] if "=" not in word and not word.startswith("--")]
    pairs = (word.removeprefix("--").partition("=") for word in words[2:] if word not in plain)
    try:
        return command(service, {name: value for name, _, value in pairs}, *plain)
    except (CudaRefused, TypeError) as refusal:
        raise ValueError(str(refusal)) from refusal


def _server_create(service: Service, _options: Options, name: str) -> str:
    if any(server.name == _named(name) for server in service.daemon().servers):
        raise ValueError(f"Server {name!r} exists already.")
    service.start_server(os.getuid(), name)
    return ""


def _server_delete(service: Service, options: Options, name: str) -> str:
    server = _server(service, name)
    if "force" not in options and any(context.server_pid == server.pid for _, context in service.clients()):
        raise ValueError(f"Server {name!r} has active clients.")
    service.stop_server(server.pid)
    return ""


def _server_list(service: Service, options: Options) -> str:
    daemon = service.daemon()
    rows = [
        (s.name, s.uid, s.pid, _status(service, s), f"{daemon.pipe_directory}/{s.name}", " ".join(daemon.devices), "-")
        for s in daemon.servers
    ]
    return _table(("NAME", "UID", "PID", "STATUS", "PIPE-DIRECTORY", "ALLOWED-DEVICES", "CONTEXT-IDS"), rows, options)


def _namespace_create(service: Service, options: Options, name: str) -> str:
    server = _server(service, options["server"])
    if any(namespace.name == _named(name) for namespace in server.namespaces):
        raise ValueError(f"Namespace {name!r} exists already.")
    service.change_server(server.pid, lambda s: replace(s, namespaces=(*s.namespaces, MpsNamespace(name=name))))
    return ""


def _namespace_delete(service: Service, options: Options, name: str) -> str:
    server = _server(service, options["server"])
    gone = _namespace(server, name)
    if name == DEFAULT_NAMESPACE:
        raise ValueError("The default namespace can't be deleted.")
    clients = (c for _, c in service.clients() if (c.server_pid, c.namespace) == (server.pid, name))
    if "force" not in options and any(clients):
        raise ValueError(f"Namespace {name!r} has active clients.")
    left = tuple(namespace for namespace in server.namespaces if namespace != gone)
    service.change_server(server.pid, lambda s: replace(s, namespaces=left))
    return ""


def _namespace_set(service: Service, options: Options, name: str) -> str:
    server = _server(service, options["server"])
    changed = _namespace(server, name)
    if "pinned-memory-limit" in options:
        changed = replace(changed, memory_limit=parse_memory(options["pinned-memory-limit"]))
    if "active-thread-percentage" in options:
        changed = replace(changed, active_thread_percentage=parse_percentage(options["active-thread-percentage"]))
    namespaces = tuple(changed if namespace.name == name else namespace for namespace in server.namespaces)
    service.change_server(server.pid, lambda s: replace(s, namespaces=namespaces))
    return ""


def _namespace_list(service: Service, options: Options) -> str:
    daemon = service.daemon()
    rows = [
        (each.name, s.name, _status(service, s), *_limits(each), "-", f"{daemon.pipe_directory}/{s.name}/{each.name}")
        for s in daemon.servers
        for each in s.namespaces
        if options.get("server") in (None, s.name)
    ]
    limits = "PINNED-MEMORY-LIMIT", "ACTIVE-THREAD-PERCENTAGE", "CLIENT-PRIORITY"
    return _table(("NAME", "SERVER", "SERVER-STATUS", *limits, "PIPE-DIRECTORY"), rows, options)


def _client_list(service: Service, options: Options) -> str:
    names = {server.pid: server.name for server in service.daemon().servers}
    rows = [
        (c.pid, names[c.server_pid], 0, c.namespace, "a program")  # 0: its daemons have one device
        for _, c in service.clients()
        if c.server_pid and options.get("server") in (None, names[c.server_pid])
    ]
    return _table(("PID", "SERVER", "DEVICE", "NAMESPACE", "CMD"), rows, options)


def _limits(namespace: MpsNamespace) -> tuple[str, str]:
    memory, percentage = namespace.memory_limit, namespace.active_thread_percentage
    return "-" if memory is None else format_memory(memory), "-" if percentage is None else f"{percentage:g}"


def _status(service: Service, server: MpsServer) -> str:
    return "Fault" if service.is_faulty(server.pid) else "Ready"


def _table(head: Iterable[str], rows: Iterable[Iterable[object]], options: Options) -> str:
    form = options.get("format", "table").split(",")
    shown = [*([] if "noheader" in form else [head]), *rows]
    return "\n".join(("," if "csv" in form else " ").join(map(str, row)) for row in shown)


def _named(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name: use lowercase letters, digits and underscores, at most 64.")
    return name


def _server(service: Service, name: str) -> MpsServer:
    for server in service.daemon().servers:
        if server.name == name:
            return server
    raise ValueError(f"There is no server {name!r}.")


def _namespace(server: MpsServer, name: str) -> MpsNamespace:
    for namespace in server.namespaces:
        if namespace.name == name:
            return namespace
    raise ValueError(f"Server {server.name!r} has no namespace {name!r}.")


_COMMANDS: dict[tuple[str, ...], Callable[..., str]] = {
    ("server", "create"): _server_create,
    ("server", "delete"): _server_delete,
    ("server", "list"): _server_list,
    ("namespace", "create"): _namespace_create,
    ("namespace", "delete"): _namespace_delete,
    ("namespace", "set"): _namespace_set,
    ("namespace", "list"): _namespace_list,
    ("client", "list"): _client_list,
}

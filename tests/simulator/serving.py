"""An empty API server of the simulator on a port, and the client of its administrator, whose token is `secret`."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from dra.kube.client import KubeClient
from simulator.api.access import User
from simulator.api.server import ApiServer
from simulator.http import Application, kubeconfig, read_schema, stamp
from simulator.store import Store


@dataclass(frozen=True, slots=True)
class Served:
    """A simulator that listens, and the client of its administrator."""

    app: Application
    store: Store
    client: KubeClient
    url: str


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """One that runs in this process; `folder` keeps its kubeconfig."""
    store = Store()
    app = Application(ApiServer(store, read_schema(), {"secret": User("admin", ("system:masters",))}, stamp))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        file = folder / "kubeconfig"
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        file.write_text(kubeconfig(url, "admin", "secret"))
        try:
            yield Served(app, store, KubeClient.from_environment(str(file)), url)
        finally:
            server.should_exit = True
            thread.join()

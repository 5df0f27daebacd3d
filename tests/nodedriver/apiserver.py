"""A small API server over real HTTP for node tests: objects by path, lists, watches, conflicts, applied statuses.

It knows no kinds and validates nothing; what the real server refuses is tested against the real one (tests/cluster).
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

type Json = dict[str, Any]

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: small, cluster: {{server: "{url}"}}}}]
users: [{{name: driver, user: {{}}}}]
contexts: [{{name: small, context: {{cluster: small, user: driver}}}}]
current-context: small
"""


class Store:
    """Objects by path, and every change in order.

    `refuse` holds path endings whose changes are answered with 500, `slow` paths whose reading waits for an event.
    While `away` every connection ends without an answer. A watch ends after `watch_seconds` without an event.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.events: list[tuple[str, str, Json]] = []  # path, type, object
        self.refuse: set[str] = set()
        self.slow: dict[str, threading.Event] = {}
        self.requests: list[tuple[str, str]] = []
        self.applied: dict[str, dict[str, list[Json]]] = {}  # device statuses by path and field manager
        self.changed = threading.Condition()
        self.away = False
        self.watch_seconds = 1.0

    def put(self, path: str, document: Json, event: str) -> Json:
        with self.changed:
            self.events.append((path, event, document))
            document.setdefault("metadata", {})["resourceVersion"] = str(len(self.events))
            document["metadata"].setdefault("uid", str(uuid4()))
            if event == "DELETED":
                del self.objects[path]
            else:
                self.objects[path] = document
            self.changed.notify_all()
        return document

    def wait_beyond(self, seen: int, seconds: float) -> list[tuple[str, str, Json]]:
        """The events after the first `seen`, as soon as there are any; none when the time is over."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.events) > seen, timeout=seconds)
            return self.events[seen:]

    def under(self, path: str) -> list[Json]:
        """The objects of a collection, or of all namespaces' collections."""
        with self.changed:
            return [self.objects[key] for key in sorted(self.objects) if is_in(key, path)]

    def apply_devices(self, path: str, manager: str, devices: list[Json]) -> list[Json]:
        """What `status.devices` is after one manager said its part: each keeps what the others said (KEP-555)."""
        self.applied.setdefault(path, {})[manager] = devices
        merged: dict[tuple[str, ...], Json] = {}
        for device in (each for said in self.applied[path].values() for each in said):
            key = tuple(str(device.get(name)) for name in ("driver", "pool", "device", "shareID"))
            before = merged.get(key, {})
            conditions = [*before.get("conditions", []), *device.get("conditions", [])]
            merged[key] = {**before, **device, "conditions": conditions}
        return list(merged.values())


def is_in(key: str, collection: str) -> bool:
    """Whether an object's path lies in a collection; one without a namespace holds those of all namespaces."""
    folder = key.rpartition("/")[0]
    root, _, plural = collection.rpartition("/")
    return folder == collection or (folder.startswith(f"{root}/namespaces/") and folder.endswith(f"/{plural}"))


class Handler(BaseHTTPRequestHandler):
    """One connection. `store` is set on the class that `serve` makes."""

    store: Store
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as Go's servers: or a body waits 40 ms for the acknowledgement of its headers

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Tests read `store.requests` instead."""

    def parse_request(self) -> bool:
        if self.store.away:
            self.close_connection = True
            return False
        return super().parse_request()

    def do_GET(self) -> None:
        path, query = self._target()
        if path in self.store.slow:
            self.store.slow[path].wait(30)
        if query.get("watch"):
            self._watch(path, float(query.get("timeoutSeconds", "60")), query.get("resourceVersion", ""))
        elif path in self.store.objects:
            self._answer(200, self.store.objects[path])
        elif path.rpartition("/")[2].endswith("s"):
            version = {"resourceVersion": str(len(self.store.events))}
            self._answer(200, {"metadata": version, "items": self.store.under(path)})
        else:
            self._refuse(404, "NotFound", f'"{path.rpartition("/")[2]}" not found')

    def do_POST(self) -> None:
        path, query = self._target()
        document = self._body()
        target = f"{path}/{document['metadata'].get('name', 'generated')}"
        if query.get("dryRun"):
            self._answer(201, document)
        elif target in self.store.objects:
            self._refuse(409, "AlreadyExists", f'"{target}" already exists')
        else:
            self._answer(201, self.store.put(target, document, "ADDED"))

    def do_PUT(self) -> None:
        path, _ = self._target()
        document = self._body()
        if self._refuses(path):
            self._refuse(500, "InternalError", "etcd is away")
        elif path not in self.store.objects:
            self._refuse(404, "NotFound", f'"{path}" not found')
        elif document["metadata"].get("resourceVersion") != self.store.objects[path]["metadata"]["resourceVersion"]:
            self._refuse(409, "Conflict", "the object has been modified")
        else:
            document["metadata"]["uid"] = self.store.objects[path]["metadata"]["uid"]
            self._answer(200, self.store.put(path, document, "MODIFIED"))

    def do_PATCH(self) -> None:
        path, query = self._target()
        status = path.endswith("/status")
        path = path.removesuffix("/status")
        document = self._body()
        found = self.store.objects.get(path)
        if self._refuses(path):
            self._refuse(500, "InternalError", "etcd is away")
        elif found is None and not status:
            self._answer(201, self.store.put(path, document, "ADDED"))
        elif found is None:
            self._refuse(404, "NotFound", f'"{path}" not found')
        elif document["metadata"].get("uid", found["metadata"]["uid"]) != found["metadata"]["uid"]:
            self._refuse(409, "Conflict", "the uid in the precondition is another one")
        else:
            changed = document
            if status:
                changed = {"status": {**found.get("status", {}), **document["status"]}}
            if "devices" in document.get("status", {}):
                said = document["status"]["devices"]
                changed["status"]["devices"] = self.store.apply_devices(path, query["fieldManager"], said)
            self._answer(200, self.store.put(path, {**found, **changed}, "MODIFIED"))

    def do_DELETE(self) -> None:
        path, _ = self._target()
        self._body()
        if path in self.store.objects:
            self._answer(200, self.store.put(path, self.store.objects[path], "DELETED"))
        else:
            self._refuse(404, "NotFound", f'"{path}" not found')

    def _watch(self, path: str, seconds: float, version: str) -> None:
        """Events after that version, or from now on, until the time is over; the connection's end is the stream's."""
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        seen = int(version or len(self.store.events))
        while fresh := self.store.wait_beyond(seen, min(seconds, self.store.watch_seconds)):
            seen += len(fresh)
            for changed, event, document in fresh:
                if is_in(changed, path):
                    self.wfile.write(json.dumps({"type": event, "object": document}).encode() + b"\n")
        self.close_connection = True

    def _target(self) -> tuple[str, dict[str, str]]:
        url = urlsplit(self.path)
        self.store.requests.append((self.command, url.path))
        return url.path, {key: values[0] for key, values in parse_qs(url.query).items()}

    def _refuses(self, path: str) -> bool:
        return any(path.endswith(ending) for ending in self.store.refuse)

    def _body(self) -> Json:
        text = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        document: Json = json.loads(text or b"{}")
        return document

    def _refuse(self, code: int, reason: str, message: str) -> None:
        self._answer(code, {"kind": "Status", "code": code, "reason": reason, "message": message})

    def _answer(self, code: int, document: Json) -> None:
        text = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@contextmanager
def serve(kubeconfig: Path) -> Iterator[Store]:
    """A server on a free loopback port, with a kubeconfig that leads to it."""
    store = Store()
    handler = type("BoundHandler", (Handler,), {"store": store})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        kubeconfig.write_text(KUBECONFIG.format(url=f"http://127.0.0.1:{server.server_port}"))
        try:
            yield store
        finally:
            server.shutdown()
            thread.join()

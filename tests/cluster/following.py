"""A read model that follows a real cluster as in life: the workers' streams, one thread a kind, under their own rights.

For tests that ask the portal's own code in this process. It adds nothing to the streams but the threads.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from django.db import connection
from django.utils import timezone

from dra.kube.client import KubeClient
from dra.kube.requests import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource, path_of
from gpuinventory.kinds import KINDS
from gpuinventory.models import ClusterObject, StreamCursor
from gpuinventory.services.stream import Stream, run_stream
from tests.cluster.api import Api
from tests.cluster.started import Started
from tests.cluster.waiting import wait_until

WATCH_SECONDS: Final = 20
PAUSE: Final = 3.0  # seconds before a stream that ended with a fault, or a kind that is not served, is tried again
_LEFT_OUT: Final = frozenset({"Event"})
# By what a row of the kind is known to be the object: pods are cut, so that versions change without news.
_COMPARED: Final = (
    (RESOURCE_CLAIMS, "resource_version"),
    (RESOURCE_CLAIM_TEMPLATES, "resource_version"),
    (PODS, "uid"),
)
_METADATA: Final = {"resource_version": "resourceVersion", "uid": "uid"}


class Following(Started):
    """Streams of every kind but events, by the kubeconfig of the worker's account."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = str(kubeconfig)
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start, and wait until every kind has been read once."""
        kinds = [kind for kind in KINDS if kind not in _LEFT_OUT]
        self._threads = [threading.Thread(target=self._follow, args=(kind,), name=kind) for kind in kinds]
        for thread in self._threads:
            thread.start()
        read = StreamCursor.objects.filter(kind__in=kinds, synced_at__isnull=False)
        ready = read.exclude(resource_version="", served=True)
        wait_until(lambda: ready.count() == len(kinds), "a first reading of all kinds", 60)

    def stop(self) -> None:
        """End the threads; a silent watch looks once a second whether to stop."""
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def settle(self, api: Api) -> None:
        """Wait until the read model has the claims, templates and pods that the cluster has then."""
        wait_until(
            lambda: all(_is_read(api, *each) for each in _COMPARED), "the read model to be up to date", pause=0.02
        )

    def _follow(self, kind: str) -> None:
        client = KubeClient.from_environment(self._kubeconfig)
        stream = Stream(
            kind=kind,
            holder="following",
            connect=lambda: client,
            clock=timezone.now,
            seconds=WATCH_SECONDS,
            stopping=self._ending.is_set,
        )
        try:
            while not self._ending.is_set():
                if not run_stream(stream):
                    self._ending.wait(PAUSE)
        finally:
            connection.close()


def _is_read(api: Api, resource: Resource, field: str) -> bool:
    """Whether the rows of the kind are the objects that there are."""
    key = _METADATA[field]
    items = [each["metadata"] for each in api.call("GET", path_of(resource))["items"]]
    rows = ClusterObject.objects.filter(kind=resource.kind).values_list("namespace", "name", field)
    return set(rows) == {(each.get("namespace", ""), each["name"], each[key]) for each in items}

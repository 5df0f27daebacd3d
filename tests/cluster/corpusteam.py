"""A member of a team who applies the files of a wish and takes them back, by kubectl's way: POST and DELETE as herself.

Her rights are the chart's for a team, and Kubernetes' own role `edit` for what the chart leaves to the cluster:
Deployments, Jobs, StatefulSets, autoscalers and shared claims.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import yaml

from claims.manifests import File, Files
from tests.claims.corpus import COLLECTIONS
from tests.cluster.api import Api, ApiError
from tests.cluster.cluster import Cluster
from tests.cluster.corpuspods import PodWatch
from tests.cluster.waiting import wait_until

_NOW: Final = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Foreground"}
_SECONDS: Final = 20.0


def let_edit(cluster: Cluster, namespace: str, group: str) -> None:
    """The group may edit in the namespace."""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    cluster.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "edit", "namespace": namespace},
            "roleRef": role,
            "subjects": [subject],
        }
    )


class Member:
    """One person in one namespace, through her own connection."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    def apply(self, files: Files) -> None:
        """Create what is applied; ApiError with the server's sentence where it refuses."""
        for file in files.applied:
            path = f"{self._collection(file)}?fieldValidation=Strict"
            self._api.request("POST", path, file.content, "application/yaml").expect()

    def take_back(self, files: Files, pods: PodWatch) -> None:
        """Delete it all, and then the pods at once: there is no kubelet that would let go of them.

        Not before their controller has let go: it would make others, and delete them while they are being bound.
        """
        for file in files.applied:
            self._delete(self._path(file))
        workload = _name(files.pod)
        while left := pods.of(workload):
            for pod in left:
                if pod.leaving:
                    self._delete(f"{COLLECTIONS['Pod'].format(self._namespace)}/{pod.name}")
            pods.wait_for_other(workload, left, _SECONDS)
        # What is deleted in the foreground goes after its pods, and its name is free only then.
        for file in files.applied:
            path = self._path(file)
            wait_until(partial(self._gone, path), f"the end of {path}", _SECONDS, pause=0.02)

    def _path(self, file: File) -> str:
        return f"{self._collection(file)}/{_name(file)}"

    def _collection(self, file: File) -> str:
        return COLLECTIONS[_content(file)["kind"]].format(self._namespace)

    def _gone(self, path: str) -> bool:
        answer = self._api.request("GET", path)
        if answer.status == 404:
            return True
        answer.expect()  # a refusal is no sign of life
        return False

    def _delete(self, path: str) -> None:
        try:
            self._api.call("DELETE", path, _NOW)
        except ApiError as error:
            if error.status != 404:
                raise


def _content(file: File) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(file.text, Loader=yaml.CSafeLoader)
    return found


def _name(file: File) -> str:
    return str(_content(file)["metadata"]["name"])

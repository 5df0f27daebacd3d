"""The way to an API server as the `kubernetes` package finds it: every kind of kubeconfig, plug-ins and proxies.

Only configuration and credentials come from that package; its typed models drop fields they do not know. The node
driver does without it (`access`), since importing it costs memory.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.config.config_exception import ConfigException

from dra.kube.access import Access
from dra.kube.errors import UnreachableError
from dra.kube.pooled import PooledConnections


def access(kubeconfig: str | None) -> Access:
    """By that kubeconfig file, or without one by the pod's service account; UnreachableError if neither is usable."""
    configuration = Configuration()
    try:
        if kubeconfig:
            config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
        else:
            config.load_incluster_config(client_configuration=configuration)
    except (ConfigException, OSError) as error:
        raise UnreachableError(f"no usable configuration for a cluster: {error}") from error

    def authorization() -> str:
        header: str | None = configuration.get_api_key_with_prefix("authorization", alias="BearerToken")
        return header or ""

    server = str(configuration.host)
    pool = ApiClient(configuration).rest_client.pool_manager
    return Access(server, PooledConnections(pool, server), authorization, urlsplit(server).path)

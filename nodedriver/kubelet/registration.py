"""The Registration service: tells the kubelet who we are and where we answer, and hears whether it took us."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import structlog

from nodedriver.kubelet.health import HEALTH_VERSIONS
from nodedriver.kubelet.plugin import API_VERSIONS
from nodedriver.pb.pluginregistration.v1 import api_pb2

PLUGIN_TYPE = "DRAPlugin"
_log = structlog.get_logger()


class Registration:
    """The service. `refused` is done, with the kubelet's reason, once it refuses us; else `registered` is set."""

    def __init__(self, driver_name: str, endpoint: str, registered: threading.Event) -> None:
        self._driver_name = driver_name
        self._endpoint = endpoint
        self._registered = registered
        self.refused: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def GetInfo(self, request: object, context: object) -> Any:  # noqa: N802
        """Type, name, socket and services with their versions, best first."""
        return api_pb2.PluginInfo(
            type=PLUGIN_TYPE,
            name=self._driver_name,
            endpoint=self._endpoint,
            supported_versions=[api.service for api in (*API_VERSIONS, *HEALTH_VERSIONS)],
        )

    async def NotifyRegistrationStatus(self, request: Any, context: object) -> Any:  # noqa: N802
        """The kubelet's verdict; a refusal ends the driver, so that it starts anew and tries again."""
        if request.plugin_registered:
            self._registered.set()
            _log.info("driver registered with the kubelet", driver=self._driver_name)
        elif not self.refused.done():
            self.refused.set_result(request.error)
        return api_pb2.RegistrationStatusResponse()

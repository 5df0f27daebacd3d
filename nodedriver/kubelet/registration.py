"""The Registration service: tells the kubelet who we are and where we answer, and hears whether it took us."""

from __future__ import annotations

import threading
from typing import Any

import structlog

from nodedriver.kubelet.health import HEALTH_VERSIONS
from nodedriver.kubelet.plugin import API_VERSIONS
from nodedriver.kubelet.stopping import RegistrationRefusedError, Stop
from nodedriver.pb.pluginregistration.v1 import api_pb2

PLUGIN_TYPE = "DRAPlugin"
_log = structlog.get_logger()


class Registration:
    """The service. A refusal goes into `stop`; else `registered` is set."""

    def __init__(self, driver_name: str, endpoint: str, registered: threading.Event, stop: Stop) -> None:
        self._driver_name = driver_name
        self._endpoint = endpoint
        self._registered = registered
        self._stop = stop

    def GetInfo(self, request: object, context: object) -> Any:  # noqa: N802
        """Type, name, socket and services with their versions, best first."""
        return api_pb2.PluginInfo(
            type=PLUGIN_TYPE,
            name=self._driver_name,
            endpoint=self._endpoint,
            supported_versions=[api.service for api in (*API_VERSIONS, *HEALTH_VERSIONS)],
        )

    def NotifyRegistrationStatus(self, request: Any, context: object) -> Any:  # noqa: N802
        """The kubelet's verdict; a refusal ends the driver, so that it starts anew and tries again."""
        if request.plugin_registered:
            self._registered.set()
            _log.info("driver registered with the kubelet", driver=self._driver_name)
        else:
            self._stop.put(RegistrationRefusedError(request.error))
        return api_pb2.RegistrationStatusResponse()

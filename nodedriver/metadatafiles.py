"""The files of device metadata, one a device request, in a folder for each claim below the driver's own.

Repeating is safe: a file is replaced whole, and an absent folder counts as removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from dra.names import ClaimUID
from dra.objects import DeviceAttribute
from nodedriver.cdi import Mount
from nodedriver.devicemetadata import container_path, texts_of
from nodedriver.files import write_atomically
from nodedriver.holding import PreparedClaim
from nodedriver.inventory import DeviceRecord

_FILE = "metadata.json"


class MetadataFiles:
    """The files of one driver. `records` by device names; not `enabled`, it only removes. OSError by the disk."""

    def __init__(self, driver_name: str, folder: Path, records: Mapping[str, DeviceRecord], *, enabled: bool) -> None:
        self._driver_name = driver_name
        self._folder = folder
        self._records = records
        self._enabled = enabled

    def write(self, claim: PreparedClaim) -> dict[str, Mount]:
        """Write the claim's files; what the containers of each device request are to have mounted."""
        if not self._enabled:
            return {}
        mounts = {}
        for request, text in texts_of(self._driver_name, claim, self._attributes_of).items():
            file = self._of(claim.uid) / request / _FILE
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, text)
            mounts[request] = Mount(str(file), container_path(self._driver_name, claim, request))
        return mounts

    def remove(self, uid: ClaimUID) -> None:
        """Remove the claim's files."""
        if self._of(uid).exists():
            shutil.rmtree(self._of(uid))

    def sweep(self, claims: Callable[[], Collection[ClaimUID]]) -> None:
        """Remove what belongs to no claim. A folder that is listed first has its claim in what is read after."""
        listed = [path.name for path in self._folder.glob("*")]
        known = claims()
        for name in listed:
            if ClaimUID(name) not in known:
                self.remove(ClaimUID(name))

    def _of(self, uid: ClaimUID) -> Path:
        return self._folder / uid

    def _attributes_of(self, device: str) -> Mapping[str, DeviceAttribute]:
        """Nothing of a device that is not published any more."""
        record = self._records.get(device)
        return record.attributes if record else {}

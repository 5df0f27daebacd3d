"""Links in /dev/char for the nodes that containers are given: `<major>:<minor>` to the node's own name.

udev makes them for other drivers' nodes, and NVIDIA's have none. runc names a device to systemd by its link there, and
a systemd that finds none takes the device from running containers when it reloads (NVIDIA Container Toolkit, issue 48;
`nvidia-ctk system create-dev-char-symlinks`). A number's link is true as long as the node is up, so none is removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import structlog

from nodedriver.facts import DeviceNode

_log = structlog.get_logger()


def link_nodes(dev_root: Path, nodes: Iterable[DeviceNode]) -> None:
    """Make the links that are missing; what is there already stays. Logged where it can't be done: containers start."""
    for node in nodes:
        link = f"{dev_root}/char/{node.major}:{node.minor}"
        if os.path.islink(link):  # noqa: PTH114 - each prepare looks at every node, Path takes twice as long
            continue
        try:
            (dev_root / "char").mkdir(exist_ok=True)
            Path(link).symlink_to(f"../{PurePosixPath(node.path).relative_to('/dev')}")
        except FileExistsError:
            continue
        except OSError as error:
            reason = error.strerror
            _log.warning("device node has no link in /dev/char", node=node.path, link=link, reason=reason)

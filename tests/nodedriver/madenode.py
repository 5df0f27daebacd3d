"""A node's files as a doctor sees them, made under one folder: processes, cgroups, settings of runtime and kubelet."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simulator.silicon.tree import Tree

CONTAINERD = """\
version = 3
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.cri.v1.runtime"]
  enable_cdi = true
"""
KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
featureGates:
  ResourceHealthStatus: true
"""


class MadeNode:
    """A healthy node around the silicon of `tree`; tests make it ill."""

    def __init__(self, tree: Tree, folder: Path) -> None:
        self.tree = tree
        self.host = folder / "host"
        self.kubelet_dir = folder / "k"
        self.plugins = self.host / "var/lib/kubelet/device-plugins"
        self.write(tree.proc / "sys/kernel/osrelease", "6.8.0-45-generic\n")
        self.write(tree.sys / "fs/cgroup/cgroup.controllers", "cpu memory\n")
        self.write(self.host / "etc/containerd/config.toml", CONTAINERD)
        self.write(self.host / "var/lib/kubelet/config.yaml", KUBELET)
        (self.kubelet_dir / "plugins_registry").mkdir(parents=True, exist_ok=True)
        self.process(100, "containerd", "/usr/bin/containerd")
        self.process(101, "kubelet", "/usr/bin/kubelet", f"--root-dir={self.kubelet_dir}")

    @property
    def flags(self) -> list[str]:
        return ["--host-root", str(self.host), "--kubelet-dir", str(self.kubelet_dir), "--cdi-dir", "/var/run/cdi"]

    def process(
        self, pid: int, name: str, *command: str, cgroup: str = "/system.slice", files: Sequence[str] = ()
    ) -> None:
        """A process with these files open."""
        folder = self.tree.proc / str(pid)
        self.write(folder / "comm", f"{name[:15]}\n")  # TASK_COMM_LEN
        self.write(folder / "cmdline", "".join(f"{part}\0" for part in command or (name,)))
        self.write(folder / "cgroup", f"0::{cgroup}\n")
        (folder / "fd").mkdir()
        for number, target in enumerate(files, start=3):
            os.symlink(target, folder / "fd" / str(number))  # noqa: PTH211 - a link to nothing, as of a device

    def device_plugin(self, resource: str, devices: Sequence[str], socket: str) -> None:
        """What the kubelet keeps of a device plugin (devicemanager/checkpoint)."""
        data: dict[str, Any] = {"PodDeviceEntries": None, "RegisteredDevices": {resource: list(devices)}}
        self.write(self.plugins / "kubelet_internal_checkpoint", json.dumps({"Data": data, "Checksum": 1}))
        for name in ("kubelet.sock", socket):
            self.write(self.plugins / name, "")

    @staticmethod
    def write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

"""A containerd with runc in a mount namespace of its own, and the removal of all that ran under it.

Kubelet and containerd are started into that namespace, so what they mount is seen by nobody else and goes with the last
of them; and the fixed paths that they write to outside their folders, kernel settings among them, lead into the node's
folder. Containers are ended through containerd's own client, never by searching for processes.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import build
from tests.cluster.processes import Processes, Program, ProgramError
from tests.cluster.waiting import wait_until

READY_SECONDS = 60.0
NAMESPACE = "k8s.io"  # where containerd's CRI plugin keeps what the kubelet asks for

# Paths that no option moves: the kubelet's device plugin sockets (pluginapi.KubeletSocket) and links to container logs
# (legacyContainerLogsDir), and containerd's shim sockets and runc state.
SHIELDED = {
    "/var/lib/kubelet": "var-lib-kubelet",
    "/var/log/containers": "var-log-containers",
    "/run/containerd": "run",
}

# The kubelet sets these for the whole machine (setupKernelTunables). Here it finds files that hold what it wants, and
# leaves the machine as it is.
TUNABLES = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}

# $0 is a file of lines "from to". All shared, for the kubelet's own folder: one that is not, the kubelet binds
# onto itself while it already moves a socket within it, and now and then it ends by "invalid cross-device link".
_SHIELD = 'while read -r from to; do mount --bind --make-rshared "$from" "$to" || exit 1; done < "$0"; exec "$@"'


class RuntimeMissingError(Exception):
    """A program that containers need is not installed."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The containerd of the node whose folder this is; its records and logs are the cluster's."""

    processes: Processes
    folder: Path

    @property
    def name(self) -> str:
        return f"containerd-{self.folder.name}"

    @property
    def socket(self) -> Path:
        return self.folder / "containerd.sock"

    @property
    def kubelet(self) -> Path:
        return self.folder / "k"  # short: the sockets of MPS namespaces lie deep below, and end at 107 bytes

    @property
    def cdi(self) -> Path:
        return self.folder / "cdi"

    def start(self, sandbox_image: str) -> Program:
        """Write the configuration and start."""
        if shutil.which("runc", path=_path()) is None:
            raise RuntimeMissingError("runc was not found in PATH: containers are run by it (apt-get install runc)")
        for folder in (self.cdi, self.kubelet, self.folder / "cni", self.folder / "fifo"):
            folder.mkdir(parents=True)
        (self.folder / "cni" / "10-host.conflist").write_text(CNI)
        (self.folder / "containerd.toml").write_text(self._configuration(sandbox_image))
        self._write_shield()
        return self.run()

    def run(self) -> Program:
        """Start containerd on a folder that was prepared before; ready when this returns."""
        programs = build.programs("containerd")
        shield: list[str | Path] = [
            "unshare",
            "--mount",
            "--propagation=private",
            "/bin/sh",
            "-c",
            _SHIELD,
            self.folder / "shield",
        ]
        command: list[str | Path] = [*shield, programs / "containerd", "--config", self.folder / "containerd.toml"]
        program = self.processes.start(self.name, command, {"PATH": f"{programs}:{_path()}", "HOME": "/root"})
        program.wait_ready(lambda: self._ctr("version").returncode == 0, READY_SECONDS)
        return program

    def ctr(self, *arguments: str | Path) -> str:
        """What containerd's client prints; ProgramError with its exit code and words where it fails."""
        done = self._ctr(*arguments)
        if done.returncode != 0:
            said = f"{done.stdout.strip()} {done.stderr.strip()}".strip()
            raise ProgramError(f"ctr {' '.join(map(str, arguments))} ended with {done.returncode}: {said}")
        return done.stdout

    def remove_containers(self) -> None:
        """Kill and remove every container; the kubelet must be gone, or it starts new ones."""
        for task in self.ctr("tasks", "list", "--quiet").split():
            self._ctr("tasks", "kill", "--signal=SIGKILL", "--all", task)  # it may have ended by itself
        for container in self.ctr("containers", "list", "--quiet").split():
            wait_until(lambda: self._removed(container), f"the end of container {container}")  # noqa: B023

    def stop(self) -> None:
        """End all containers, then containerd; where it died before them it is started once more to end them."""
        if self._ctr("version").returncode == 0:
            self._end()
            return
        self.processes.stop_recorded(self.name)
        again = self.run()
        try:
            self._end()
        finally:
            again.stop()

    def _end(self) -> None:
        self.remove_containers()
        # A shim ends by itself a moment after its last container.
        wait_until(lambda: not self._shims(), f"the end of the shims of {self.socket}")
        self.processes.stop_recorded(self.name)

    def _shims(self) -> list[str]:
        wanted = f"-address\0{self.socket}\0".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it may end while we look
                if wanted in (process / "cmdline").read_bytes():
                    found.append(process.name)
        return found

    def _removed(self, container: str) -> bool:
        self._ctr("tasks", "delete", "--force", container)
        self._ctr("containers", "delete", container)
        return container not in self.ctr("containers", "list", "--quiet").split()

    def _ctr(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command: Sequence[str | Path] = [
            build.programs("containerd") / "ctr",
            f"--address={self.socket}",
            f"--namespace={NAMESPACE}",
            *arguments,
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    def _write_shield(self) -> None:
        lines = [f"{self.kubelet} {self.kubelet}"]
        for path, name in SHIELDED.items():
            Path(path).mkdir(parents=True, exist_ok=True)  # a mount needs a place; the empty folder stays
            (self.folder / name).mkdir()
            lines.append(f"{self.folder / name} {path}")
        (self.folder / "tunables").mkdir()
        for setting, value in TUNABLES.items():
            file = self.folder / "tunables" / setting.replace("/", ".")
            file.write_text(f"{value}\n")
            lines.append(f"{file} /proc/sys/{setting}")
        (self.folder / "shield").write_text("".join(f"{line}\n" for line in lines))

    def _configuration(self, sandbox_image: str) -> str:
        return CONFIGURATION.format(folder=self.folder, socket=self.socket, cdi=self.cdi, sandbox=sandbox_image)


def _path() -> str:
    # runc and mount lie in sbin, which is not in everybody's PATH.
    return f"{os.environ['PATH']}:/usr/local/sbin:/usr/sbin:/sbin"


# The kubelet calls a node ready only with a network; every test pod is on the host's, so it is named and never used.
CNI = '{"cniVersion": "1.0.0", "name": "unused", "plugins": [{"type": "loopback"}]}'

CONFIGURATION = """\
version = 3
root = "{folder}/containerd"
state = "{folder}/containerd-state"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
  address = "{socket}"
[ttrpc]
  address = "{socket}.ttrpc"

[plugins."io.containerd.cri.v1.images"]
  # Copies instead of overlays: it works where the folder itself lies on an overlay, as in a container.
  snapshotter = "native"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{sandbox}"

[plugins."io.containerd.cri.v1.runtime"]
  # Without CAP_SYS_RESOURCE a negative score is refused, which ends as "can't get final child's PID from pipe: EOF".
  restrict_oom_score_adj = true
  cdi_spec_dirs = ["{cdi}"]
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["{folder}/cni"]
  conf_dir = "{folder}/cni"
"""

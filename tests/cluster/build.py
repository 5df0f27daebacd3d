"""Build the programs of a real cluster from Go modules, once per version of their inputs.

`programs(NAME)` gives the folder that holds a module's programs and builds it first where the cache has none.
It may write only below the cache folder, never into the checkout. Progress goes to stderr, one line every 15 seconds.
On the command line: `python -m tests.cluster.build --all`, or the names of modules.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
OLDEST_GO = (1, 26)
PROGRESS_SECONDS = 15.0

# `go build` of Kubernetes knows no version of its own; its release scripts hand it over so (hack/lib/version.sh).
KUBERNETES_VERSION = "1.37.2"
_VERSION_FLAGS = " ".join(
    f"-X k8s.io/component-base/version.{name}={value}"
    for name, value in {
        "gitVersion": f"v{KUBERNETES_VERSION}",
        "gitMajor": "1",
        "gitMinor": "37",
        "gitTreeState": "clean",
        "gitCommit": "release",
        "buildDate": "2026-10-01T00:00:00Z",
    }.items()
)


class BuildError(Exception):
    """A program could not be built; the text says why and what to do, in one line or with the compiler's last lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One Go module in a folder of its own and what is built from it.

    `links` are further names of the first package's program, for a program that looks at the name it is called by.
    """

    name: str
    folder: Path
    packages: tuple[str, ...] = (".",)
    flags: tuple[str, ...] = ("-ldflags", "-s -w")
    links: tuple[str, ...] = ()


MODULES = {
    module.name: module
    for module in (
        Module(
            name="kubernetes",
            folder=HERE / "kubernetes",
            flags=("-ldflags", f"-s -w {_VERSION_FLAGS}"),
            links=("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"),
        ),
        Module(
            name="containerd",
            folder=HERE / "containerd",
            packages=tuple(
                f"github.com/containerd/containerd/v2/cmd/{program}"
                for program in ("containerd", "containerd-shim-runc-v2", "ctr")
            ),
            flags=("-tags", "no_btrfs no_devmapper no_zfs", "-ldflags", "-s -w"),
        ),
        Module(name="helm", folder=HERE / "helm", packages=("helm.sh/helm/v4/cmd/helm",)),
        Module(name="cudaclient", folder=HERE / "cudaclient"),
        Module(name="peerdriver", folder=HERE.parents[1] / "benchmarks" / "peerdriver"),
        Module(name="oracle", folder=HERE.parent / "oracle" / "program"),
    )
}


def programs(name: str) -> Path:
    """The folder with the programs of the module `name`; raises BuildError."""
    return build(MODULES[name], cache_folder())


def cache_folder() -> Path:
    """Where built programs are kept: $PORTICO_CACHE, else `portico` in the user's cache (XDG Base Directory)."""
    if own := os.environ.get("PORTICO_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "portico"


def build(module: Module, cache: Path) -> Path:
    """The `bin` folder of `module` in `cache`; built if it is not there. Two builders at once build once."""
    target = cache / f"{module.name}-{digest(module)}"
    if not target.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with _lock(cache / f".{module.name}.lock", module.name):
            if not target.is_dir():
                _check_go()
                _build_into(module, target)
    return target / "bin"


def digest(module: Module) -> str:
    """Names the inputs of a build: module files, sources and flags."""
    text = hashlib.sha256(repr((module.packages, module.flags, module.links)).encode())
    for file in sorted([module.folder / "go.mod", *module.folder.glob("go.sum"), *module.folder.glob("*.go")]):
        text.update(f"\0{file.name}\0".encode())
        text.update(file.read_bytes())
    return text.hexdigest()[:16]


def _build_into(module: Module, target: Path) -> None:
    # We hold the module's lock, so a folder of this prefix was left by a build that was killed.
    prefix = f".{module.name}-"
    for left in target.parent.glob(f"{prefix}*/"):
        shutil.rmtree(left)
    work = Path(tempfile.mkdtemp(dir=target.parent, prefix=prefix))
    try:
        (work / "bin").mkdir()
        _compile(module, work)
        _link(module, work / "bin")
        work.chmod(0o755)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _compile(module: Module, work: Path) -> None:
    command = ["go", "build", "-v", "-trimpath", *module.flags, "-o", f"{work / 'bin'}/", *module.packages]
    log = work / "build.log"
    say(f"{module.name}: building from Go modules; cold, this takes minutes")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=module.folder, env={**os.environ, "CGO_ENABLED": "0"}, stdout=output, stderr=output
        )
        _watch(process, module.name, log)
    if process.returncode != 0:
        tail = "\n".join(_lines(log)[-20:])
        raise BuildError(f"{module.name} was not built: go build ended with {process.returncode}. It said:\n{tail}")


def _watch(process: subprocess.Popen[bytes], name: str, log: Path) -> None:
    begin = time.monotonic()
    try:
        while True:
            try:
                process.wait(PROGRESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                say(f"{name}: {_progress(log, begin)}")
    except BaseException:
        process.kill()
        process.wait()
        raise
    say(f"{name}: go build ended with {process.returncode}, {_progress(log, begin)}")


def _progress(log: Path, begin: float) -> str:
    lines = _lines(log)
    fetched = sum(line.startswith("go: downloading") for line in lines)
    compiled = sum(not line.startswith(("go: ", "#", "\t")) for line in lines)
    return f"{time.monotonic() - begin:.0f} s, {fetched} modules downloaded, {compiled} packages compiled"


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()


def _link(module: Module, folder: Path) -> None:
    if module.links:
        (program,) = folder.iterdir()
        for name in module.links:
            (folder / name).symlink_to(program.name)


def _check_go() -> None:
    wanted = ".".join(map(str, OLDEST_GO))
    go = shutil.which("go")
    if go is None:
        raise BuildError(f"go was not found in PATH: the cluster's programs are built with Go {wanted} or newer")
    said = subprocess.run([go, "env", "GOVERSION"], cwd="/", capture_output=True, text=True, check=False)
    version = re.match(r"go(\d+)\.(\d+)", said.stdout)
    if version is None:
        raise BuildError(f"{go} does not say its version: {(said.stderr or said.stdout).strip()}")
    if (int(version[1]), int(version[2])) < OLDEST_GO:
        raise BuildError(f"{go} is {said.stdout.strip()}: the cluster's programs are built with Go {wanted} or newer")


@contextmanager
def _lock(file: Path, name: str) -> Iterator[None]:
    with file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{name}: waiting for another build of it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.cluster.build", description="Build the cluster's programs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(MODULES)}")
    parser.add_argument("--all", action="store_true", help="every module")
    arguments = parser.parse_args()
    names = list(MODULES) if arguments.all else arguments.names
    if not names or not set(names) <= MODULES.keys():
        parser.error(f"name modules of {', '.join(MODULES)}, or say --all")
    try:
        for name in names:
            print(programs(name))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

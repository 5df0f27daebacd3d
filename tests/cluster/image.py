"""The one image of test pods: a static busybox with all of its applets, plus any files a test wants in it.

Written as an OCI image layout in a tar (OCI image specification, image-layout.md), the form that `ctr images import`
reads. Pure but for reading the files that go in.
"""

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEDIA = "application/vnd.oci.image"
FOLDERS = ("bin", "etc", "tmp", "dev", "proc", "sys", "root")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # `uname -m` to Go's names, which OCI uses


class ImageError(Exception):
    """There is no busybox to make an image of."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of an archive; a symbolic link where `link` is set."""

    path: str
    data: bytes = b""
    mode: int = 0o644
    link: str = ""


@dataclass(frozen=True, slots=True)
class Blob:
    """Content that is named by its hash."""

    media: str
    data: bytes

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def descriptor(self, **more: Any) -> dict[str, Any]:
        return {"mediaType": self.media, "digest": f"sha256:{self.hash}", "size": len(self.data), **more}


def write_image(name: str, archive: Path, files: Mapping[str, Path]) -> None:
    """Write the image `name`; `files` are further executables, path in the image to file here."""
    entries = [*_busybox(), *(Entry(path.lstrip("/"), file.read_bytes(), 0o755) for path, file in files.items())]
    layer = Blob(f"{MEDIA}.layer.v1.tar", _tar(FOLDERS, entries))
    config = _json_blob("config.v1+json", _config(layer))
    manifest = _json_blob(
        "manifest.v1+json",
        {"schemaVersion": 2, "config": config.descriptor(), "layers": [layer.descriptor()]},
    )
    named = manifest.descriptor(annotations={"io.containerd.image.name": name})
    index = json.dumps({"schemaVersion": 2, "manifests": [named]}).encode()
    layout = [Entry("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), Entry("index.json", index)]
    blobs = [Entry(f"blobs/sha256/{blob.hash}", blob.data) for blob in (layer, config, manifest)]
    archive.write_bytes(_tar(("blobs", "blobs/sha256"), [*layout, *blobs]))


def _busybox() -> list[Entry]:
    found = shutil.which("busybox")
    if found is None:
        raise ImageError("busybox was not found in PATH: the test image is made of it (apt-get install busybox-static)")
    data = Path(found).read_bytes()
    if b"/ld-linux" in data or b"/ld-musl" in data:
        raise ImageError(f"{found} needs shared libraries: the test image wants a static one (busybox-static)")
    applets = subprocess.run([found, "--list"], check=True, capture_output=True, text=True).stdout.split()
    links = [Entry(f"bin/{applet}", link="busybox") for applet in applets if applet != "busybox"]
    passwd = Entry("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n")
    return [Entry("bin/busybox", data, 0o755), *links, passwd]


def _config(layer: Blob) -> dict[str, Any]:
    return {
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        # The sandbox of every pod is this image too, and sleeps for as long as the pod lives.
        "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sleep", "2147483647"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.hash}"]},
    }


def _json_blob(kind: str, document: Mapping[str, Any]) -> Blob:
    media = f"{MEDIA}.{kind}"
    typed = {"mediaType": media, **document} if "schemaVersion" in document else document
    return Blob(media, json.dumps(typed).encode())


def _tar(folders: Iterable[str], entries: Iterable[Entry]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for folder in folders:
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(info)
        for entry in entries:
            archive.addfile(_member(entry), io.BytesIO(entry.data))
    return buffer.getvalue()


def _member(entry: Entry) -> tarfile.TarInfo:
    info = tarfile.TarInfo(entry.path)
    info.size, info.mode = len(entry.data), entry.mode
    if entry.link:
        info.type, info.linkname = tarfile.SYMTYPE, entry.link
    return info

"""One certificate authority per cluster: it signs for the servers and for the people who sign in.

Kubernetes reads a client certificate's common name as the user and its organizations as the groups
(kubernetes.io, "Authenticating", X.509 client certificates). All work is done by the `openssl` program, 3.0 or newer.
"""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.cluster.access import ClientCertificate

DAYS = "30"


class CertificateError(Exception):
    """openssl is missing or refused; the text holds its own words."""


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority in a folder; its key never leaves it."""

    folder: Path

    @property
    def certificate(self) -> Path:
        return self.folder / "ca.crt"

    def create(self) -> None:
        self.folder.mkdir(mode=0o700)
        usage = "keyUsage=critical,digitalSignature,keyCertSign,cRLSign"
        self._make("ca", "/CN=portico-test-ca", ["basicConstraints=critical,CA:TRUE", usage], signed=False)

    def server(self, names: Sequence[str]) -> ClientCertificate:
        """A certificate for servers on these names: `DNS:localhost`, `IP:127.0.0.1`."""
        extensions = [f"subjectAltName={','.join(names)}", "extendedKeyUsage=serverAuth"]
        return self._make("server", "/CN=portico-test-server", extensions)

    def client(self, name: str, groups: Sequence[str]) -> ClientCertificate:
        """A certificate that makes its holder the user `name` in `groups`."""
        subject = "".join(f"/O={_escaped(group)}" for group in groups) + f"/CN={_escaped(name)}"
        return self._make(f"user-{quote(name, safe='')}", subject, ["extendedKeyUsage=clientAuth"])

    def key_pair(self, stem: str) -> ClientCertificate:
        """A key that signs ServiceAccount tokens, with a certificate around its public half."""
        return self._make(stem, f"/CN={stem}", [])

    def _make(self, stem: str, subject: str, extensions: Sequence[str], *, signed: bool = True) -> ClientCertificate:
        certificate, key = self.folder / f"{stem}.crt", self.folder / f"{stem}.key"
        command: list[str | Path] = ["openssl", "req", "-x509", "-utf8", "-nodes", "-days", DAYS, "-subj", subject]
        command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", key, "-out", certificate]
        if signed:
            command += ["-CA", self.certificate, "-CAkey", self.folder / "ca.key"]
            extensions = ["basicConstraints=critical,CA:FALSE", *extensions]
        _openssl([*command, *(part for extension in extensions for part in ("-addext", extension))])
        return ClientCertificate(certificate, key)


def _escaped(text: str) -> str:
    # openssl-req(1): in -subj a slash begins a new part and a plus adds to one; a backslash takes that meaning away.
    return re.sub(r"([/+\\=])", r"\\\1", text)


def _openssl(command: Sequence[str | Path]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise CertificateError("openssl was not found in PATH: it makes the test cluster's certificates") from error
    except subprocess.CalledProcessError as error:
        raise CertificateError(f"openssl made no certificate: {error.stderr.strip()}") from error

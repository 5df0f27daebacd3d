"""Ways into an API server: where it is, who asks, and the kubeconfig that says both.

Values and their wire forms only; nothing here opens a connection.
"""

import base64
import json
import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate and its key, both PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A ServiceAccount's token."""

    token: str


@dataclass(frozen=True, slots=True)
class Access:
    """One user's way into one API server. `host` and `port` are always on loopback, `ca` verifies the server."""

    host: str
    port: int
    ca: Path
    user: str
    credential: ClientCertificate | BearerToken

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if isinstance(self.credential, ClientCertificate):
            context.load_cert_chain(self.credential.certificate, self.credential.key)
        return context

    def headers(self) -> dict[str, str]:
        if isinstance(self.credential, BearerToken):
            return {"Authorization": f"Bearer {self.credential.token}"}
        return {}

    def kubeconfig(self) -> str:
        """Text of a kubeconfig file that needs no other file; JSON, which is YAML too."""
        cluster = {"server": self.url, "certificate-authority-data": _base64(self.ca)}
        context = {"cluster": "portico-test", "user": self.user, "namespace": "default"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "portico-test", "cluster": cluster}],
            "users": [{"name": self.user, "user": self._user_fields()}],
            "contexts": [{"name": "portico-test", "context": context}],
            "current-context": "portico-test",
        }
        return json.dumps(config, indent=2)

    def _user_fields(self) -> dict[str, str]:
        match self.credential:
            case BearerToken(token):
                return {"token": token}
            case ClientCertificate(certificate, key):
                return {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}


def _base64(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()

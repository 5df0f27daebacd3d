"""The way to an API server as a node has it: the pod's ServiceAccount, or a plain kubeconfig file.

It reads what nodes need and refuses the rest by name: no plug-ins that are run for a token, no proxies. The portal's
way is `packaged`, which knows all of it and costs a process 17 MiB more.
"""

from __future__ import annotations

import binascii
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from dra.kube.calls import Connections
from dra.kube.connections import KeptConnections
from dra.kube.errors import UnreachableError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # where the kubelet mounts it
_NO = "no usable configuration for a cluster"


@dataclass(frozen=True, slots=True)
class Access:
    """An API server's address, connections that trust it, and what gives the Authorization header ("": none).

    `base` is the address's own path, which comes before a request's.
    """

    server: str
    connections: Connections
    authorization: Callable[[], str]
    base: str


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _User(msgspec.Struct, frozen=True, rename="kebab"):
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: dict[str, object] | None = None
    auth_provider: dict[str, object] | None = None
    username: str = ""


class _Context(msgspec.Struct, frozen=True):
    cluster: str
    user: str


class _NamedCluster(_Named, frozen=True):
    cluster: _Cluster


class _NamedUser(_Named, frozen=True):
    user: _User


class _NamedContext(_Named, frozen=True):
    context: _Context


class _Kubeconfig(msgspec.Struct, frozen=True, rename="kebab"):
    current_context: str
    clusters: tuple[_NamedCluster, ...]
    users: tuple[_NamedUser, ...]
    contexts: tuple[_NamedContext, ...]


def of_pod(environment: Mapping[str, str], account: Path = SERVICE_ACCOUNT) -> Access:
    """The pod's own ServiceAccount ("Accessing the Kubernetes API from a Pod"); UnreachableError outside of one."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise UnreachableError(
            f"{_NO}: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this is no pod: name a "
            "kubeconfig file"
        )
    token = _TokenFile(account / "token")
    try:
        tls = ssl.create_default_context(cafile=account / "ca.crt")
        token()
    except OSError as error:
        raise UnreachableError(f"{_NO}: the ServiceAccount in {account} can't be used: {error}") from error
    return _access(f"https://{f'[{host}]' if ':' in host else host}:{port}", tls, token)


def of_kubeconfig(path: Path) -> Access:
    """The current context of a kubeconfig file; UnreachableError where it has none that can be used."""
    try:
        config = msgspec.yaml.decode(path.read_bytes(), type=_Kubeconfig)
        context = next(each.context for each in config.contexts if each.name == config.current_context)
        cluster = next(each.cluster for each in config.clusters if each.name == context.cluster)
        user = next(each.user for each in config.users if each.name == context.user)
        _check(cluster, user)
        token = _token_of(user, path.parent)
        token()
        return _access(cluster.server.rstrip("/"), _tls(cluster, user, path.parent), token)
    except StopIteration:
        reason = "current-context, or the cluster or user that it names, is not in it"
        raise UnreachableError(f"{_NO}: {path}: {reason}") from None
    except (msgspec.MsgspecError, OSError, ValueError) as error:
        raise UnreachableError(f"{_NO}: {path}: {error}") from error


def _check(cluster: _Cluster, user: _User) -> None:
    """ValueError for what would change who is asked, or as whom, and is not known here."""
    fields = {
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "tls-server-name": cluster.tls_server_name,
        "proxy-url": cluster.proxy_url,
        "exec": user.exec is not None,
        "auth-provider": user.auth_provider is not None,
        "username": user.username,
    }
    if found := [name for name, is_set in fields.items() if is_set]:
        raise ValueError(f"{', '.join(found)} can't be used here: give an authority, a token or a certificate")


def _tls(cluster: _Cluster, user: _User, folder: Path) -> ssl.SSLContext:
    """Trust in the cluster's authority alone, where it names one, and our certificate, where we have one."""
    data = _decoded(cluster.certificate_authority_data).decode()
    file = folder / cluster.certificate_authority if cluster.certificate_authority and not data else None
    context = ssl.create_default_context(cafile=file, cadata=data or None)
    if user.client_certificate_data:
        with tempfile.TemporaryDirectory() as kept:  # OpenSSL takes a chain from files only
            certificate, key = Path(kept, "certificate"), Path(kept, "key")
            certificate.write_bytes(_decoded(user.client_certificate_data))
            key.write_bytes(_decoded(user.client_key_data))
            context.load_cert_chain(certificate, key)
    elif user.client_certificate:
        context.load_cert_chain(folder / user.client_certificate, folder / user.client_key)
    return context


def _decoded(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error as error:
        raise ValueError(f"a field that ends in -data is not base64: {error}") from error


def _token_of(user: _User, folder: Path) -> Callable[[], str]:
    if user.token:
        header = f"Bearer {user.token}"
        return lambda: header
    return _TokenFile(folder / user.token_file) if user.token_file else str


def _access(server: str, tls: ssl.SSLContext, authorization: Callable[[], str]) -> Access:
    return Access(server, KeptConnections(server, tls), authorization, urlsplit(server).path)


class _TokenFile:
    """A token that others replace now and then, long before its end: the kubelet does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._header = ""

    def __call__(self) -> str:
        """The header by the file as it is now. One that is gone leaves the last token; OSError where there was none."""
        try:
            found = self._path.stat()
            seen = found.st_ino, found.st_mtime_ns
            if seen != self._seen:
                self._header, self._seen = f"Bearer {self._path.read_text().strip()}", seen
        except OSError:
            if self._seen is None:
                raise
        return self._header

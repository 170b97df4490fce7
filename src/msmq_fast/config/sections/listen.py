"""Sections [listen.*]: the addresses and ports of the server, and the limits of the connections to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from msmq_fast.config import kinds
from msmq_fast.config.kinds import Preferred, key

__all__ = [
    "ListenAdmin",
    "ListenApp",
    "ListenConfig",
    "ListenHttp",
    "ListenHttps",
    "ListenMqqb",
    "ListenRpc",
]

_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104
_THIS_COMPUTER = ("127.0.0.1", "::1")
_CONNECTIONS = kinds.integer(1, 1_000_000)


@dataclass(slots=True)
class ListenMqqb:
    """Section [listen.mqqb]: other queue managers (MS-MQQB)."""

    host: tuple[str, ...] = key(kinds.TEXTS, _EVERYWHERE, "addresses of the message and ping listeners")
    port: int | None = key(kinds.port(), 1801, "TCP port for messages")
    ping_port: int | None = key(kinds.port(), 3527, "UDP port for the ping")
    max_connections: int = key(_CONNECTIONS, 4096, "maximum number of open connections", live=True)
    max_connections_per_address: int = key(
        _CONNECTIONS, 1024, "maximum number of open connections from one client address", live=True
    )


@dataclass(slots=True)
class ListenApp:
    """Section [listen.app]: programs, by the application protocol.

    The Unix socket gives access to every user that can open it: `socket_mode = "0660"` admits the group of
    the server. Programs over TCP present a token, which `msmq-fast user token` makes. Without
    `tls_certificate` the token and the messages cross the network in clear text.
    """

    socket: str = key(
        kinds.SOCKET,
        "",
        'path of the Unix socket; empty: app.sock in the data directory; "off": no Unix socket',
    )
    socket_mode: int = key(kinds.file_mode(), 0o600, "permissions of the Unix socket")
    host: tuple[str, ...] = key(kinds.TEXTS, _THIS_COMPUTER, "addresses of the TCP listener")
    port: int | None = key(kinds.port(), None, "TCP port")
    tls_certificate: Path | None = key(
        kinds.PATH, None, "certificate chain (PEM) of the TCP listener, which then speaks TLS only", live=True
    )
    tls_key: Path | None = key(kinds.PATH, None, "private key (PEM) of the certificate", live=True)
    max_connections: int = key(
        _CONNECTIONS,
        1024,
        "maximum number of open connections, over the Unix socket and TCP together",
        live=True,
    )


@dataclass(slots=True)
class ListenAdmin:
    """Section [listen.admin]: health, metrics, the management API and the bulk API, over HTTP."""

    host: tuple[str, ...] = key(kinds.TEXTS, _THIS_COMPUTER, "addresses of the listener")
    port: int | None = key(kinds.port(), 1802, "TCP port")
    tls_certificate: Path | None = key(
        kinds.PATH, None, "certificate chain (PEM) of the listener, which then speaks HTTPS only", live=True
    )
    tls_key: Path | None = key(kinds.PATH, None, "private key (PEM) of the certificate", live=True)
    access: str = key(
        kinds.choice("administrators", "loopback", "token", "off"),
        "administrators",
        "callers of the management API that are admitted without a token. administrators: administrators and "
        "readers of this computer; loopback: all users of this computer; token: none; off: the API is off",
    )
    open_metrics: bool = key(
        kinds.FLAG,
        False,
        "whether other computers may read /metrics, with the names of all queues, without a token",
    )
    max_connections: int = key(
        _CONNECTIONS, 128, "maximum number of open connections, bulk readers included", live=True
    )


@dataclass(slots=True)
class ListenHttp:
    """Section [listen.http]: messages over HTTP (SRMP)."""

    host: tuple[str, ...] = key(kinds.TEXTS, (), "addresses of the listener; empty: those of [listen.mqqb]")
    port: int | None = key(kinds.port(), None, "TCP port, usually 80")
    max_connections: int = key(
        _CONNECTIONS, 4096, "maximum number of open connections, over HTTP and HTTPS together", live=True
    )
    max_connections_per_address: int = key(
        _CONNECTIONS,
        1024,
        "maximum number of open connections from one address, over HTTP and HTTPS together",
        live=True,
    )


@dataclass(slots=True)
class ListenHttps:
    """Section [listen.https]: messages over HTTPS (SRMP).

    The limits on connections in [listen.http] apply to HTTP and HTTPS together.
    """

    host: tuple[str, ...] = key(kinds.TEXTS, (), "addresses of the listener; empty: those of [listen.mqqb]")
    port: int | None = key(
        kinds.port(),
        Preferred(443),
        "TCP port; without tls_certificate the server does not listen. If the default port is in use or"
        " forbidden, the server logs a warning and runs without HTTPS; a port that is set must be free",
    )
    tls_certificate: Path | None = key(kinds.PATH, None, "certificate chain (PEM)", live=True)
    tls_key: Path | None = key(kinds.PATH, None, "private key (PEM) of the certificate", live=True)
    tls_more_certificates: tuple[str, ...] = key(
        kinds.PATHS,
        (),
        "files (PEM), each with a certificate chain and its key, for clients that ask for another name (SNI)",
    )
    tls_client_ca: Path | None = key(
        kinds.PATH,
        None,
        "certificate authorities (PEM), one of which must have signed the certificate of a client; "
        "empty: clients need no certificate",
    )


@dataclass(slots=True)
class ListenRpc:
    """Section [listen.rpc]: remote readers and dependent clients (DCE/RPC)."""

    host: tuple[str, ...] = key(kinds.TEXTS, (), "addresses of the listeners; empty: those of [listen.mqqb]")
    port: int | None = key(
        kinds.port(),
        2103,
        "TCP port of RemoteRead, qmcomm, qmcomm2 and qmmgmt; if it is in use, the server tries the port "
        "11 higher, then 22 higher, and so on",
    )
    qm2qm_port: int | None = key(
        kinds.port(),
        2105,
        "TCP port of qm2qm; if it is in use, the server tries the port 11 higher, then 22 higher, and so on",
    )
    epm_port: int | None = key(
        kinds.port(),
        135,
        "TCP port of the endpoint mapper; if it cannot be opened, the server logs a warning and runs "
        "without an endpoint mapper",
    )
    max_connections: int = key(
        _CONNECTIONS, 4096, "maximum number of open connections at each port", live=True
    )
    max_connections_per_address: int = key(
        _CONNECTIONS, 1024, "maximum number of open connections from one address, at each port", live=True
    )


@dataclass(slots=True)
class ListenConfig:
    """The listeners of the server."""

    mqqb: ListenMqqb = field(default_factory=ListenMqqb)
    app: ListenApp = field(default_factory=ListenApp)
    admin: ListenAdmin = field(default_factory=ListenAdmin)
    http: ListenHttp = field(default_factory=ListenHttp)
    https: ListenHttps = field(default_factory=ListenHttps)
    rpc: ListenRpc = field(default_factory=ListenRpc)

    def hosts(self, listener: ListenHttp | ListenHttps | ListenRpc) -> tuple[str, ...]:
        """Return the addresses of a listener: its `host` if that is not empty, else those of
        [listen.mqqb].
        """
        return listener.host or self.mqqb.host

    @property
    def message_hosts(self) -> tuple[str, ...]:
        """Return the addresses of all listeners that receive messages from other computers."""
        return tuple(dict.fromkeys((*self.mqqb.host, *self.http.host, *self.https.host)))

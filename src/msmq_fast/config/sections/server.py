"""Section [server]: the identity of this queue manager, its data and its listeners."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key

__all__ = ["ServerConfig"]


@dataclass(slots=True)
class ServerConfig:
    """Section [server]: the identity of this queue manager, its data and its listeners."""

    name: str = key(name_kinds.COMPUTER_NAME, "", "computer name; empty: the host name")
    domain: str = key(name_kinds.COMPUTER, "", "DNS domain, for the qualified name that the directory shows")
    aliases: tuple[str, ...] = key(name_kinds.COMPUTERS, (), "more names that mean this computer")
    advertised_address: str = key(
        name_kinds.COMPUTER,
        "",
        "address or host name at which others reach this server, if a NAT hides its own",
    )
    guid: str = key(
        kinds.GUID, "", "queue-manager GUID to take over when the store is created; empty: a new one"
    )
    data: Path | None = key(kinds.PATH, None, "data directory; empty: the user's data directory")  # noqa: RUF009
    host: tuple[str, ...] = key(
        kinds.TEXTS,
        ("0.0.0.0", "::"),  # noqa: S104
        "addresses of the message and ping listeners",
    )
    port: int | None = key(kinds.port(), 1801, "TCP port of MS-MQQB")
    ping_port: int | None = key(kinds.port(), 3527, "UDP port of the MS-MQQB ping")
    app_socket: str = key(kinds.TEXT, "", 'Unix socket for programs; empty: app.sock in data; "off": none')
    app_socket_mode: int = key(kinds.file_mode(), 0o600, "permissions of that socket")
    app_host: tuple[str, ...] = key(
        kinds.TEXTS, ("127.0.0.1", "::1"), "addresses of the TCP listener for programs"
    )
    app_port: int | None = key(kinds.port(), None, "TCP port for programs")
    app_tls_certificate: Path | None = key(kinds.PATH, None, "certificate chain (PEM) of the TCP listener")  # noqa: RUF009
    app_tls_key: Path | None = key(kinds.PATH, None, "private key (PEM) of the TCP listener")  # noqa: RUF009
    admin_host: tuple[str, ...] = key(kinds.TEXTS, ("127.0.0.1", "::1"), "addresses of the admin listener")
    admin_port: int | None = key(kinds.port(), 1802, "HTTP port of health, metrics and the bulk API")
    admin_tls_certificate: Path | None = key(  # noqa: RUF009
        kinds.PATH, None, "certificate chain (PEM) of the admin listener, which then speaks HTTPS only"
    )
    admin_tls_key: Path | None = key(kinds.PATH, None, "private key (PEM) of the admin listener")  # noqa: RUF009
    http_port: int | None = key(kinds.port(), None, "TCP port for messages over HTTP (SRMP), usually 80")
    https_port: int | None = key(
        kinds.port(),
        kinds.Preferred(443),
        "TCP port for messages over HTTPS; unless it is set, none without a certificate, or while 443 is "
        "taken or refused",
    )
    https_certificate: Path | None = key(kinds.PATH, None, "certificate chain (PEM) of that port")  # noqa: RUF009
    https_key: Path | None = key(kinds.PATH, None, "private key (PEM) of that port")  # noqa: RUF009
    https_more_certificates: tuple[str, ...] = key(
        kinds.TEXTS,
        (),
        "files (PEM) with chain and key, for clients that ask for other names (SNI) than that has",
    )
    https_client_ca: Path | None = key(  # noqa: RUF009
        kinds.PATH, None, "certificates (PEM) that clients there must have one of; empty: none is asked for"
    )
    rpc_host: tuple[str, ...] = key(kinds.TEXTS, (), "addresses of the RPC listeners; empty: those of host")
    rpc_port: int | None = key(
        kinds.port(), 2103, "TCP port of RemoteRead, qmcomm and qmcomm2; 11 more while it is taken"
    )
    qm2qm_port: int | None = key(kinds.port(), 2105, "TCP port of qm2qm; 11 more while it is taken")
    epm_port: int | None = key(
        kinds.port(), 135, "TCP port of the RPC endpoint mapper; without the right to it, there is none"
    )
    drain_timeout: float = key(kinds.duration(0, 3600), 10.0, "how long a stop may take before it is forced")

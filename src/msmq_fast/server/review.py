"""What a configuration opens to whom, and which key closes it (`msmq-fast security review`).

To add an entry, append an `Opening` in the function of its section. An entry describes what the configuration
allows, whether or not the server runs; the descriptors of existing queues are shown by `msmq-fast acl show`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Any, Final

from msmq_fast.qm.settings import UNLIMITED
from msmq_fast.server.config import Config
from msmq_fast.server.quotas import computer_quota, deadletter_quota, journal_quota

__all__ = ["Opening", "State", "review", "rows", "summary"]

_WEAK_HASHES: Final = ("md2", "md4", "md5", "sha1")
_ALL: Final = "all addresses"


class State(StrEnum):
    """How far something is open."""

    OPEN = "open"
    LIMITED = "limited"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Opening:
    """One thing that somebody may do. `key` is the setting that closes it, or opens it where it is closed."""

    subject: str
    to: str
    state: State
    what: str
    key: str
    port: int | None = None


def review(config: Config) -> list[Opening]:
    """Everything that the configuration decides: listeners, rights, quotas, algorithms."""
    return [
        *_sessions(config),
        *_http(config),
        *_rpc(config),
        *_programs(config),
        *_rights(config),
        *_quotas(config),
        *_algorithms(config),
    ]


def rows(config: Config) -> list[dict[str, Any]]:
    """The same as plain values, for tables and JSON."""
    return [{**asdict(opening), "state": str(opening.state)} for opening in review(config)]


def summary(config: Config) -> str:
    """One line for the log at the start: the profile, and what is open."""
    found = [opening for opening in review(config) if opening.state is State.OPEN]
    named = [f"{opening.subject} {opening.port or ''}".rstrip() for opening in found]
    if config.security.anonymous_may_send:
        named.append("anonymous senders may send to new queues")
    shown = ", ".join(named) or "nothing"
    return f"security: {config.security.profile} profile, open: {shown}; see msmq-fast security review"


def _reach(hosts: tuple[str, ...]) -> tuple[str, bool]:
    """The addresses of a listener as text, and whether other computers reach them."""
    outside = [host for host in hosts if not _is_loopback(host)]
    if any(host in ("0.0.0.0", "::") for host in outside):  # noqa: S104 - named, not bound
        return _ALL, True
    return ", ".join(hosts), bool(outside)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def _listener(
    subject: str, port: int | None, hosts: tuple[str, ...], what: str, key: str, *, limited: bool = False
) -> Opening:
    """A listener that talks to callers who prove nothing."""
    if port is None:
        return Opening(subject, "nobody", State.CLOSED, "no listener", key)
    where, exposed = _reach(hosts)
    state = State.LIMITED if limited or not exposed else State.OPEN
    to = "other computers" if exposed else "this computer"
    return Opening(subject, to, state, f"{what} at port {port or 'any'} of {where}", key, port)


def _sessions(config: Config) -> Iterator[Opening]:
    server, allow = config.server, config.mqqb.allow
    hardened = config.queue_manager.hardened
    anonymous = "senders without a proven name" if config.security.anonymous_may_send else "messages"
    what = f"{anonymous}, from {', '.join(allow) if allow else 'everywhere'},"
    yield _listener(
        "MS-MQQB (TCP)",
        None if hardened else server.port,
        server.host,
        what,
        "mqqb.allow: addresses of the queue managers that may open sessions",
        limited=bool(allow),
    )
    yield _listener(
        "ping (UDP)",
        None if hardened else server.ping_port,
        server.host,
        "the GUID of this queue manager",
        'server.ping_port = "off", or mqqb.allow',
        limited=bool(allow),
    )
    yield Opening(
        "multicast (PGM)",
        "other computers" if config.pgm.enabled else "nobody",
        State.OPEN if config.pgm.enabled else State.CLOSED,
        "messages to queues with a multicast address" if config.pgm.enabled else "no listener",
        "pgm.enabled = false",
    )


def _http(config: Config) -> Iterator[Opening]:
    server = config.server
    yield _listener(
        "messages over HTTP",
        server.http_port,
        server.host,
        "senders without a proven name",
        'server.http_port = "off"',
    )
    with_client = server.https_client_ca is not None
    yield _listener(
        "messages over HTTPS",
        server.https_port if server.https_certificate is not None else None,
        server.host,
        "senders with a client certificate" if with_client else "senders without a proven name",
        'server.https_client_ca, or server.https_port = "off"',
        limited=with_client,
    )


def _rpc(config: Config) -> Iterator[Opening]:
    server, rpc = config.server, config.rpc
    hosts = server.rpc_host or server.host
    off = server.rpc_port is None or config.queue_manager.hardened
    callers = "callers without a name" if rpc.anonymous else "callers with a name"
    served = off or not (rpc.remote_read or rpc.qmcomm)
    yield _listener(
        "remote read (RPC)",
        None if served else server.rpc_port,
        hosts,
        f"{callers}: RemoteRead from level {rpc.remote_read_level}, qmcomm from {rpc.qmcomm_level},",
        'server.rpc_port = "off", or rpc.anonymous = false',
        limited=not rpc.anonymous,
    )
    yield _listener(
        "remote read, older (qm2qm)",
        None if off or not rpc.qm2qm else server.qm2qm_port,
        hosts,
        f"{callers}, from level {rpc.qm2qm_level},",
        'server.qm2qm_port = "off", or rpc.anonymous = false',
        limited=not rpc.anonymous,
    )
    yield _listener(
        "RPC endpoint mapper",
        None if off or rpc.epm != "own" else server.epm_port,
        hosts,
        "the ports of the interfaces",
        'server.epm_port = "off"',
    )


def _programs(config: Config) -> Iterator[Opening]:
    server = config.server
    if config.app_socket is None:
        yield Opening("programs (Unix socket)", "nobody", State.CLOSED, "no listener", "server.app_socket")
    else:
        shared = server.app_socket_mode & 0o077
        yield Opening(
            "programs (Unix socket)",
            "local users" if shared else "root and the user of the server",
            State.LIMITED,
            f"{config.app_socket}, mode {server.app_socket_mode:04o}",
            'server.app_socket_mode = "0600"',
        )
    where, exposed = _reach(server.app_host)
    clear = server.app_tls_certificate is None
    if server.app_port is None:
        yield Opening("programs (TCP)", "nobody", State.CLOSED, "no listener", "server.app_port")
    else:
        yield Opening(
            "programs (TCP)",
            "callers with a token",
            State.OPEN if exposed and clear else State.LIMITED,
            f"{'tokens in clear text' if clear else 'TLS'} at port {server.app_port} of {where}",
            "server.app_tls_certificate and server.app_tls_key",
        )
    figures = "health, metrics, names and counts of all queues"
    yield _listener("admin port", server.admin_port, server.admin_host, figures, "server.admin_host")
    yield _bulk(config)


def _bulk(config: Config) -> Opening:
    access, key = config.bulk.access, 'bulk.access = "token", or "off"'
    to = {
        "off": "nobody",
        "token": "callers with a token",
        "administrators": "callers with a token; administrators and readers of this computer",
        "loopback": "callers with a token; all users of this computer",
    }[access if config.server.admin_port is not None else "off"]
    state = State.CLOSED if to == "nobody" else State.LIMITED
    _, exposed = _reach(config.server.admin_host)
    if state is State.LIMITED and exposed and config.server.admin_tls_certificate is None and config.users:
        return Opening(
            "bulk API",
            to,
            State.OPEN,
            "tokens in clear text",
            "server.admin_tls_certificate and server.admin_tls_key",
        )
    return Opening("bulk API", to, state, "read, lease and publish, as the lists of the queues allow", key)


def _rights(config: Config) -> Iterator[Opening]:
    security = config.security
    spec = security.default_queue_acl == "spec"
    yield Opening(
        "new queues: send",
        "everybody" if security.anonymous_may_send else "named senders",
        State.LIMITED,
        "Everyone and ANONYMOUS LOGON may send" if security.anonymous_may_send else "as each list grants",
        "security.anonymous_may_send = false",
    )
    yield Opening(
        "new queues: receive, change, delete",
        "Everyone" if spec else "owner and administrators",
        State.OPEN if spec else State.LIMITED,
        "every caller with a name" if spec else "others look and send",
        'security.default_queue_acl = "restrictive"',
    )
    yield Opening(
        "create queues",
        "Everyone" if security.everyone_creates_queues else "administrators",
        State.OPEN if security.everyone_creates_queues else State.LIMITED,
        "every caller with a name" if security.everyone_creates_queues else "others are refused",
        "security.everyone_creates_queues = false",
    )
    claimed = security.amb23_unsigned_sid == "use"
    yield Opening(
        "sender id of unsigned messages",
        "other computers" if claimed else "nobody",
        State.OPEN if claimed else State.CLOSED,
        "counts as the sender" if claimed else "counts for nothing",
        'security.amb23_unsigned_sid = "anonymous"',
    )
    told = config.mqqb.insecure_nacks
    yield Opening(
        "reasons of refusals",
        "other computers" if told else "nobody",
        State.OPEN if told else State.CLOSED,
        "strangers learn which queues exist" if told else "strangers learn nothing of queues",
        "mqqb.insecure_nacks = false",
    )


def _quotas(config: Config) -> Iterator[Opening]:
    for subject, quota, key in (
        ("all messages", computer_quota(config), "queue_manager.quota_kb"),
        ("computer journal", journal_quota(config), "queue_manager.journal_quota_kb"),
        ("each dead-letter queue", deadletter_quota(config), "queue_manager.deadletter_quota_kb"),
    ):
        endless = quota == UNLIMITED
        yield Opening(
            f"quota of {subject}",
            "senders",
            State.OPEN if endless else State.LIMITED,
            f"only store.disk_low ({config.store.disk_low >> 20} MiB left)" if endless else f"{quota} KB",
            key,
        )
    limits = config.limits
    yield Opening(
        "connections to MS-MQQB",
        "other computers",
        State.LIMITED,
        f"{limits.sessions_per_address} from one address, {limits.connections} in all",
        "limits.sessions_per_address, limits.connections",
    )


def _algorithms(config: Config) -> Iterator[Opening]:
    protection = config.protection
    weak = [name for name in protection.accept_hashes if name in _WEAK_HASHES]
    yield _weakness("signatures: hashes", weak, 'protection.accept_hashes = ["sha512"]')
    msmq1 = ["MSMQ 1.0"] if protection.accept_msmq1 else []
    yield _weakness("signatures: versions", msmq1, "protection.accept_msmq1 = false")
    keys = [name for name in protection.providers if name != "advanced"]
    if protection.rsa_bits == "1024":
        keys.append("RSA 1024")
    yield _weakness("encryption: key pairs", keys, 'protection.providers = ["advanced"]')


def _weakness(subject: str, found: list[str], key: str) -> Opening:
    if not found:
        return Opening(subject, "nobody", State.CLOSED, "no weak algorithm", key)
    return Opening(subject, "peers that use them", State.LIMITED, ", ".join(found), key)

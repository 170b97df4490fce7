"""Lists the operations and quotas that a configuration opens, the callers to which it opens them, and the key
that restricts each of them (`msmq-fast security review`).

To add an entry, append an `Opening` in the function of its section. An entry describes what the configuration
allows, whether or not the server runs; the descriptors of existing queues are shown by `msmq-fast acl show`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Any, Final

from msmq_fast.config.sections import Config
from msmq_fast.qm.settings import UNLIMITED
from msmq_fast.server.credentials import SHORT_TOKEN
from msmq_fast.server.quotas import computer_quota, deadletter_quota, journal_quota

__all__ = ["NOBODY", "Opening", "State", "review", "rows", "summary"]

NOBODY: Final = "nobody"

_WEAK_HASHES: Final = ("md2", "md4", "md5", "sha1")
_ALL: Final = "all addresses"


class State(StrEnum):
    """Which callers the configuration lets perform an operation."""

    OPEN = "open"  # to unauthenticated callers, to all users of this computer, or by a broken method
    LIMITED = "limited"  # to callers that the configuration names, or up to a limit
    CLOSED = "closed"  # only owners, administrators and the server's own user


@dataclass(frozen=True, slots=True)
class Opening:
    """One operation that a configuration opens to callers, or keeps closed.

    `key` is the setting, with a value, that disables or restricts the operation; for a closed operation, the
    setting that keeps it closed.
    """

    subject: str
    to: str
    state: State
    what: str
    key: str
    port: int | None = None


def review(config: Config) -> list[Opening]:
    """Return all openings of a configuration: listeners, rights, quotas, algorithms."""
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
    """Return the result of `review` as plain values, for tables and JSON."""
    return [{**asdict(opening), "state": str(opening.state)} for opening in review(config)]


def summary(config: Config) -> str:
    """Return one line with the security profile and the subjects of everything that is open."""
    found = [opening for opening in review(config) if opening.state is State.OPEN]
    named = [f"{opening.subject} {opening.port or ''}".rstrip() for opening in found]
    shown = ", ".join(named) or "nothing"
    return f"security: {config.security.profile} profile, open: {shown}"


def _reach(hosts: tuple[str, ...]) -> tuple[str, bool]:
    """Return (addresses of a listener as text, whether other computers can reach them)."""
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
    """Return the opening of a listener that accepts unauthenticated callers."""
    if port is None:
        return Opening(subject, NOBODY, State.CLOSED, "no listener", key.partition(" =")[0])
    where, exposed = _reach(hosts)
    state = State.LIMITED if limited or not exposed else State.OPEN
    to = "other computers" if exposed else "this computer"
    return Opening(subject, to, state, f"{what} at port {port or 'any'} of {where}", key, port)


def _sessions(config: Config) -> Iterator[Opening]:
    listen, allow = config.listen, config.mqqb.allow
    hardened = config.queue_manager.hardened
    where = ", ".join(allow) if allow else "every address"
    yield _listener(
        "MS-MQQB (TCP)",
        None if hardened else listen.mqqb.port,
        listen.mqqb.host,
        f"messages from queue managers at {where},",
        "mqqb.allow = [addresses of the queue managers that may open sessions]",
        limited=bool(allow),
    )
    yield Opening(
        "passing messages on (router)",
        NOBODY if hardened or not config.mqqb.router else "queue managers that may open sessions",
        State.CLOSED if hardened or not config.mqqb.router else State.LIMITED if allow else State.OPEN,
        "messages for other computers are passed on" if config.mqqb.router else "no router",
        "mqqb.router = false, or mqqb.allow" if config.mqqb.router else "mqqb.router",
    )
    yield _listener(
        "ping (UDP)",
        None if hardened else listen.mqqb.ping_port,
        listen.mqqb.host,
        "answers with the GUID of this queue manager,",
        'listen.mqqb.ping_port = "off", or mqqb.allow',
        limited=bool(allow),
    )
    yield Opening(
        "multicast (PGM)",
        "other computers" if config.pgm.enabled else NOBODY,
        State.OPEN if config.pgm.enabled else State.CLOSED,
        "messages to queues with a multicast address" if config.pgm.enabled else "no listener",
        "pgm.enabled = false" if config.pgm.enabled else "pgm.enabled",
    )


def _http(config: Config) -> Iterator[Opening]:
    listen = config.listen
    yield _listener(
        "messages over HTTP",
        listen.http.port,
        listen.hosts(listen.http),
        "messages of anonymous senders,",
        'listen.http.port = "off"',
    )
    with_client = listen.https.tls_client_ca is not None
    yield _listener(
        "messages over HTTPS",
        listen.https.port if listen.https.tls_certificate is not None else None,
        listen.hosts(listen.https),
        f"messages of senders {'with a client certificate' if with_client else 'without a certificate'},",
        'listen.https.port = "off", or listen.https.tls_client_ca',
        limited=with_client,
    )
    relay = config.srmp.store_and_forward
    yield Opening(
        "passing messages on (HTTP)",
        "senders over HTTP" if relay else NOBODY,
        State.OPEN if relay else State.CLOSED,
        "messages for other hosts are passed on" if relay else "messages for other hosts are refused",
        "srmp.store_and_forward = false" if relay else "srmp.store_and_forward",
    )
    more = config.srmp.receipts_to
    yield Opening(
        "receipts over HTTP",
        ", ".join(more) if more else NOBODY,
        State.LIMITED if more else State.CLOSED,
        f"go to {'these and to ' if more else ''}the address that their message came from",
        "srmp.receipts_to = []" if more else "srmp.receipts_to",
    )


def _rpc(config: Config) -> Iterator[Opening]:
    listen, rpc = config.listen, config.rpc
    hosts = listen.hosts(listen.rpc)
    off = listen.rpc.port is None or config.queue_manager.hardened
    callers = "authenticated and anonymous calls" if rpc.anonymous else "authenticated calls"
    off_here = off or not (rpc.remote_read or rpc.qmcomm or rpc.qmmgmt)
    yield _listener(
        "remote read (RPC)",
        None if off_here else listen.rpc.port,
        hosts,
        f"{callers}, RemoteRead from level {rpc.remote_read_level}, qmcomm from {rpc.qmcomm_level}, "
        f"qmmgmt from {rpc.qmmgmt_level},",
        'listen.rpc.port = "off", or rpc.anonymous = false',
        limited=not rpc.anonymous,
    )
    yield _listener(
        "remote read, older (qm2qm)",
        None if off or not rpc.qm2qm else listen.rpc.qm2qm_port,
        hosts,
        f"{callers}, from level {rpc.qm2qm_level},",
        'listen.rpc.qm2qm_port = "off", or rpc.anonymous = false',
        limited=not rpc.anonymous,
    )
    yield _listener(
        "RPC endpoint mapper",
        None if off or rpc.epm != "own" else listen.rpc.epm_port,
        hosts,
        "answers with the ports of the interfaces,",
        'listen.rpc.epm_port = "off"',
    )
    yield _named_callers(config, off=off)
    if rpc.allow_unauthenticated and not off_here:
        yield Opening(
            "remote read without encryption",
            "other computers",
            State.OPEN,
            "messages cross the network in clear text",
            "rpc.allow_unauthenticated = false",
        )
    if rpc.anonymous_outgoing and rpc.dependent_clients and not off_here:
        yield Opening(
            "sending to other computers (RPC)",
            "anonymous callers",
            State.OPEN,
            "this computer sends to any host that they name",
            "rpc.anonymous_outgoing = false",
        )


def _named_callers(config: Config, *, off: bool) -> Opening:
    """Return the opening of log-ons over RPC: without signing, a peer may relay a log-on from another
    server.
    """
    rpc, subject = config.rpc, "log-ons (RPC)"
    methods = [
        name for name, on in (("NTLM", rpc.ntlm), ("Kerberos", rpc.keytab is not None)) if on and not off
    ]
    if not methods:
        return Opening(subject, NOBODY, State.CLOSED, "no log-ons", "rpc.ntlm, rpc.keytab")
    what = f"by {' and '.join(methods)}, from level {rpc.named_level}"
    if rpc.named_level not in ("integrity", "privacy"):
        key = 'rpc.named_level = "integrity"'
        return Opening(subject, "relayed log-ons", State.OPEN, f"{what}: requests are not signed", key)
    if rpc.ntlm and "*" in rpc.target_names:
        key = "rpc.target_names = [names of this server]"
        return Opening(subject, "relayed log-ons", State.OPEN, f"{what}, for servers of any name", key)
    return Opening(subject, "users of the users file", State.LIMITED, what, "rpc.ntlm = false")


def _programs(config: Config) -> Iterator[Opening]:
    listen = config.listen
    if config.app_socket is None:
        yield Opening("programs (Unix socket)", NOBODY, State.CLOSED, "no listener", "listen.app.socket")
    else:
        shared = listen.app.socket_mode & 0o077
        yield Opening(
            "programs (Unix socket)",
            "local users" if shared else "root and the user of the server",
            State.LIMITED,
            f"{config.app_socket}, mode {listen.app.socket_mode:04o}",
            'listen.app.socket_mode = "0600"' if shared else 'listen.app.socket = "off"',
        )
    where, exposed = _reach(listen.app.host)
    clear = listen.app.tls_certificate is None
    if listen.app.port is None:
        yield Opening("programs (TCP)", NOBODY, State.CLOSED, "no listener", "listen.app.port")
    else:
        yield Opening(
            "programs (TCP)",
            "callers with a token",
            State.OPEN if exposed and clear else State.LIMITED,
            f"{'tokens in clear text' if clear else 'TLS'} at port {listen.app.port} of {where}",
            "listen.app.tls_certificate and listen.app.tls_key",
        )
    figures = "shows health, metrics, names and counts of all queues,"
    _, exposed = _reach(listen.admin.host)
    key = 'listen.admin.host = "127.0.0.1"' if exposed else 'listen.admin.port = "off"'
    yield _listener("admin port", listen.admin.port, listen.admin.host, figures, key)
    yield _bulk(config)
    short = [user.name for user in config.users if 0 < len(user.token) < SHORT_TOKEN]
    if short:
        yield Opening(
            "short tokens",
            "callers that guess them",
            State.OPEN,
            f"fewer than {SHORT_TOKEN} characters: {', '.join(short)}",
            "msmq-fast user token, in place of [[users]]",
        )


def _bulk(config: Config) -> Opening:
    access = config.bulk.access
    key = 'bulk.access = "off"' if access == "token" else 'bulk.access = "token", or "off"'
    to = {
        "off": NOBODY,
        "token": "callers with a token",
        "administrators": "callers with a token; administrators and readers of this computer",
        "loopback": "callers with a token; all users of this computer",
    }[access if config.listen.admin.port is not None else "off"]
    state = State.LIMITED
    if to == NOBODY:
        state, key = State.CLOSED, "bulk.access, listen.admin.port"
    elif access == "loopback":
        state = State.OPEN
    _, exposed = _reach(config.listen.admin.host)
    if state is not State.CLOSED and exposed and config.listen.admin.tls_certificate is None:
        return Opening(
            "bulk API",
            to,
            State.OPEN,
            "tokens in clear text",
            "listen.admin.tls_certificate and listen.admin.tls_key",
        )
    return Opening("bulk API", to, state, "read, lease and publish, as the lists of the queues allow", key)


def _rights(config: Config) -> Iterator[Opening]:
    security = config.security
    reachable = any(one.state is State.OPEN for one in (*_sessions(config), *_http(config)) if one.port)
    may_send = security.anonymous_may_send
    yield Opening(
        "sending to new queues",
        "everybody" if may_send else "senders that their lists name",
        State.LIMITED if not may_send else State.OPEN if reachable else State.LIMITED,
        "Everyone and ANONYMOUS LOGON may send" if may_send else "the list of each queue decides",
        "security.anonymous_may_send = false" if may_send else "msmq-fast acl revoke",
    )
    yield _choice(
        "reading, changing and deleting new queues",
        security.default_queue_acl == "spec",
        ("Everyone", "every authenticated caller"),
        ("owner and administrators", "others may look and send"),
        "security.default_queue_acl",
        '"restrictive"',
    )
    yield _choice(
        "creating queues",
        security.everyone_creates_queues,
        ("Everyone", "every authenticated caller"),
        ("administrators", "others are refused"),
        "security.everyone_creates_queues",
        "false",
    )
    yield _choice(
        "sender id of unsigned messages",
        config.interop.unsigned_sender_id == "use",
        ("other computers", "counts as the sender"),
        (NOBODY, "counts for nothing"),
        "interop.unsigned_sender_id",
        '"anonymous"',
    )
    yield _choice(
        "reasons of refusals",
        config.mqqb.insecure_nacks,
        ("other computers", "strangers learn which queues exist"),
        (NOBODY, "strangers learn nothing about queues"),
        "mqqb.insecure_nacks",
        "false",
    )


def _choice(
    subject: str, chosen: bool, opened: tuple[str, str], closed: tuple[str, str], key: str, value: str
) -> Opening:
    """Return the opening of an operation that one key controls. `opened` and `closed` are pairs (callers,
    what these callers may do) for the two states; with the value `value`, the key closes the operation.
    """
    to, what = opened if chosen else closed
    return Opening(
        subject,
        to,
        State.OPEN if chosen else State.CLOSED,
        what,
        f"{key} = {value}" if chosen else key,
    )


def _quotas(config: Config) -> Iterator[Opening]:
    for subject, quota, key in (
        ("all messages", computer_quota(config), "queue_manager.quota"),
        ("computer journal", journal_quota(config), "queue_manager.journal_quota"),
        ("each dead-letter queue", deadletter_quota(config), "queue_manager.deadletter_quota"),
    ):
        endless = quota == UNLIMITED
        yield Opening(
            f"quota of {subject}",
            "senders",
            State.OPEN if endless else State.LIMITED,
            f"none but store.disk_low ({config.store.disk_low >> 20} MiB left)" if endless else _size(quota),
            f"{key} = a size",
        )
    limits, mqqb = config.limits, config.listen.mqqb
    yield Opening(
        "connections to MS-MQQB",
        "other computers",
        State.LIMITED,
        f"{mqqb.max_connections_per_address} from one address, {mqqb.max_connections} in all",
        "listen.mqqb.max_connections_per_address and listen.mqqb.max_connections",
    )
    yield Opening(
        "acknowledgments to queues that senders name",
        "senders over MS-MQQB",
        State.LIMITED,
        f"{limits.answers_per_address} destinations without a session, for each address",
        "limits.answers_per_address",
    )


def _size(kilobytes: int) -> str:
    """Return a size with a unit, for people."""
    for unit, shift in (("TiB", 30), ("GiB", 20), ("MiB", 10)):
        if kilobytes >= 10 << shift:
            return f"{kilobytes >> shift} {unit}"
    return f"{kilobytes} KiB"


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
    digests = [name for name in config.srmp.signature_digests if name in _WEAK_HASHES]
    yield _weakness("signatures over HTTP: hashes", digests, 'srmp.signature_digests = ["sha256", "sha512"]')
    yield _choice(
        "signatures over HTTP: unregistered certificates",
        config.srmp.unregistered_certificates,
        ("senders over HTTP", "are accepted, but prove no sender"),
        (NOBODY, "are refused"),
        "srmp.unregistered_certificates",
        "false",
    )


def _weakness(subject: str, found: list[str], key: str) -> Opening:
    if not found:
        return Opening(subject, NOBODY, State.CLOSED, "no weak algorithm", key.partition(" =")[0])
    return Opening(subject, "peers that use them", State.LIMITED, ", ".join(found), key)

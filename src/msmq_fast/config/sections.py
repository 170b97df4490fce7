"""The configuration: every key, its kind, its default; `config/loading.py` fills it."""

from __future__ import annotations

import os
import socket
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key as _key
from msmq_fast.config.pgm import PgmConfig
from msmq_fast.config.remote import RemoteConfig
from msmq_fast.config.rpc import RpcConfig
from msmq_fast.config.security import ProtectionConfig, SecurityConfig
from msmq_fast.config.srmp import SrmpConfig
from msmq_fast.qm.settings import DirectoryMode

__all__ = [
    "SECTIONS",
    "BulkConfig",
    "Config",
    "DirectoryConfig",
    "LimitsConfig",
    "LogConfig",
    "MqqbConfig",
    "PeerDeclaration",
    "ProtectionConfig",
    "QueueDeclaration",
    "QueueManagerConfig",
    "RemoteConfig",
    "RouteDeclaration",
    "RpcConfig",
    "SecurityConfig",
    "ServerConfig",
    "StoreConfig",
    "UserDeclaration",
    "default_computer_name",
    "default_data_directory",
    "keys_of",
]

_KIB, _MIB, _GIB, _TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40


def default_data_directory() -> Path:
    """/var/lib/msmq-fast for root, the user's data directory for everybody else."""
    if os.geteuid() == 0:
        return Path("/var/lib/msmq-fast")
    home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "msmq-fast"


def default_computer_name() -> str:
    """The first label of the host name, cut to 15 characters as Windows computer names are."""
    return socket.gethostname().split(".", 1)[0][: name_kinds.LONGEST_COMPUTER_NAME] or "localhost"


@dataclass(slots=True)
class ServerConfig:
    """Section [server]: who this queue manager is and where it listens."""

    name: str = _key(name_kinds.COMPUTER_NAME, "", "computer name; empty: the host name")
    domain: str = _key(name_kinds.COMPUTER, "", "DNS domain, for the qualified name that the directory shows")
    aliases: tuple[str, ...] = _key(name_kinds.COMPUTERS, (), "more names that mean this computer")
    advertised_address: str = _key(
        name_kinds.COMPUTER,
        "",
        "address or host name at which others reach this server, if a NAT hides its own",
    )
    guid: str = _key(
        kinds.GUID, "", "queue-manager GUID to take over when the store is created; empty: a new one"
    )
    data: Path | None = _key(kinds.PATH, None, "data directory; empty: the user's data directory")  # noqa: RUF009
    host: tuple[str, ...] = _key(
        kinds.TEXTS,
        ("0.0.0.0", "::"),  # noqa: S104
        "addresses of the message and ping listeners",
    )
    port: int | None = _key(kinds.port(), 1801, "TCP port of MS-MQQB")
    ping_port: int | None = _key(kinds.port(), 3527, "UDP port of the MS-MQQB ping")
    app_socket: str = _key(kinds.TEXT, "", 'Unix socket for programs; empty: app.sock in data; "off": none')
    app_socket_mode: int = _key(kinds.file_mode(), 0o600, "permissions of that socket")
    app_host: tuple[str, ...] = _key(
        kinds.TEXTS, ("127.0.0.1", "::1"), "addresses of the TCP listener for programs"
    )
    app_port: int | None = _key(kinds.port(), None, "TCP port for programs")
    app_tls_certificate: Path | None = _key(kinds.PATH, None, "certificate chain (PEM) of the TCP listener")  # noqa: RUF009
    app_tls_key: Path | None = _key(kinds.PATH, None, "private key (PEM) of the TCP listener")  # noqa: RUF009
    admin_host: tuple[str, ...] = _key(kinds.TEXTS, ("127.0.0.1", "::1"), "addresses of the admin listener")
    admin_port: int | None = _key(kinds.port(), 1802, "HTTP port of health, metrics and the bulk API")
    admin_tls_certificate: Path | None = _key(  # noqa: RUF009
        kinds.PATH, None, "certificate chain (PEM) of the admin listener, which then speaks HTTPS only"
    )
    admin_tls_key: Path | None = _key(kinds.PATH, None, "private key (PEM) of the admin listener")  # noqa: RUF009
    http_port: int | None = _key(kinds.port(), None, "TCP port for messages over HTTP (SRMP), usually 80")
    https_port: int | None = _key(
        kinds.port(),
        kinds.Preferred(443),
        "TCP port for messages over HTTPS; unless it is set, none without a certificate, or while 443 is "
        "taken or refused",
    )
    https_certificate: Path | None = _key(kinds.PATH, None, "certificate chain (PEM) of that port")  # noqa: RUF009
    https_key: Path | None = _key(kinds.PATH, None, "private key (PEM) of that port")  # noqa: RUF009
    https_more_certificates: tuple[str, ...] = _key(
        kinds.TEXTS,
        (),
        "files (PEM) with chain and key, for clients that ask for other names (SNI) than that has",
    )
    https_client_ca: Path | None = _key(  # noqa: RUF009
        kinds.PATH, None, "certificates (PEM) that clients there must have one of; empty: none is asked for"
    )
    rpc_host: tuple[str, ...] = _key(kinds.TEXTS, (), "addresses of the RPC listeners; empty: those of host")
    rpc_port: int | None = _key(
        kinds.port(), 2103, "TCP port of RemoteRead, qmcomm and qmcomm2; 11 more while it is taken"
    )
    qm2qm_port: int | None = _key(kinds.port(), 2105, "TCP port of qm2qm; 11 more while it is taken")
    epm_port: int | None = _key(
        kinds.port(), 135, "TCP port of the RPC endpoint mapper; without the right to it, there is none"
    )
    drain_timeout: float = _key(kinds.duration(0, 3600), 10.0, "how long a stop may take before it is forced")


@dataclass(slots=True)
class StoreConfig:
    """Section [store]: the disk."""

    map_size: int = _key(
        kinds.size(16 * _MIB, 64 * _TIB), _TIB, "address space reserved once; the file grows as needed"
    )
    feed: bool = _key(kinds.FLAG, True, "keep the event feed")
    feed_max_age: float = _key(kinds.duration(60, 10**9), 604_800.0, "older events are dropped")
    feed_max_size: int = _key(kinds.size(1 << 20, 64 * _TIB), _GIB, "the oldest events beyond it are dropped")
    log: bool = _key(kinds.FLAG, True, "commit to a redo log first, to the data file later")
    log_size: int = _key(
        kinds.size(_MIB, 2 * _GIB), 16 * _MIB, "size of the redo log, on the disk and in memory"
    )
    inline_commit_us: int = _key(
        kinds.integer(0, 1_000_000),
        5000,
        "a lone message is committed to the redo log without a change of threads; after a commit that took "
        "more microseconds than this, not for 10 s; 0: never",
    )
    disk_low: int = _key(
        kinds.size(0, 64 * _TIB), 256 * _MIB, "space left below which no message is taken in"
    )
    disk_check_interval: float = _key(kinds.duration(0.1, 3600), 2.0, "how often free space is looked at")
    allow_any_filesystem: bool = _key(kinds.FLAG, False, "also use network and overlay file systems")


@dataclass(slots=True)
class QueueManagerConfig:
    """Section [queue_manager]: the quotas and defaults of all queues."""

    quota_kb: int | None = _key(
        kinds.QUOTA,
        None,
        "bytes of all messages, in KB; auto: half of the disk, at least 8 GiB; 4294967295: no limit",
    )
    journal_quota_kb: int | None = _key(
        kinds.QUOTA, None, "bytes of the computer journal, in KB; auto: an eighth of quota_kb"
    )
    deadletter_quota_kb: int | None = _key(
        kinds.QUOTA, None, "bytes of each dead-letter queue, in KB; auto: an eighth of quota_kb"
    )
    cache: int = _key(kinds.size(0, _TIB), 64 * _MIB, "bodies of recoverable messages kept in memory")
    express_memory: int = _key(
        kinds.size(0, _TIB),
        0,
        "express messages in memory beyond which nothing is taken in; 0: half of this machine's memory",
    )
    time_to_reach_queue: float = _key(
        kinds.duration(0, 2**32 - 1), 345_600.0, "for messages sent without one"
    )
    hardened: bool = _key(
        kinds.FLAG, False, "hardened mode: MS-MQQB neither sends nor listens; messages leave by HTTP only"
    )
    da028_copy_ids: str = _key(
        kinds.choice("own", "same"), "own", "identifiers of the copies of a message for several queues"
    )
    transaction_idle: float = _key(
        kinds.duration(1, 2_592_000), 600.0, "after which a transaction in which nothing happens is aborted"
    )
    outgoing_idle: float = _key(
        kinds.duration(0, 31_536_000),
        86_400.0,
        "after which an outgoing queue goes that is empty and not open; 0: never",
    )


@dataclass(slots=True)
class MqqbConfig:
    """Section [mqqb]: sessions with other queue managers."""

    window: int = _key(kinds.integer(1, 65535), 64, "messages in flight per session")
    allow: tuple[str, ...] = _key(
        kinds.NETWORKS, (), "addresses and networks that may open sessions and ping; empty: all"
    )
    peer_port: int = _key(
        kinds.integer(0, 65535), 0, "TCP port of other queue managers; 0: the same as server.port"
    )
    peer_ping_port: int = _key(
        kinds.integer(0, 65535), 0, "UDP port of their ping; 0: the same as server.ping_port"
    )
    ping: bool = _key(kinds.FLAG, False, "ask by UDP before each connect")
    connect_timeout: float = _key(kinds.duration(0.1, 600), 30.0, "for one attempt to connect")
    retry_interval: float = _key(kinds.duration(0.1, 3600), 5.0, "between two attempts to connect")
    retry_max: float = _key(
        kinds.duration(0.1, 86_400),
        600.0,
        "the wait doubles up to this while a host does not answer; what the host sends resets it",
    )
    idle_timeout: float = _key(
        kinds.duration(0, 86_400),
        0.0,
        "a session without messages is closed; 0: after 5 minutes, at a router after 2",
    )
    several_addresses: bool = _key(
        kinds.FLAG, False, "a queue manager may have sessions from several addresses of one family"
    )
    routers: tuple[str, ...] = _key(
        name_kinds.PEERS, (), "addresses and GUIDs of routers: acknowledgments that they bring count"
    )
    router: bool = _key(kinds.FLAG, False, "pass on messages for other queue managers")
    resend_short: float = _key(
        kinds.duration(0.1, 86_400), 30.0, "transactional messages are sent again after so long, three times,"
    )
    resend_medium: float = _key(kinds.duration(0.1, 86_400), 300.0, "then three times after so long,")
    resend_long: float = _key(kinds.duration(0.1, 86_400), 1_800.0, "then three times after so long,")
    resend_final: float = _key(kinds.duration(0.1, 864_000), 21_600.0, "and from then on after so long")
    final_ack_grace: float = _key(
        kinds.duration(0, 10**8),
        21_600.0,
        "so long after its time to be received, nobody waits any more to hear what became of a message",
    )
    order_ack_delay: float = _key(
        kinds.duration(0.05, 60), 0.5, "a transactional stream that pauses for so long is acknowledged"
    )
    order_ack_max: float = _key(kinds.duration(0.1, 600), 10.0, "one that does not pause, after so long")
    stream_lifetime: float = _key(
        kinds.duration(1, 10**8), 7_776_000.0, "a stream without messages for so long is forgotten"
    )
    hop_limit: int = _key(
        kinds.integer(1, 29), 29, "queue managers that a message may pass through before it is refused"
    )
    report_messages: bool = _key(
        kinds.FLAG, False, "send report messages on traced messages (EnableReportMessages)"
    )
    report_queue: str = _key(
        kinds.GUID, "", "public queue for reports on messages that name none, as all that come over HTTP"
    )
    insecure_nacks: bool = _key(
        kinds.FLAG, False, "tell senders of unknown queues, refused access, bad signatures and encryption"
    )
    ack_timeout: float = _key(
        kinds.duration(20, 120), 20.0, "a peer that acknowledges nothing for so long is cut off"
    )


@dataclass(slots=True)
class BulkConfig:
    """Section [bulk]: the bulk API on the admin port."""

    access: str = _key(
        kinds.choice("administrators", "loopback", "token", "off"),
        "administrators",
        "callers without a token: administrators and readers of this machine; loopback: all its users; "
        "token: none",
    )
    share: float = _key(
        kinds.fraction(), 0.5, "of one processor core that reading in bulk takes at most; 0: no limit"
    )
    streams: int = _key(kinds.integer(1, 10_000), 32, "rows that are read at the same time; others wait")
    uploads: int = _key(
        kinds.integer(1, 10_000), 32, "stages that are taken in at the same time; others wait"
    )
    max_stage_bytes: int = _key(
        kinds.size(1 << 20, 64 * _TIB), _GIB, "bytes of one stage, as it comes and as it is kept"
    )
    stage_lifetime: float = _key(
        kinds.duration(1, 31_536_000),
        3600.0,
        "stages that nobody publishes are thrown away so long after the last of their batch",
    )
    writer_lifetime: float = _key(
        kinds.duration(1, 10**8),
        7_776_000.0,
        "a writer that publishes nothing is forgotten after so long: what it repeats then comes twice",
    )
    lease: float = _key(
        kinds.duration(1, 86_400), 900.0, "messages given to a subscription come back after so long"
    )


@dataclass(slots=True)
class LimitsConfig:
    """Section [limits]: what strangers may use up."""

    network_connections: int = _key(
        kinds.integer(1, 1_000_000), 8192, "open connections of other computers, over all TCP ports"
    )
    network_per_address: int = _key(
        kinds.integer(1, 1_000_000), 2048, "of these, from one address; an IPv6 address counts by its /64"
    )
    outgoing_connections: int = _key(
        kinds.integer(1, 1_000_000), 4096, "open connections that this server has opened to others"
    )
    connections: int = _key(kinds.integer(1, 1_000_000), 4096, "open MS-MQQB connections")
    sessions_per_address: int = _key(kinds.integer(1, 1_000_000), 1024, "of these, from one address")
    first_byte_timeout: float = _key(
        kinds.duration(0.1, 600), 10.0, "a connection of another computer on which nothing comes is closed"
    )
    handshake_timeout: float = _key(kinds.duration(0.1, 600), 60.0, "from accept to an open session")
    streams: int = _key(
        kinds.integer(1, 10_000_000),
        100_000,
        "transactional streams that arrive: one for each sender and name",
    )
    streams_per_address: int = _key(
        kinds.integer(1, 10_000_000), 10_000, "of them, those that queue managers at one address may begin"
    )
    session_keys: int = _key(
        kinds.integer(1, 1_000_000),
        50,
        "new keys of encrypted messages that one session may bring in a second",
    )
    key_percent: int = _key(
        kinds.integer(1, 100),
        10,
        "percent of one core for operations with keys that peers ask for: session keys of encrypted "
        "messages, signatures over HTTP; their addresses have equal shares",
    )
    pings_per_address: int = _key(
        kinds.integer(1, 1_000_000), 500, "pings from one address that are answered in a second"
    )
    answers_per_address: int = _key(
        kinds.integer(1, 1_000),
        100,
        "outgoing queues in which acknowledgments to one address may wait for hosts never reached",
    )
    dials: int = _key(
        kinds.integer(1, 10_000),
        64,
        "connections to other queue managers tried at a time for messages; half as many more for answers",
    )
    app_connections: int = _key(
        kinds.integer(1, 1_000_000), 1024, "open connections of programs at the Unix socket, and over TCP"
    )
    admin_connections: int = _key(
        kinds.integer(1, 1_000_000), 128, "open connections at the admin port, bulk readers included"
    )
    slow_reader_timeout: float = _key(
        kinds.duration(1, 3600), 120.0, "a peer that takes no bytes for so long is cut off"
    )
    slow_writer_timeout: float = _key(
        kinds.duration(1, 3600), 120.0, "a peer that leaves a packet unfinished is cut off"
    )
    metric_queues: int = _key(
        kinds.integer(1, 100_000), 100, "queues with their own metric; the rest is summed"
    )


@dataclass(slots=True)
class LogConfig:
    """Section [log]."""

    level: str = _key(
        kinds.choice("debug", "info", "warning", "error"), "info", "least severe line that is written"
    )
    format: str = _key(kinds.choice("text", "json"), "text", "text, or one JSON object a line")
    refusals_per_second: int = _key(
        kinds.integer(1, 1_000_000), 5, "lines on refused messages and connections"
    )


@dataclass(slots=True)
class DirectoryConfig:
    """Section [directory]: where public queues, computers, sites and users are kept."""

    mode: str = _key(
        kinds.choice(*(mode.value for mode in DirectoryMode)),
        DirectoryMode.EMBEDDED.value,
        "embedded: in the own store; workgroup: nowhere, without public queues",
    )
    site: str = _key(kinds.GUID, "", "site of this computer, entered at the first start")
    sites_interval: float = _key(kinds.duration(60, 10**7), 43_200.0, "how often sites are read again")
    gates_interval: float = _key(kinds.duration(60, 10**7), 3_600.0, "how often site gates are read again")


@dataclass(slots=True)
class QueueDeclaration:
    """One [[queues]] table: a queue that exists after every start."""

    name: str = _key(name_kinds.QUEUE, "", "path of the queue")
    label: str = _key(kinds.TEXT, "", "label, up to 124 characters")
    transactional: bool = _key(kinds.FLAG, False, "takes transactional messages only")
    journal: bool = _key(kinds.FLAG, False, "keeps copies of received messages")
    quota_kb: int = _key(kinds.integer(0, 2**32 - 1), 2**32 - 1, "4294967295: no limit")
    authenticated: bool = _key(kinds.FLAG, False, "takes signed messages only")
    multicast_address: str = _key(
        name_kinds.GROUP, "", "group and port such as 234.1.1.1:8001 whose messages it takes, too"
    )


@dataclass(slots=True)
class UserDeclaration:
    """One [[users]] table: a program that may use the application protocol over TCP."""

    name: str = _key(kinds.TEXT, "", "what the user is called in logs")
    token: str = _key(kinds.TEXT, "", "secret that the program presents")
    token_file: Path | None = _key(kinds.PATH, None, "file that holds the secret")  # noqa: RUF009
    token_sha256: str = _key(kinds.SHA256, "", "SHA-256 of the secret, which then stands nowhere")
    groups: tuple[str, ...] = _key(kinds.TEXTS, (), "groups, such as administrators")


@dataclass(slots=True)
class RouteDeclaration:
    """One [[routes]] table: where messages for a queue manager go next."""

    destination: str = _key(kinds.TEXT, "", 'GUID or host name of a queue manager; "*": all others')
    via: tuple[str, ...] = _key(
        name_kinds.HOPS, (), "host names, addresses or GUIDs, tried in this order; a port cannot be given"
    )


@dataclass(slots=True)
class PeerDeclaration:
    """One [[peers]] table: the only addresses that another queue manager has."""

    guid: str = _key(name_kinds.GUID, "", "GUID of the queue manager")
    addresses: tuple[str, ...] = _key(
        name_kinds.ADDRESSES, (), "its IP addresses; no others may use its GUID"
    )


@dataclass(slots=True)
class Config:
    """All of it. `source` names the file that was read, for messages to people."""

    server: ServerConfig = field(default_factory=ServerConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    queue_manager: QueueManagerConfig = field(default_factory=QueueManagerConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    protection: ProtectionConfig = field(default_factory=ProtectionConfig)
    mqqb: MqqbConfig = field(default_factory=MqqbConfig)
    directory: DirectoryConfig = field(default_factory=DirectoryConfig)
    rpc: RpcConfig = field(default_factory=RpcConfig)
    remote: RemoteConfig = field(default_factory=RemoteConfig)
    srmp: SrmpConfig = field(default_factory=SrmpConfig)
    pgm: PgmConfig = field(default_factory=PgmConfig)
    bulk: BulkConfig = field(default_factory=BulkConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    log: LogConfig = field(default_factory=LogConfig)
    queues: list[QueueDeclaration] = field(default_factory=list)
    users: list[UserDeclaration] = field(default_factory=list)
    routes: list[RouteDeclaration] = field(default_factory=list)
    peers: list[PeerDeclaration] = field(default_factory=list)
    source: str = "defaults"
    file: Path | None = None
    given: set[str] = field(default_factory=set)  # "section.key" of what a file, variable or flag sets

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.server.data or default_data_directory()

    @property
    def name(self) -> str:
        """The computer name."""
        return self.server.name or default_computer_name()

    @property
    def users_file(self) -> Path:
        """Where the users are."""
        return self.security.users_file or self.data / "users.toml"

    @property
    def key_file(self) -> Path:
        """Where the key is that seals private keys."""
        return self.protection.key_file or self.data / "secrets.key"

    @property
    def app_socket(self) -> Path | None:
        """The Unix socket for programs, None if there is none."""
        if self.server.app_socket == "off":
            return None
        return Path(self.server.app_socket).expanduser() if self.server.app_socket else self.data / "app.sock"


SECTIONS: dict[str, type] = {
    "server": ServerConfig,
    "store": StoreConfig,
    "queue_manager": QueueManagerConfig,
    "security": SecurityConfig,
    "protection": ProtectionConfig,
    "mqqb": MqqbConfig,
    "directory": DirectoryConfig,
    "rpc": RpcConfig,
    "remote": RemoteConfig,
    "srmp": SrmpConfig,
    "pgm": PgmConfig,
    "bulk": BulkConfig,
    "limits": LimitsConfig,
    "log": LogConfig,
}


def keys_of(section: type) -> dict[str, Field[Any]]:
    """The keys of one section, in the order in which they are documented."""
    return {entry.name: entry for entry in fields(section)}

"""Section [mqqb]: sessions with other queue managers."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key

__all__ = ["MqqbConfig"]


@dataclass(slots=True)
class MqqbConfig:
    """Section [mqqb]: sessions with other queue managers."""

    window: int = key(
        kinds.integer(1, 65535), 64, "maximum number of unacknowledged messages in flight on one session"
    )
    allow: tuple[str, ...] = key(
        kinds.NETWORKS,
        (),
        "addresses and networks that may open sessions and ping; empty: all",
        live=True,
    )
    peer_port: int = key(
        kinds.integer(0, 65535), 0, "TCP port of other queue managers; 0: the same as listen.mqqb.port"
    )
    peer_ping_port: int = key(
        kinds.integer(0, 65535),
        0,
        "UDP port of the ping of other queue managers; 0: the same as listen.mqqb.ping_port",
    )
    ping: bool = key(kinds.FLAG, False, "ping another queue manager before each connection")
    connect_timeout: float = key(kinds.duration(0.1, 600), 30.0, "time for one attempt to connect")
    retry_interval: float = key(kinds.duration(0.1, 3600), 5.0, "time between two attempts to connect")
    retry_max: float = key(
        kinds.duration(0.1, 86_400),
        600.0,
        "the time between attempts doubles up to this value while a host does not answer; data "
        "from the host resets it",
    )
    idle_timeout: float = key(
        kinds.duration(0, 86_400),
        0.0,
        "a session without messages is closed after this time; 0: 5 minutes, at a router 2 minutes",
    )
    several_addresses: bool = key(
        kinds.FLAG,
        False,
        "allow one queue manager to open sessions from several addresses of one family (IPv4 or IPv6)",
    )
    routers: tuple[str, ...] = key(
        name_kinds.PEERS,
        (),
        "addresses and GUIDs of routers, whose acknowledgments for other queue managers are accepted",
        live=True,
    )
    router: bool = key(kinds.FLAG, False, "forward messages for other queue managers")
    resend_short: float = key(
        kinds.duration(0.1, 86_400),
        30.0,
        "time before each of the first three resends of a transactional message",
    )
    resend_medium: float = key(
        kinds.duration(0.1, 86_400), 300.0, "time before each of the fourth to sixth resend"
    )
    resend_long: float = key(
        kinds.duration(0.1, 86_400), 1_800.0, "time before each of the seventh to ninth resend"
    )
    resend_final: float = key(kinds.duration(0.1, 864_000), 21_600.0, "time before each later resend")
    final_ack_grace: float = key(
        kinds.duration(0, 10**8),
        21_600.0,
        "the server stops waiting for the final acknowledgment of a message this long after its time to be "
        "received",
    )
    order_ack_delay: float = key(
        kinds.duration(0.05, 60),
        0.5,
        "a transactional stream is acknowledged once no message has arrived in it for this time",
    )
    order_ack_max: float = key(
        kinds.duration(0.1, 600),
        10.0,
        "a transactional stream in which messages keep arriving is acknowledged at this interval",
    )
    stream_lifetime: float = key(
        kinds.duration(1, 10**8),
        7_776_000.0,
        "the state of an incoming stream is deleted after this time without messages",
    )
    hop_limit: int = key(
        kinds.integer(1, 29),
        29,
        "the largest number of queue managers that a message may pass; after that it is refused",
    )
    report_messages: bool = key(
        kinds.FLAG, False, "send report messages for traced messages (EnableReportMessages)"
    )
    report_queue: str = key(
        kinds.GUID,
        "",
        "GUID of the public queue for reports on traced messages that name no report queue, such as "
        "all messages over HTTP",
    )
    insecure_nacks: bool = key(
        kinds.FLAG,
        False,
        "send negative acknowledgments that tell the sender about unknown queues, denied access, bad "
        "signatures and failed decryption",
    )
    ack_timeout: float = key(
        kinds.duration(20, 120), 20.0, "a session is closed if the peer acknowledges nothing for this time"
    )

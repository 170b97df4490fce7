"""Section [mqqb]: sessions with other queue managers."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key

__all__ = ["MqqbConfig"]


@dataclass(slots=True)
class MqqbConfig:
    """Section [mqqb]: sessions with other queue managers."""

    window: int = key(kinds.integer(1, 65535), 64, "messages in flight per session")
    allow: tuple[str, ...] = key(
        kinds.NETWORKS, (), "addresses and networks that may open sessions and ping; empty: all"
    )
    peer_port: int = key(
        kinds.integer(0, 65535), 0, "TCP port of other queue managers; 0: the same as listen.mqqb.port"
    )
    peer_ping_port: int = key(
        kinds.integer(0, 65535), 0, "UDP port of their ping; 0: the same as listen.mqqb.ping_port"
    )
    ping: bool = key(kinds.FLAG, False, "ask by UDP before each connect")
    connect_timeout: float = key(kinds.duration(0.1, 600), 30.0, "for one attempt to connect")
    retry_interval: float = key(kinds.duration(0.1, 3600), 5.0, "between two attempts to connect")
    retry_max: float = key(
        kinds.duration(0.1, 86_400),
        600.0,
        "the wait doubles up to this while a host does not answer; what the host sends resets it",
    )
    idle_timeout: float = key(
        kinds.duration(0, 86_400),
        0.0,
        "a session without messages is closed; 0: after 5 minutes, at a router after 2",
    )
    several_addresses: bool = key(
        kinds.FLAG, False, "a queue manager may have sessions from several addresses of one family"
    )
    routers: tuple[str, ...] = key(
        name_kinds.PEERS, (), "addresses and GUIDs of routers: acknowledgments that they bring count"
    )
    router: bool = key(kinds.FLAG, False, "pass on messages for other queue managers")
    resend_short: float = key(
        kinds.duration(0.1, 86_400), 30.0, "transactional messages are sent again after so long, three times,"
    )
    resend_medium: float = key(kinds.duration(0.1, 86_400), 300.0, "then three times after so long,")
    resend_long: float = key(kinds.duration(0.1, 86_400), 1_800.0, "then three times after so long,")
    resend_final: float = key(kinds.duration(0.1, 864_000), 21_600.0, "and from then on after so long")
    final_ack_grace: float = key(
        kinds.duration(0, 10**8),
        21_600.0,
        "so long after its time to be received, nobody waits any more to hear what became of a message",
    )
    order_ack_delay: float = key(
        kinds.duration(0.05, 60), 0.5, "a transactional stream that pauses for so long is acknowledged"
    )
    order_ack_max: float = key(kinds.duration(0.1, 600), 10.0, "one that does not pause, after so long")
    stream_lifetime: float = key(
        kinds.duration(1, 10**8), 7_776_000.0, "a stream without messages for so long is forgotten"
    )
    hop_limit: int = key(
        kinds.integer(1, 29), 29, "queue managers that a message may pass through before it is refused"
    )
    report_messages: bool = key(
        kinds.FLAG, False, "send report messages on traced messages (EnableReportMessages)"
    )
    report_queue: str = key(
        kinds.GUID, "", "public queue for reports on messages that name none, as all that come over HTTP"
    )
    insecure_nacks: bool = key(
        kinds.FLAG, False, "tell senders of unknown queues, refused access, bad signatures and encryption"
    )
    ack_timeout: float = key(
        kinds.duration(20, 120), 20.0, "a peer that acknowledges nothing for so long is cut off"
    )

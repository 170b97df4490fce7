"""Section [limits]: bounds on what peers and programs may use."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds
from msmq_fast.config.kinds import key

__all__ = ["LimitsConfig"]


@dataclass(slots=True)
class LimitsConfig:
    """Section [limits]: bounds on what peers and programs may use."""

    network_connections: int = key(
        kinds.integer(1, 1_000_000), 8192, "open connections of other computers, over all TCP ports"
    )
    network_per_address: int = key(
        kinds.integer(1, 1_000_000), 2048, "of these, from one address; an IPv6 address counts by its /64"
    )
    outgoing_connections: int = key(
        kinds.integer(1, 1_000_000), 4096, "open connections that this server has opened to others"
    )
    first_byte_timeout: float = key(
        kinds.duration(0.1, 600), 10.0, "a connection of another computer on which nothing comes is closed"
    )
    handshake_timeout: float = key(kinds.duration(0.1, 600), 60.0, "from accept to an open session")
    streams: int = key(
        kinds.integer(1, 10_000_000),
        100_000,
        "transactional streams that arrive: one for each sender and name",
    )
    streams_per_address: int = key(
        kinds.integer(1, 10_000_000), 10_000, "of them, those that queue managers at one address may begin"
    )
    session_keys: int = key(
        kinds.integer(1, 1_000_000),
        50,
        "new keys of encrypted messages that one session may bring in a second",
    )
    key_percent: int = key(
        kinds.integer(1, 100),
        10,
        "percent of one core for operations with keys that peers ask for: session keys of encrypted "
        "messages, signatures over HTTP; their addresses have equal shares",
    )
    pings_per_address: int = key(
        kinds.integer(1, 1_000_000), 500, "pings from one address that are answered in a second"
    )
    answers_per_address: int = key(
        kinds.integer(1, 1_000),
        100,
        "outgoing queues in which acknowledgments to one address may wait for hosts never reached",
    )
    dials: int = key(
        kinds.integer(1, 10_000),
        64,
        "connections to other queue managers tried at a time for messages; half as many more for answers",
    )
    slow_reader_timeout: float = key(
        kinds.duration(1, 3600), 120.0, "a peer that takes no bytes for so long is cut off"
    )
    slow_writer_timeout: float = key(
        kinds.duration(1, 3600), 120.0, "a peer that leaves a packet unfinished is cut off"
    )
    metric_queues: int = key(
        kinds.integer(1, 100_000), 100, "queues with their own metric; the rest is summed"
    )

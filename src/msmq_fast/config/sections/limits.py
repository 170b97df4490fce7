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
        kinds.integer(1, 1_000_000),
        8192,
        "maximum number of open connections from other computers, over all TCP ports",
        live=True,
    )
    network_per_address: int = key(
        kinds.integer(1, 1_000_000),
        2048,
        "maximum number of open connections from one address, over all TCP ports; an IPv6 address "
        "counts by its /64",
        live=True,
    )
    outgoing_connections: int = key(
        kinds.integer(1, 1_000_000),
        4096,
        "maximum number of open connections that this server has opened to other computers",
        live=True,
    )
    first_byte_timeout: float = key(
        kinds.duration(0.1, 600),
        10.0,
        "a connection from another computer is closed if nothing arrives for this time",
        live=True,
    )
    handshake_timeout: float = key(
        kinds.duration(0.1, 600),
        60.0,
        "time from the accept of a connection within which its session must be open",
        live=True,
    )
    streams: int = key(
        kinds.integer(1, 10_000_000),
        100_000,
        "maximum number of incoming transactional streams, one for each sender and queue name",
    )
    streams_per_address: int = key(
        kinds.integer(1, 10_000_000),
        10_000,
        "maximum number of transactional streams that queue managers at one address may begin",
        live=True,
    )
    session_keys: int = key(
        kinds.integer(1, 1_000_000),
        50,
        "maximum number of new session keys of encrypted messages that one session may send per second",
        live=True,
    )
    key_percent: int = key(
        kinds.integer(1, 100),
        10,
        "maximum percentage of one core for the key operations that peers cause: session keys of "
        "encrypted messages, signatures over HTTP; the addresses of the peers get equal shares",
    )
    pings_per_address: int = key(
        kinds.integer(1, 1_000_000),
        500,
        "maximum number of pings per second from one address that are answered",
        live=True,
    )
    answers_per_address: int = key(
        kinds.integer(1, 1_000),
        100,
        "maximum number of outgoing queues for acknowledgments that one address has requested, to "
        "hosts that no session has reached yet",
    )
    dials: int = key(
        kinds.integer(1, 10_000),
        64,
        "maximum number of simultaneous attempts to connect to other queue managers for messages; "
        "half as many more for acknowledgments",
        live=True,
    )
    slow_reader_timeout: float = key(
        kinds.duration(1, 3600), 120.0, "a connection is closed if the peer reads nothing for this time"
    )
    slow_writer_timeout: float = key(
        kinds.duration(1, 3600),
        120.0,
        "a connection is closed if the peer leaves a packet incomplete for this time",
    )
    metric_queues: int = key(
        kinds.integer(1, 100_000),
        100,
        "maximum number of queues with metrics of their own; the others are summed up",
    )

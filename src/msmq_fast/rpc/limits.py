"""Limits for the clients of an endpoint, and its counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Limits", "RpcCounters"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an endpoint and its connections, in numbers, bytes and seconds."""

    connections: int = 1000
    connections_per_address: int = 0xFFFFFFFF
    calls: int = 16384
    """Calls in progress on one connection (PFC_CONC_MPX)."""
    handles: int = 16384
    """Context handles of the clients at one address (for IPv6 one /64). All addresses together may have twice
    as many; see handlebudget.
    """
    fragment: int = 5840
    """The largest fragment that is sent or received, in bytes: 2048 to 65,528. The default is that of
    Windows.
    """
    stub: int = 0x400000
    """The largest stub of a request in bytes (MS-RPCE 3.3.3.5.4)."""
    incomplete: int = 64 << 20
    """Bytes of incomplete requests over all connections."""
    handshakes: int = 8 << 20
    """Bytes of incomplete binds and other PDUs outside requests, over all connections.

    In addition, each connection may keep a page, and a bound connection as much as a fragment may have.
    """
    presentation_contexts: int = 4000
    """Presentation contexts of one connection, for each interface of the endpoint (MS-RPCE 3.3.3.5.5)."""
    security_contexts: int = 2048
    """Security contexts of one connection (MS-RPCE 3.3.1.5.4)."""
    output: int = 1 << 20
    """Bytes of replies that wait for the transport. At this size, the connection accepts no more requests."""
    handshake: float = 30.0
    """Seconds that a connection may exist without a bind, or with an incomplete security context."""
    slow_writer: float = 120.0
    """Seconds that a PDU or a fragmented request may stay incomplete."""
    slow_reader: float = 120.0
    """Seconds that a client may stop reading while output waits for it."""
    idle: float = 900.0
    """Seconds that a connection may be silent if it has no calls and no context handles."""


@dataclass(slots=True)
class RpcCounters:
    """Counters of an endpoint since its start. rpc_mgmt_inq_stats returns the first four."""

    calls_in: int = 0
    calls_out: int = 0
    pdus_in: int = 0
    pdus_out: int = 0
    connections: int = 0
    """Connections accepted."""
    binds: int = 0
    """Binds accepted."""
    abandoned: int = 0
    """Calls that were cancelled or orphaned, or whose connection was lost."""
    failures: int = 0
    """Methods that failed with an unexpected exception."""
    faults: Counter[int] = field(default_factory=Counter)
    """Fault PDUs by status."""
    refused: Counter[str] = field(default_factory=Counter)
    """Rejected PDUs by reason."""

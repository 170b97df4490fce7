"""Names of queues of other computers, and their outgoing queues."""

from __future__ import annotations

import struct
from uuid import UUID

from msmq_fast.mqqb.session import Session
from tests.mqqb.stations import Station
from tests.support.mqqb import wire


def opened(router: Station) -> Session:
    """A session of a peer that is written by hand."""
    session = router.endpoint.accept("10.0.0.99", router.now)
    session.receive(wire.establish() + wire.parameters(), router.now)
    session.data_to_send()
    return session


def private(number: int, manager: UUID, *, hops: int = 0, **fields: object) -> bytes:
    """A message for private queue 1 of a queue manager: DQ = 3."""
    packet = wire.message(number, address=manager, queue="", **fields)  # type: ignore[arg-type]
    (flags,) = struct.unpack_from("<I", packet, 60)
    flags = flags & ~(7 << 10) | 3 << 10 | hops
    (size,) = struct.unpack_from("<I", packet, 8)
    packet = packet[:60] + struct.pack("<II", flags, 1) + packet[64 + len(wire.direct("")) :]
    size += 4 - len(wire.direct(""))
    return packet[:8] + struct.pack("<I", size) + packet[12:]

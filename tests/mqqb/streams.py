"""Transactional messages of a stream, and what acknowledges them."""

from __future__ import annotations

from msmq_fast._native.memorystore import MemoryTables
from msmq_fast.packet.acks import OrderAck
from tests.support.mqqb import wire
from tests.support.mqqb.headers import header
from tests.support.worlds.hosts import Host


def tx(
    number: int, previous: int | None = None, *, ordinal: int = 1, stamp: int = 7, **fields: object
) -> bytes:
    """A transactional message whose MessageID is 100 times its ordinal, and its number."""
    place = header(number, previous, ordinal, stamp)
    return wire.message(100 * ordinal + number, transaction=place, queue="OS:h\\private$\\t", **fields)  # type: ignore[arg-type]


class Telling(Host):
    """Sends FinalAcks for what it rejects."""

    def __init__(self, *, tables: MemoryTables | None = None) -> None:
        super().__init__(tables=tables, nack=lambda packet, reason: self.order_acks.final(packet, reason))


def host_with_queue() -> Host:
    host = Telling()
    host.add("t", transactional=True)
    return host


def acknowledged(host: Host) -> list[tuple[int, int, int]]:
    """(time stamp, ordinal, number) of the OrderAcks since the last call."""
    acks = [OrderAck.decode_body(ack.body) for ack in host.acks if ack.message_class == 0xFF]
    host.acks.clear()
    return [(ack.sequence_timestamp, ack.sequence_ordinal, ack.sequence_number) for ack in acks]

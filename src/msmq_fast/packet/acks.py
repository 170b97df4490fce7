"""OrderAck and FinalAck: acknowledgments of transactional messages, end to end (MS-MQQB 2.2.4, 2.2.5)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from msmq_fast.packet.base import NULL_GUID
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, NameKind, parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Delivery

ORDERING_LABEL = "QM Ordering Ack"
ORDER_QUEUE = 4  # identifier of the private queue order_queue$ at every computer
BODY_SIZE = 36


def order_queue(manager: UUID = NULL_GUID, address: str = "") -> FormatName:
    """Returns the format name of the order queue of a queue manager, to which these acknowledgments are sent.

    It is the private name with the GUID `manager`, or the direct name with `TCP:address` if an address is
    given.
    """
    if address:
        return parse_format_name(rf"DIRECT=TCP:{address}\PRIVATE$\order_queue$")
    return FormatName(NameKind.PRIVATE, manager, ORDER_QUEUE)


@dataclass(slots=True)
class OrderAck:
    """The acknowledgment that transactional messages arrived in order, up to a sequence number."""

    CLASS: ClassVar[int] = MessageClass.ORDER_ACK

    sequence_ordinal: int
    sequence_timestamp: int
    sequence_number: int

    def encode_body(self) -> bytes:
        """Returns the 36 bytes of the body; the last 20 are zero."""
        return struct.pack(
            "<IIII20x",
            self.sequence_ordinal,
            self.sequence_timestamp,
            self.sequence_number,
            (self.sequence_number - 1) & 0xFFFFFFFF,
        )

    @classmethod
    def decode_body(cls, body: bytes) -> OrderAck:
        """Parse the body; the last 20 bytes and the previous number are ignored. Raises ValueError unless the
        body has 36 bytes.
        """
        if len(body) != BODY_SIZE:
            raise ValueError("the body of an OrderAck must have 36 bytes")
        return cls(*struct.unpack_from("<III", body))

    def message(self, destination: FormatName, source: UUID) -> Message:
        """Returns the message that carries the acknowledgment: express, priority 0, no time limit (2.2.4)."""
        return _carrier(destination, source, self.CLASS, self.encode_body(), Delivery.EXPRESS)


@dataclass(slots=True)
class FinalAck:
    """The acknowledgment that a transactional message was received or rejected at its destination."""

    sequence_ordinal: int
    sequence_timestamp: int
    sequence_number: int
    previous_number: int
    source: UUID
    message_id: int
    message_class: int = MessageClass.ACK_RECEIVE

    def encode_body(self) -> bytes:
        """Returns the 36 bytes of the body."""
        return struct.pack(
            "<IIII16sI",
            self.sequence_ordinal,
            self.sequence_timestamp,
            self.sequence_number,
            self.previous_number,
            self.source.bytes_le,
            self.message_id,
        )

    @classmethod
    def decode_body(cls, body: bytes, message_class: int) -> FinalAck:
        """Parse the body. Raises ValueError unless the body has 36 bytes."""
        if len(body) != BODY_SIZE:
            raise ValueError("the body of a FinalAck must have 36 bytes")
        ordinal, timestamp, number, previous, source, message_id = struct.unpack("<IIII16sI", body)
        return cls(ordinal, timestamp, number, previous, UUID(bytes_le=source), message_id, message_class)

    def message(self, destination: FormatName, source: UUID) -> Message:
        """Returns the message that carries the acknowledgment: recoverable, priority 0, no time limit
        (2.2.5).
        """
        return _carrier(destination, source, self.message_class, self.encode_body(), Delivery.RECOVERABLE)


def _carrier(destination: FormatName, source: UUID, kind: int, body: bytes, delivery: Delivery) -> Message:
    return Message(
        body=body,
        label=ORDERING_LABEL,
        destination=destination,
        priority=0,
        delivery=delivery,
        message_class=kind,
        time_to_reach_queue=0xFFFFFFFF,
        source_machine=source,
        hash_algorithm=0,
        encryption_algorithm=0,
    )

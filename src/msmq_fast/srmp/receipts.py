"""Receipts for messages that came by SRMP: delivery, commitment, stream and final stream receipts (3.1.7.3,
4.8).

A receipt is an ordinary message in the outgoing queue to the URL that the original message names for
receipts. So it waits while this URL is unreachable, and expires like other messages. Its content on the wire
follows from its class, correlation identifier and body. The envelope that is stored with the original message
provides all data that the receipt needs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from msmq_fast._native.framing import parse
from msmq_fast._native.queue import TAKEN
from msmq_fast.packet.acks import ORDERING_LABEL, FinalAck
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, parse_format_name
from msmq_fast.packet.soap import SRMPEnvelopeHeader, has_envelope
from msmq_fast.protocol.classes import MessageClass, is_negative
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.properties import Delivery, Journal
from msmq_fast.qm.outgoing.acknowledgment import identifier
from msmq_fast.qm.outgoing.latestonly import Place
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.srmp.counters import OnRefusal
from msmq_fast.srmp.destinations import Destinations
from msmq_fast.srmp.destinations import Place as QueuePlace
from msmq_fast.srmp.model import Envelope, Nonconforming
from msmq_fast.srmp.reading import read_envelope
from msmq_fast.srmp.reasons import Reason
from msmq_fast.srmp.returnpath import ReturnPaths, peer_of
from msmq_fast.srmp.streams import IncomingStreams, Terms
from msmq_fast.srmp.urls import parse_url

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager

__all__ = ["Receipts", "Sequences", "envelope_of"]

DECIDED: Final = frozenset(
    (
        MessageClass.ACK_RECEIVE,
        MessageClass.NACK_DELETED,
        MessageClass.NACK_Q_DELETED,
        MessageClass.NACK_Q_PURGED,
        MessageClass.NACK_RECEIVE_TIMEOUT,
        MessageClass.NACK_RECEIVE_REJECTED,
    )
)
"""Reasons that cause a commitment receipt or a final stream receipt (SR-212)."""


class Sequences(Protocol):
    """The outgoing streams, to which received receipts are applied. Call the methods inside a unit
    of work.
    """

    def stream_receipt(self, sender: UUID, sequence: int, last_ordinal: int, now: float) -> None:
        """Process a receipt for all messages of a stream up to an ordinal."""

    def final_receipt(
        self, sender: UUID, sequence: int, ordinal: int, message: int, message_class: int, now: float
    ) -> None:
        """Process the final receipt for one message of a stream; `message` is the number in the identifier of
        the message.
        """


def envelope_of(packet: bytes) -> Envelope | None:
    """Return the envelope of a stored packet; None if it has no envelope or an invalid one."""
    if not has_envelope(packet):
        return None
    header, _ = SRMPEnvelopeHeader.decode(packet, parse(packet).envelope_offset)
    try:
        return read_envelope(header.envelope.encode())
    except (Nonconforming, UnicodeEncodeError):
        return None


class Receipts:
    """Builds receipts and puts them into their queues. Call the methods inside the unit of work that causes
    the receipt.
    """

    def __init__(
        self,
        manager: QueueManager,
        destinations: Destinations,
        sequences: Sequences,
        streams: IncomingStreams,
        paths: ReturnPaths | None = None,
        on_refusal: OnRefusal | None = None,
    ) -> None:
        """`paths` decides where receipts may be sent. `on_refusal` is called for each receipt that must not
        be sent.
        """
        self._paths = paths or ReturnPaths()
        self._on_refusal = on_refusal
        self.sent: Counter[str] = Counter()  # by kind
        self._manager = manager
        self._destinations = destinations
        self._sequences = sequences
        self._streams = streams

    # ---- what AckPolicy asks for

    def acknowledge(self, packet: bytes, original: Message, reason: int) -> bool:
        """Send the receipt, if any, that a message asks for when the message reaches its queue or leaves its
        queue. Return whether a receipt was sent (SR-065 … SR-070).

        `original` is the message in `packet`, `reason` the class of its acknowledgment. Call only for
        messages whose destination queue is local (SR-211).
        """
        envelope = envelope_of(packet)
        if envelope is None:
            return False
        if reason == MessageClass.ACK_REACH_QUEUE:
            return self._deliver("delivery", envelope.delivery_to, original, reason, peer_of(packet))
        return self.decided(envelope, original, reason, peer_of(packet))

    def decided(self, envelope: Envelope, original: Message, reason: int, peer: str) -> bool:
        """Send a commitment receipt if a message from the address `peer` asks for a receipt about the outcome
        `reason`, a message class. Return whether a receipt was sent.
        """
        wanted = envelope.negative_only if is_negative(reason) else envelope.positive_only
        if not wanted or reason not in DECIDED:
            return False
        return self._deliver("commitment", envelope.commitment_to, original, reason, peer)

    def _deliver(self, kind: str, url: str | None, original: Message, reason: int, peer: str) -> bool:
        if url is None:
            return False
        receipt = Message(
            label=original.label,
            priority=original.priority,
            delivery=Delivery(original.delivery),  # not before its cause is durable
            message_class=reason,
            correlation_id=identifier(original),
            response_queue=original.destination,
            source_machine=self._manager.guid,
            hash_algorithm=0,
            encryption_algorithm=0,
        )
        return self._send(kind, url, receipt, peer) is not None

    def finish(self, packet: bytes, original: Message, reason: int) -> bool:
        """Send the final receipt for a message of a stream that has left its queue; the sender keeps the
        message until it gets this receipt. Return whether a receipt was sent (SR-215).

        A final receipt is sent only for a message that asks for a dead letter (SR-123).
        """
        envelope, transaction = envelope_of(packet), original.transaction
        if envelope is None or envelope.stream is None or transaction is None or reason not in DECIDED:
            return False
        if not original.journal & Journal.DEADLETTER:
            return False
        part = envelope.stream
        terms = self.terms(part.sender, part.sequence, envelope.to)
        if terms is None:
            return False
        ack = FinalAck(
            transaction.sequence_ordinal,
            transaction.sequence_timestamp,
            transaction.sequence_number,
            transaction.previous_number,
            part.sender,
            original.message_id,
            reason,
        )
        receipt = Message(
            body=ack.encode_body(),
            label=ORDERING_LABEL,
            priority=terms.priority,
            delivery=Delivery.RECOVERABLE,
            message_class=reason,
            correlation_id=identifier(original),
            response_queue=original.destination,
            source_machine=self._manager.guid,
            hash_algorithm=0,
            encryption_algorithm=0,
        )
        return self._send("final", terms.receipts_to, receipt, peer_of(packet) or terms.peer) is not None

    def answer_to(self, name: FormatName) -> FormatName | None:
        """Return the name of the queue into which acknowledgments of a message that arrived over MS-MQQB are
        put, or None if they must not be sent. `name` is the admin queue of the message, a URL.

        Unless the URL names this computer, the configuration must allow it, since the sender has no HTTP
        address.
        """
        try:
            url = parse_url(name.text)
            if self._destinations.find(name.text).destination.local:
                return name
            text = self._paths.bind(name.text, url, "")
            if text is not None:
                return parse_format_name(f"DIRECT={text}")
        except (ValueError, MSMQError):
            return None
        self._refused(name.text, "")
        return None

    def terms(self, sender: UUID, sequence: int, to: str) -> Terms | None:
        """Return the data that receipts for a stream to the URL `to` need; None if the stream is unknown."""
        try:
            queue = self._destinations.find(to).queue
        except ValueError:
            queue = None
        return self._streams.terms(sender.bytes_le, sequence, 0 if queue is None else queue.ordinal, to)

    def stream(self, sender: UUID, sequence: int, number: int, terms: Terms) -> Place | None:
        """Send a stream receipt (4.6). Returns the place of the receipt in the outgoing queue; None if no
        receipt was sent.

        The receipt is an express message: if it is lost, the sender of the stream repeats its messages and
        gets a new receipt.
        """
        # As an OrderAck, with the GUID in the name of the stream where a FinalAck has it.
        ack = FinalAck(sequence & 0xFFFFFFFF, sequence >> 32, number, number - 1, sender, 0)
        receipt = Message(
            body=ack.encode_body(),
            label=ORDERING_LABEL,
            priority=terms.priority,
            message_class=MessageClass.ORDER_ACK,
            response_queue=parse_format_name(f"DIRECT={terms.destination}"),
            source_machine=self._manager.guid,
            hash_algorithm=0,
            encryption_algorithm=0,
        )
        return self._send("stream", terms.receipts_to, receipt, terms.peer)

    # ---- on their way

    def _send(self, kind: str, url: str, receipt: Message, peer: str) -> Place | None:
        """Put a receipt into the outgoing queue to `url` and the address `peer`, or into the local queue that
        `url` names. Returns its place in the queue; None if the receipt must not or cannot be sent.
        """
        try:
            place = self._destinations.find(url)
            found = place.destination
            name = url if found.local else self._paths.bind(url, parse_url(url), peer)
            if name is None:
                return self._refused(url, peer)
            receipt.destination = parse_format_name(f"DIRECT={name}")
        except (ValueError, MSMQError):
            return self._lost()
        if not found.local:
            sent = self._manager.ack_policy.send_away(receipt)
        elif place.queue is None:
            sent = self._lost()
        elif place.internal:
            sent = self._to_ourselves(place.queue, receipt)
        else:
            sent = self._insert(place, place.queue, receipt)
        if sent is not None:
            self.sent[kind] += 1
        return sent

    def _to_ourselves(self, queue: Queue, receipt: Message) -> Place:
        """Apply a receipt at once, because this computer sends the stream of the receipt to itself."""
        sequences, now = self._sequences, self._manager.monotonic()
        ack = FinalAck.decode_body(receipt.body, receipt.message_class)
        sequence = ack.sequence_timestamp << 32 | ack.sequence_ordinal
        if receipt.message_class == MessageClass.ORDER_ACK:
            sequences.stream_receipt(ack.source, sequence, ack.sequence_number, now)
        else:
            sequences.final_receipt(
                ack.source, sequence, ack.sequence_number, ack.message_id, ack.message_class, now
            )
        return queue.core, 0

    def _insert(self, place: QueuePlace, queue: Queue, receipt: Message) -> Place | None:
        """Put a receipt into a local queue, if the sender of its original message may send to that queue.

        This sender counts as anonymous, since it was not authenticated.
        """
        manager = self._manager
        if queue.transactional or not (place.everybody or self._destinations.admits(queue)):
            return self._lost()
        receipt.message_id = manager.message_ordinals.take()
        receipt.sent_time = manager.ledger.now_s
        (result,), (key,) = queue.core.enqueue_packets([receipt.to_packet()])
        return (queue.core, key) if result in TAKEN else self._lost()

    def _refused(self, url: str, peer: str) -> Place | None:
        if self._on_refusal is not None:
            told = f"to {url}, for a message from {peer or 'no HTTP address'}"
            self._on_refusal(Reason.RECEIPT, told, {"peer": peer, "queue": url})
        return self._lost()

    def _lost(self) -> Place | None:
        self._manager.ack_policy.discarded += 1
        return None

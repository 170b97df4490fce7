"""The receive pipeline of SRMP: from a request to the status of its answer ([MC-MQSRM] 3.1.5.1, A-30 … A-37).

Plain function calls handle a message; it has no asyncio task of its own. So all requests of one turn of the
event loop share one commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from msmq_fast._native.history import DuplicateHistory
from msmq_fast._native.queue import TAKEN
from msmq_fast.packet.message import Message
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import InsufficientResources, MSMQError
from msmq_fast.qm.outgoing.messagelog import identifier_text
from msmq_fast.qm.queues.queue import Privacy, Queue
from msmq_fast.qm.services import State
from msmq_fast.security.allowance import Allowance
from msmq_fast.security.keyturns import KeyNeeded, KeyTurns, TooManyWait
from msmq_fast.srmp.classify import Kind, classify
from msmq_fast.srmp.compound import Compound, read_http, read_text, via_of
from msmq_fast.srmp.counters import Counters, OnRefusal, described
from msmq_fast.srmp.destinations import Destinations, Place
from msmq_fast.srmp.forwarding import Forwarder
from msmq_fast.srmp.http.request import HttpRequest
from msmq_fast.srmp.incoming import to_packet
from msmq_fast.srmp.intake import Intake, refusal
from msmq_fast.srmp.model import Envelope, Nonconforming, SignaturePart
from msmq_fast.srmp.patterns import EnvelopePatterns
from msmq_fast.srmp.reasons import Reason, Status
from msmq_fast.srmp.receipts import Receipts, Sequences
from msmq_fast.srmp.returnpath import with_peer
from msmq_fast.srmp.signature import SignaturePolicy, SignatureRefused, Signer, authenticated
from msmq_fast.srmp.streams import IncomingStreams
from msmq_fast.srmp.values import read_message_id
from msmq_fast.store.completion import Completion
from msmq_fast.store.errors import StoreError

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager

__all__ = ["Parts", "Pipeline", "Verify"]


class Verify(Protocol):
    """Checks the signature of a message (3.1.5.1.6.1)."""

    policy: SignaturePolicy

    def verify(
        self, signature: SignaturePart | None, envelope: bytes, body: bytes | None, extension: bytes | None
    ) -> Signer:
        """Returns the signer of a message. Raises SignatureRefused if the signature is wrong or missing."""


@dataclass(slots=True)
class Parts:
    """The objects and settings from which a `Pipeline` is built."""

    destinations: Destinations
    history: DuplicateHistory
    streams: IncomingStreams
    receipts: Receipts
    sequences: Sequences
    verify: Verify | None = None
    check_expiry: bool = True
    """Whether messages that have expired are dropped on arrival; if not, they are kept like others (A-08)."""
    hop_limit: int = 29
    """How many computers, this one included, may forward a message."""
    report: Callable[[bytes], None] | None = None
    """Called with each packet that has BaseHeader.Flags.TR set and was put into a queue."""
    note: Callable[[Compound, HttpRequest], None] | None = None
    """Called with each message that arrives over HTTP, before it is decided what becomes of it."""
    turns: KeyTurns | None = None
    """Schedules the operations with keys that `verify` needs."""
    dead_letters: Allowance = field(default_factory=lambda: Allowance(16 << 20, 3600.0))
    """Bytes of dead letters that expired messages of one address group may leave here."""


@dataclass(frozen=True, slots=True)
class _Admitted:
    """The result of the check that a message may be put into a queue; `signer` is None if no signature was
    verified.
    """

    signer: Signer | None


class Pipeline:
    """Handles arriving messages, one at a time, and counts their outcomes in `counters`."""

    def __init__(self, manager: QueueManager, parts: Parts, on_refusal: OnRefusal | None = None) -> None:

        def duplicate(source: UUID, ordinal: int, destination: str) -> None:
            message_id = identifier_text(source.bytes_le, ordinal)
            manager.message_log.duplicate(message_id, lambda: {"queue": destination})

        self.counters = Counters(manager.ledger, on_refusal, duplicate)
        self._manager = manager
        self._ledger = manager.ledger
        self._parts = parts
        self._destinations = parts.destinations
        self._intake = Intake(manager.ledger, parts.history, parts.streams, self.counters, parts.report)
        self._forwarder = Forwarder(manager)
        self._patterns = EnvelopePatterns()
        self._verifies_all = parts.verify is not None and parts.verify.policy.always

    # ---- entries

    def handle(self, request: HttpRequest) -> Completion[int]:
        """Handle one request; returns a completion with the status of the answer."""
        self.counters.peer = request.peer
        if self._manager.state is not State.READY:
            return self.counters.refuse(Reason.STOPPING, request.peer)
        content_type = request.header(b"content-type") or b""
        try:
            sender = hash((request.peer, request.target))
            compound = read_http(
                content_type.decode("latin-1"), request.body, lambda xml: self._patterns.read(xml, sender)
            )
            if compound.envelope.multicast is not None:
                raise Nonconforming("a message that arrives over HTTP must not name a multicast address")
        except Nonconforming as error:
            return self.counters.refuse(Reason.MALFORMED, f"{request.peer}: {error}")
        if self._parts.note is not None:
            self._parts.note(compound, request)
        raw = request.raw_head + bytes(request.body)
        return self._decide(lambda: self._receive(compound, raw, request.peer), request.peer)

    def handle_apdu(self, data: bytes, group: str, peer: str = "") -> None:
        """Handle one message from the address `peer` that arrived at a multicast group, `address:port`. Sends
        no answer (SR-144).
        """
        if self._manager.state is not State.READY:
            return
        self.counters.peer = peer
        try:
            compound = read_text(data)
        except Nonconforming as error:
            self.counters.count(Reason.MALFORMED, f"group {group}: {error}")
            return
        self._decide(lambda: self._spread(compound, data, group), f"group {group}", peer)

    def _decide(
        self, step: Callable[[], Completion[int]], source: str, peer: str | None = None
    ) -> Completion[int]:
        """Return the status that `step` returns; the status of a refusal if `step` raises an error.

        If `step` raises KeyNeeded, it has had no effect. It is then repeated when it is the turn of `source`
        (an address or a multicast group) to use a key. `peer` is the address of the sender; None: `source`.
        """
        self.counters.peer = source if peer is None else peer
        try:
            return step()
        except KeyNeeded:
            return self._wait_for_turn(step, source, self.counters.peer)
        except Nonconforming as error:
            return self.counters.refuse(Reason.MALFORMED, f"{source}: {error}")
        except InsufficientResources as error:
            return self.counters.refuse(Reason.TOO_LARGE, f"{source}: {error}")
        except StoreError as error:
            return self.counters.refuse(Reason.NOT_STORED, str(error))

    def _wait_for_turn(self, step: Callable[[], Completion[int]], source: str, peer: str) -> Completion[int]:
        turns = self._parts.turns
        if turns is None:
            raise ValueError("Parts.turns must be set: verifying a signature needs a turn to use a key")
        came: Completion[None] = Completion()
        try:
            if turns.ask(source, lambda _: came.resolve(None), self._manager.monotonic()) is None:
                return turns.take(source, lambda: self._decide(step, source, peer))
        except TooManyWait:
            return self.counters.refuse(Reason.KEYS, source)
        return came.then(lambda _: self._in_turn(step, source, peer))

    def _in_turn(self, step: Callable[[], Completion[int]], source: str, peer: str) -> Completion[int]:
        self.counters.peer = peer
        if self._manager.state is not State.READY:
            return self.counters.refuse(Reason.STOPPING, source)
        return self._decide(step, source, peer)

    # ---- where to

    def _receive(self, compound: Compound, raw: bytes, peer: str) -> Completion[int]:
        envelope = compound.envelope
        try:
            place = self._destinations.find(envelope.to)
        except ValueError:
            raise Nonconforming("the destination is not a URL to which messages can be sent") from None
        queue = place.queue
        if queue is None:
            if place.destination.local:
                return self.counters.turn_away(Reason.UNKNOWN_QUEUE, envelope, len(raw))
            if not place.destination.forward:
                return self.counters.turn_away(Reason.FOREIGN_HOST, envelope, len(raw))
            return self._forward(compound, raw, place, peer)
        kind = classify(envelope)
        if kind is None:
            return self.counters.turn_away(Reason.UNTYPED, envelope, len(raw))
        if kind is not Kind.USER:
            return self._receipt(compound, raw, kind, place, queue)
        if place.internal:
            return self.counters.turn_away(Reason.UNKNOWN_QUEUE, envelope, len(raw))
        if queue.transactional is (envelope.stream is None):
            demanded = Reason.TRANSACTIONAL if queue.transactional else Reason.NOT_TRANSACTIONAL
            return self.counters.turn_away(demanded, envelope, len(raw), queue.core)
        admitted = self._let_in(compound, len(raw), queue, everybody=place.everybody)
        if admitted is None:
            return Completion.of(int(Status.REJECTED))
        if self._late(envelope):
            return self._expired(compound, raw, peer, queue)
        packet = self._packet(compound, raw, peer, admitted)
        if envelope.stream is not None:
            return self._intake.take(queue.core, packet, envelope, envelope.stream, peer)
        return self._intake.insert([(queue.core, packet)], envelope)

    def _let_in(self, compound: Compound, size: int, queue: Queue, *, everybody: bool) -> _Admitted | None:
        """Check whether a user message may be put into a queue. If it may not, counts the refusal and returns
        None. Called before the message has any effect, even for an expired message.
        """
        envelope = compound.envelope
        if queue.properties.privacy is Privacy.BODY:
            self.counters.turn_away(Reason.PRIVACY, envelope, size, queue.core)  # SRMP has none (5.1)
            return None
        signer, demanded = None, queue.properties.authenticated
        # An operation with a key is not for strangers to cause: where nothing depends on it there is none.
        if demanded or (envelope.signature is not None and (self._verifies_all or not everybody)):
            try:
                signer = self._signer(compound)
            except SignatureRefused as error:
                self.counters.count(Reason.SIGNATURE, f"{described(envelope)}: {error}", envelope)
                self.counters.tell(Reason.SIGNATURE, envelope, size, queue.core)
                return None
        user = None if signer is None else signer.user
        if not everybody and not self._destinations.admits(queue, user):
            self.counters.turn_away(Reason.ACCESS_DENIED, envelope, size, queue.core)
            return None
        return _Admitted(signer)

    def _signer(self, compound: Compound) -> Signer:
        if self._parts.verify is None:
            raise SignatureRefused("this server cannot verify signatures")
        return self._parts.verify.verify(
            compound.envelope.signature, compound.envelope_xml, compound.body, compound.extension
        )

    def _spread(self, compound: Compound, raw: bytes, group: str) -> Completion[int]:
        """Put a multicast message once into every queue of the group (3.1.5.1.3). Always returns OK, since no
        answer is sent.
        """
        envelope = compound.envelope
        if envelope.multicast != group:
            raise Nonconforming("the destination of the message is not the group at which it arrived")
        queues = [each for each in self._destinations.bound(group) if not each.transactional]
        if not queues:
            self.counters.count(Reason.NO_GROUP, group, envelope)
        elif envelope.stream is not None:
            self.counters.turn_away(Reason.MULTICAST_STREAM, envelope, len(raw))
        elif classify(envelope) is not Kind.USER:
            self.counters.turn_away(Reason.UNTYPED, envelope, len(raw))
        else:
            asked = [
                (queue.core, self._let_in(compound, len(raw), queue, everybody=False)) for queue in queues
            ]
            let_in = [(core, admitted) for core, admitted in asked if admitted is not None]
            if let_in and self._late(envelope):
                self._expired(compound, raw, group, answers_to="")
            elif let_in:
                places = [(core, self._packet(compound, raw, "", admitted)) for core, admitted in let_in]
                self._intake.insert(places, envelope)
        return Completion.of(int(Status.OK))

    def _packet(self, compound: Compound, raw: bytes, peer: str, admitted: _Admitted | None = None) -> bytes:
        """Return the packet that a queue stores for a message from the address `peer`. The packet holds this
        address if the message asks for receipts or belongs to a stream.
        """
        envelope = compound.envelope
        if envelope.delivery_to or envelope.commitment_to or envelope.stream is not None:
            raw = with_peer(raw, compound.size, peer)
        packet = to_packet(compound, raw, self._ledger.now_s, overdue=not self._parts.check_expiry)
        signer = None if admitted is None else admitted.signer
        return packet if signer is None else authenticated(packet, signer)

    # ---- expiry

    def _late(self, envelope: Envelope) -> bool:
        """Return whether a message has expired (SR-057, SR-152)."""
        if not self._parts.check_expiry:
            return False
        now, msmq = self._ledger.now_s, envelope.msmq
        return now > envelope.expires_at or (msmq is not None and now > msmq.ttrq)

    def _expired(
        self,
        compound: Compound,
        raw: bytes,
        peer: str,
        queue: Queue | None = None,
        *,
        answers_to: str | None = None,
    ) -> Completion[int]:
        """Drop an expired message; send the negative receipt (A-41) and store the dead letter, if the message
        asks for these.

        No dead letter is stored here for a message of a stream, since the sender keeps the message; nor if
        the dead letters of `peer` would exceed their allowance here. In the second case the answer is 400,
        after which the sender stores the dead letter (SR-209). `answers_to` is the address to which receipts
        may be sent; None: the address `peer`.
        """
        envelope = compound.envelope
        deadletter = envelope.msmq is not None and envelope.msmq.deadletter and envelope.stream is None
        core = None if queue is None else queue.core
        if not envelope.negative_only and not deadletter:
            return self.counters.turn_away(Reason.EXPIRED, envelope, len(raw), core)
        address = peer if answers_to is None else answers_to
        packet = self._packet(compound, raw, address)
        ack_policy, reason = self._manager.ack_policy, MessageClass.NACK_REACH_QUEUE_TIMEOUT
        if ack_policy.must_wait(packet, reason):
            return self.counters.turn_away(Reason.MACHINE_QUOTA, envelope, len(raw))
        if deadletter and not self._parts.dead_letters.take(peer, len(packet), self._manager.monotonic()):
            return self.counters.turn_away(Reason.DEAD_LETTERS, envelope, len(raw), core)
        self.counters.turn_away(Reason.EXPIRED, envelope, len(raw), core)

        def follow() -> None:
            original = Message.from_packet(packet)
            self._parts.receipts.decided(envelope, original, MessageClass.NACK_RECEIVE_TIMEOUT, address)
            if deadletter:
                ack_policy.reject(packet, reason)

        return self._intake.unit(follow)

    # ---- receipts

    def _receipt(
        self, compound: Compound, raw: bytes, kind: Kind, place: Place, queue: Queue
    ) -> Completion[int]:
        """Apply a receipt to our own messages. Then store it in its destination queue, unless this is
        order_queue$ (A-50).
        """
        envelope = compound.envelope
        effect = self._effect(envelope, kind)
        internal = place.internal
        if envelope.stream is not None or (internal and effect is None):
            return self.counters.turn_away(Reason.UNTYPED, envelope, len(raw))
        if not internal and queue.transactional:
            return self.counters.turn_away(Reason.TRANSACTIONAL, envelope, len(raw), queue.core)
        if not internal and not place.everybody and not self._destinations.admits(queue):
            return self.counters.turn_away(Reason.ACCESS_DENIED, envelope, len(raw), queue.core)
        self.counters.receipts[kind] += 1
        if internal and effect is not None:
            return self._intake.unit(effect)
        return self._intake.insert([(queue.core, self._packet(compound, raw, ""))], envelope, effect)

    def _effect(self, envelope: Envelope, kind: Kind) -> Callable[[], None] | None:
        receipt, decision = envelope.stream_receipt, envelope.commitment_receipt
        if receipt is None:
            return None
        sequences, now = self._parts.sequences, self._manager.monotonic()
        sender, sequence, last = receipt.sender, receipt.sequence, receipt.last_ordinal
        if kind is Kind.STREAM_RECEIPT or decision is None:
            return lambda: sequences.stream_receipt(sender, sequence, last, now)
        message, message_class = _ordinal(decision.id), envelope.message_class
        return lambda: sequences.final_receipt(sender, sequence, last, message, message_class, now)

    # ---- messages that pass through

    def _forward(self, compound: Compound, raw: bytes, place: Place, peer: str) -> Completion[int]:
        """Put a message unchanged into the outgoing queue to the URL of its destination (4.10)."""
        envelope = compound.envelope
        if envelope.identifier[0] == self._manager.guid:
            told = f"{described(envelope)} was sent by this computer"
            return self.counters.refuse(Reason.NO_WAY, told, envelope)
        if len(via_of(raw)) >= self._parts.hop_limit:
            return self.counters.turn_away(Reason.HOPS, envelope, len(raw))
        if self._late(envelope):
            return self._expired(compound, raw, peer)
        forwarder, url = self._forwarder, place.destination.url
        try:
            core = forwarder.way_out(url).core
        except InsufficientResources:
            return self.counters.refuse(Reason.MACHINE_QUOTA, envelope.to, envelope)
        except MSMQError:
            return self.counters.refuse(Reason.NO_WAY, envelope.to, envelope)
        passage = forwarder.passage(url, envelope)
        if passage is not None and forwarder.is_known(passage):
            self.counters.turn_away(Reason.DUPLICATE, envelope, len(raw))
            return self._intake.when_kept(lambda: forwarder.is_known(passage))
        completion: Completion[int] = Completion()

        def kept(status: int) -> None:
            if status and passage is not None:
                forwarder.lost(passage)
            completion.resolve(Status.LATER if status else Status.OK)

        packet = self._packet(compound, raw, peer)
        (result,), (key,) = core.enqueue_packets([packet], kept)
        if result not in TAKEN:
            return self.counters.turn_away(refusal(result), envelope, len(raw))
        self._intake.trace(packet)
        if passage is not None:
            forwarder.passed(passage, core, key)
        self.counters.forwarded += 1
        return completion


def _ordinal(message_id: str) -> int:
    """Return the number in the message identifier that a receipt holds; 0 if the identifier is malformed."""
    try:
        return read_message_id(message_id)[1]
    except Nonconforming:
        return 0

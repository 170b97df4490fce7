"""Decides which side effects follow when a message leaves a queue, or never reaches it (DM-203, X-60 … X-69):
acknowledgments, source journaling, dead letters. The journal of the queue itself is written by native code.

The side effects are written in the unit of work that removes or refuses the message, so that both become
durable or neither does.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from msmq_fast._native.effects import dead_letter
from msmq_fast._native.queue import TAKEN, QueueCore
from msmq_fast._native.tables import StoreError
from msmq_fast.packet.base import INFINITE
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, NameKind
from msmq_fast.packet.soap import has_envelope
from msmq_fast.protocol.classes import MessageClass, is_negative
from msmq_fast.protocol.errors import InsufficientResources, MSMQError, PacketFault
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.outgoing.acknowledgment import INSECURE, acknowledgment, answer_queue, asked_for, lifetime
from msmq_fast.qm.outgoing.answers import AnswerQueues, group_of, may_answer
from msmq_fast.qm.outgoing.destinations import Destinations
from msmq_fast.qm.outgoing.messagelog import MessageLog
from msmq_fast.qm.outgoing.unsent import UnsentAcks
from msmq_fast.qm.queues.flow import FlowControl
from msmq_fast.qm.queues.incoming import IncomingProtocols, Receipts
from msmq_fast.qm.queues.opening import is_http
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueState, Role
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.queues.system import DEADLETTER, DEADXACT, JOURNAL, SystemQueue
from msmq_fast.qm.services import Services
from msmq_fast.store.schema import AckRequest

_log = logging.getLogger(__name__)

_SENT = 0  # the next queue manager keeps it
_KEPT_WHERE_REFUSED = (
    MessageClass.NACK_Q_EXCEED_QUOTA,
    MessageClass.NACK_REACH_QUEUE_TIMEOUT,
    MessageClass.NACK_HOP_COUNT_EXCEEDED,
)


class AckPolicy:
    """Decides which side effects a removed message has.

    `insecure_nacks`: SendInsecureNacks (QB-083). `acknowledged` counts acknowledgments by class, `discarded`
    counts those that could not be delivered (X-68). `dead_letters` counts the messages that became dead
    letters by the class of the reason, also those for which there was no room. `incoming` has the protocols
    that report the outcome of messages to their senders.
    """

    def __init__(
        self,
        services: Services,
        registry: QueueRegistry,
        flow: FlowControl,
        answers: AnswerQueues,
        destinations: Destinations,
        incoming: IncomingProtocols,
        message_log: MessageLog,
        *,
        insecure_nacks: bool,
    ) -> None:
        self._services = services
        self._writer = services.store.writer
        self._registry = registry
        self._flow = flow
        self._answers = answers
        self._destinations = destinations
        self._incoming = incoming
        self._message_log = message_log
        self._insecure = insecure_nacks
        self._chosen: dict[int, Queue] = {}
        self.acknowledged: Counter[int] = Counter()
        self.dead_letters: Counter[int] = Counter()
        self.discarded = 0
        self.unsent = UnsentAcks(self._finish, self._writer.unit, services.monotonic, services.faults)

    def __call__(
        self, role: int, packet: bytes, reason: int, ack_flags: int, chosen: int
    ) -> tuple[int, bool, QueueCore | None]:
        """Decide about the side effects that a removed message requests, and send its acknowledgment. Called
        by native code when the message is removed (Ledger.on_removed).

        Returns (class, sent, queue): the message class that describes the outcome of the message; whether an
        acknowledgment was sent; the dead-letter or journal queue for the message or a copy of it, or None.
        """
        try:
            with self._writer.unit():
                return self._decide(role, packet, reason, ack_flags, chosen)
        except (StoreError, MemoryError):
            raise  # the unit cannot go on
        except Exception as error:
            self._services.faults.note("the side effects of a message", error)
            if role == Role.DESTINATION and ack_flags & AckRequest.FINAL:
                self._tell_later(packet, reason)
            return reason, False, None

    def _decide(
        self, role: int, packet: bytes, reason: int, ack_flags: int, chosen: int
    ) -> tuple[int, bool, QueueCore | None]:
        try:
            message = Message.from_packet(packet)
        except PacketFault:
            return reason, False, None
        if role == Role.DESTINATION and message.message_class == MessageClass.NACK_ACCESS_DENIED:
            return reason, False, None  # it was refused before, and is kept for an operator
        receipts = self._incoming.receipts
        if receipts is not None and has_envelope(packet):
            acknowledged = role == Role.DESTINATION and self._guarded(
                lambda: self._receipts(receipts, packet, message, reason, ack_flags)
            )
            if role == Role.DESTINATION:  # its sender keeps copies of accepted messages and of failed streams
                kept = AckRequest.JOURNAL_POSITIVE | (
                    AckRequest.JOURNAL_NEGATIVE if message.transactional else 0
                )
                ack_flags &= ~int(kept)
            return reason, acknowledged, self._copy_to(role, message, reason, ack_flags, chosen)
        if role == Role.DESTINATION and ack_flags & AckRequest.FINAL:
            self._tell_sender(packet, reason)
        if role == Role.OUTGOING and reason == MessageClass.ACK_RECEIVE:
            return reason, False, None  # a connector has taken it: it is not at its destination yet
        if role == Role.OUTGOING and reason == MessageClass.NACK_REACH_QUEUE_TIMEOUT:
            reason = self._which_timeout(message)
        own = role == Role.OUTGOING and message.source_machine == self._services.guid
        acknowledged = reason != _SENT and bool(ack_flags & asked_for(reason))
        acknowledged = acknowledged and self._guarded(lambda: self._acknowledge(message, reason, own=own))
        return reason, acknowledged, self._copy_to(role, message, reason, ack_flags, chosen)

    def _guarded(self, step: Callable[[], bool]) -> bool:
        """Returns the result of `step`; False if it raises.

        A failed acknowledgment must not prevent the message from arriving or leaving: only the writes of
        `step` are rolled back, the enclosing unit continues, and the exception is counted.
        """
        try:
            with self._writer.unit():
                return step()
        except (StoreError, MemoryError):
            raise  # the unit cannot go on
        except Exception as error:
            self._services.faults.note("an acknowledgment", error)
            return False

    def _tell_sender(self, packet: bytes, reason: int) -> bool:
        """Send a FinalAck now; if that raises, schedule it for the time when the message has left its queue.
        Returns whether it was sent now.
        """
        try:
            with self._writer.unit():
                return self._finish(packet, reason)
        except (StoreError, MemoryError):
            raise  # the unit cannot go on
        except Exception as error:
            self._services.faults.note("a FinalAck", error)
            self._tell_later(packet, reason)
            return False

    def _tell_later(self, packet: bytes, reason: int) -> None:
        """Schedule a FinalAck for the time when the message has left its queue."""
        self._writer.when_durable(lambda status: None if status else self.unsent.add(packet, reason))

    def _receipts(
        self, receipts: Receipts, packet: bytes, message: Message, reason: int, ack_flags: int
    ) -> bool:
        """Acknowledge a message that came over HTTP and reached its destination; returns whether an
        acknowledgment was sent.
        """
        if ack_flags & AckRequest.FINAL and reason != MessageClass.ACK_REACH_QUEUE:
            receipts.finish(packet, message, reason)
        if not ack_flags & asked_for(reason) or not receipts.acknowledge(packet, message, reason):
            return False
        self.acknowledged[reason] += 1
        return True

    def reject(self, packet: bytes, reason: MessageClass) -> bool:
        """Apply the side effects of a message that another queue manager sent and this one refused: send
        acknowledgments, keep a dead letter. Returns whether there was any of these. Call inside a unit.
        """
        message = Message.from_packet(packet)
        acknowledged = bool(message.acknowledge & asked_for(reason)) and self._guarded(
            lambda: self._acknowledge(message, reason)
        )
        acknowledged = (message.transactional and self._tell_sender(packet, reason)) or acknowledged
        if not _is_kept(message, reason):
            return acknowledged
        self.dead_letters[reason] += 1
        queue = self._system(DEADLETTER)
        self._message_log.dead_letter(message, reason, queue.name)
        return dead_letter(queue.core, packet, reason) or acknowledged

    def must_wait(self, packet: bytes, reason: MessageClass) -> bool:
        """Whether a message that this queue manager would refuse must instead stay with the sending queue
        manager for now.

        True if the refusal would store a dead letter here while flow control admits no messages (X-38).
        """
        return self._flow.why is not None and _is_kept(Message.from_packet(packet), reason)

    # ---- copies

    def _copy_to(
        self, role: int, message: Message, reason: int, ack_flags: int, chosen: int
    ) -> QueueCore | None:
        if is_negative(reason):
            if not ack_flags & AckRequest.JOURNAL_NEGATIVE:
                return None
            target = self._dead_letters(message, chosen)
            if target is None:
                return None
            self.dead_letters[reason] += 1
            self._message_log.dead_letter(message, reason, target.name)
            return target.core
        if not ack_flags & AckRequest.JOURNAL_POSITIVE or reason not in (_SENT, MessageClass.ACK_REACH_QUEUE):
            return None
        if reason == _SENT and (message.transactional or message.source_machine != self._services.guid):
            return None  # not arrived before its receiver says so; and a router keeps no journal for others
        return self._system(JOURNAL).core

    def _dead_letters(self, message: Message, chosen: int) -> Queue | None:
        """Returns the dead-letter queue of a message (X-62, X-64).

        None for a transactional message of another queue manager: the sending queue manager keeps the dead
        letter if the message fails here or on the way.
        """
        if message.transactional and message.source_machine != self._services.guid:
            return None
        queue = self._chosen_queue(chosen) if chosen else None
        if queue is not None and queue.transactional == message.transactional:
            return queue
        return self._system(DEADXACT if message.transactional else DEADLETTER)

    def _chosen_queue(self, ordinal: int) -> Queue | None:
        queue = self._chosen.get(ordinal)
        if queue is None or queue.state is not QueueState.EXISTING:
            self._chosen.pop(ordinal, None)
            queue = self._registry.by_ordinal(ordinal)
            if queue is None or queue.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE):
                return None
            self._chosen[ordinal] = queue
        return queue

    def _system(self, system: SystemQueue) -> Queue:
        return self._registry.existing(system.part.key)

    def _which_timeout(self, message: Message) -> int:
        """Returns the message class for the time limit that expired while the message waited to be sent
        (DM-215).
        """
        reach = message.time_to_reach_queue
        if reach != INFINITE and message.sent_time + reach <= self._services.ledger.now_s:
            return MessageClass.NACK_REACH_QUEUE_TIMEOUT
        return MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER

    def no_room(self, ordinal: int) -> None:
        """Log that the queue with this ordinal has no room for copies of messages, so that they are discarded
        (X-35, X-36).
        """
        queue = self._registry.by_ordinal(ordinal)
        _log.warning(
            "%s has no room for copies of messages: %d were discarded since the start, for all queues",
            "a journal" if queue is None else queue.name,
            self._services.ledger.discarded,
        )

    # ---- acknowledgments

    def _finish(self, packet: bytes, reason: int) -> bool:
        """Send a FinalAck (MS-MQQB 3.1.7.2.2, 3.1.7.17). The sending queue manager then decides about the
        side effects of the message on its side. Returns whether a FinalAck was sent.
        """
        return reason != MessageClass.ACK_REACH_QUEUE and self._incoming.final_ack(packet, reason)

    def send_away(
        self, message: Message, via: FormatName | None = None, origin: str = ""
    ) -> tuple[QueueCore, int] | None:
        """Send an answer of this queue manager to a peer: put `message` into the outgoing queue of its
        destination.

        The write is part of the current unit, if there is one. A destination name that also denotes this
        computer is taken to mean another computer. Returns (core of the outgoing queue, lookup id); None if
        the queue did not accept the message.

        `origin` is the address of the peer, whose budget of outgoing queues is used. If another queue manager
        than the addressee routes the answer, `via` names the outgoing queue to that router.
        """
        if message.destination is None:
            return None
        services = self._services
        try:
            queue = self._answers.open(via or message.destination, group_of(origin))
            if queue is None:
                self.discarded += 1
                return None
            message.message_id = services.message_ordinals.take()
            message.sent_time = services.ledger.now_s
            (result,), (lookup_id,) = queue.core.enqueue_packets([message.to_packet()])
        except MSMQError:
            self.discarded += 1
            return None
        if result not in TAKEN:
            self.discarded += 1
            return None
        return queue.core, lookup_id

    def _acknowledge(self, message: Message, reason: int, *, own: bool = False) -> bool:
        """Send Administration Acknowledgment (MS-MQQB 3.1.7.15); returns False if the message requests none
        or none could be sent.

        `own`: True if this computer has sent the message; a message from a peer can name this computer as its
        source without proof.
        """
        services = self._services
        name = answer_queue(message, services.guid)
        if name is None or (reason in INSECURE and not self._insecure):
            return False
        origin = self._answers.origins.address(message.source_machine)
        ours = own or (not origin and message.source_machine == services.guid)
        receipts = self._incoming.receipts
        if receipts is not None and not own and is_http(name):
            name = receipts.answer_to(name)
            if name is None:
                return self._discard()
        elif not ours and not may_answer(name, origin, services.settings.addresses):
            return self._discard()
        try:
            queue = self._queue_for_answer(name, "" if ours else group_of(origin))
            if queue.transactional and queue.kind is not QueueKind.OUTGOING:
                return self._discard()
            reach = INFINITE if ours else lifetime(message, services.ledger.now_s)
            answer = acknowledgment(message, reason, services.guid, reach)
            answer.message_id = services.message_ordinals.take()
            answer.sent_time = services.ledger.now_s
            results, _ = queue.core.enqueue_packets([answer.to_packet()])
        except MSMQError:
            return self._discard()
        if results[0] not in TAKEN:
            return self._discard()
        self.acknowledged[reason] += 1
        return True

    def _queue_for_answer(self, name: FormatName, group: str) -> Queue:
        if not is_http(name) or name.kind is not NameKind.SUBQUEUE:
            return self._destinations.of_answer(name, group)
        queue = self._answers.open(name, group)  # bound to an address (`srmp.returnpath`)
        if queue is None:
            raise InsufficientResources("the limit of outgoing queues for acknowledgments is reached")
        return queue

    def _discard(self) -> bool:
        self.discarded += 1
        return False


def _is_kept(message: Message, reason: int) -> bool:
    """Whether a message that was refused becomes a dead letter here, and not at its sender."""
    return (
        reason in _KEPT_WHERE_REFUSED
        and bool(message.journal & Journal.DEADLETTER)
        and not message.transactional
    )

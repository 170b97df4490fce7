"""Sends dead letters again to their destinations: in one unit, each is enqueued for its destination and
removed from the dead-letter queue.
"""

from __future__ import annotations

from typing import Final

from msmq_fast._native.framing import parse
from msmq_fast._native.operations import is_transactional, withdraw
from msmq_fast._native.positions import PositionState
from msmq_fast._native.queue import TAKEN
from msmq_fast._native.queuebase import Received
from msmq_fast.packet.message import Message
from msmq_fast.packet.user import TransactionHeader
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.access import Access
from msmq_fast.qm.feed.callers import FeedCallers
from msmq_fast.qm.handles.handle import OpenQueue, refusal
from msmq_fast.qm.handles.opener import Opener
from msmq_fast.qm.operator.outcome import Outcome
from msmq_fast.qm.operator.plan import Plan
from msmq_fast.qm.operator.relocation import wrong_kind
from msmq_fast.qm.queues.browse import Page, Stretch, browse
from msmq_fast.qm.queues.protection import check_kept
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.records import stored
from msmq_fast.qm.services import Services
from msmq_fast.qm.transactions.transaction import Transactions
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import EventKind

_AVAILABLE: Final = int(PositionState.STATE_AVAILABLE)

_SOURCE: Final = slice(16, 32)  # UserHeader fields in a UserMessage packet (MS-MQMQ 2.2.19.2)
_SENT_TIME: Final = slice(52, 56)
_MESSAGE_ID: Final = slice(56, 60)


class Resubmission:
    """Sends dead letters again."""

    def __init__(
        self, services: Services, transactions: Transactions, opener: Opener, callers: FeedCallers
    ) -> None:
        self._services = services
        self._transactions = transactions
        self._opener = opener
        self._callers = callers

    def resubmit(
        self, source: Queue, stretch: Stretch, token: Token | None, plan: Plan | None = None
    ) -> Completion[Outcome]:
        """Send the next batch of messages of a dead-letter queue to their destinations again, with the
        present time as SentTime.

        The messages get new identifiers, since a receiver may know the old ones, and their time limits start
        again. A message stays in the dead-letter queue if its destination refuses it, or if the caller
        (`token`) may not send to that destination. With `plan`, the outcome is the same, but nothing is
        changed; what another computer will refuse is not predicted.
        """

        def predict(page: Page) -> Completion[Outcome]:
            outcome = Outcome(page.next, page.finished, plan=plan)
            targets = _Targets(self._opener, token)
            handled: list[int] = []
            try:
                for message in page.messages:
                    try:
                        self._predict(targets, message, plan)
                    except (MSMQError, ValueError) as error:
                        outcome.refuse(_as_refusal(error), message.lookup_id)
                        continue
                    handled.append(message.lookup_id)
                    outcome.count += 1
                    outcome.size += len(message.packet)
            finally:
                targets.close()
            outcome.refuse_rest(source, stretch, handled)
            return Completion.of(outcome)

        def send(page: Page) -> Completion[Outcome]:
            outcome = Outcome(page.next, page.finished)
            completion: Completion[Outcome] = Completion()
            targets = _Targets(self._opener, token)
            sent: list[int] = []
            try:
                with self._services.store.writer.unit() as writer:
                    for message in page.messages:
                        if source.core.positions.state(message.lookup_id) != _AVAILABLE:
                            continue
                        try:
                            self._send(targets.of(message), message)
                        except (MSMQError, ValueError) as error:
                            outcome.refuse(_as_refusal(error), message.lookup_id)
                            continue
                        sent.append(message.lookup_id)
                        outcome.count += 1
                        outcome.size += len(message.packet)
                    writer.when_durable(lambda status: stored(completion, status, outcome))
                    withdraw(source.core, sent, EventKind.MOVED, self._callers.number(token))
            finally:
                targets.close()
            outcome.refuse_rest(source, stretch, sent)
            return completion

        return browse(source.core, stretch).then(send if plan is None else predict)

    def _predict(self, targets: _Targets, message: Received, plan: Plan | None) -> None:
        """Raise the error with which `_send` would refuse a message."""
        target = targets.local(message)
        if target is not None:
            _check(target, message)
            if plan is not None:
                plan.add(target, len(message.packet))

    def _send(self, target: Queue, message: Received) -> None:
        transactional = _check(target, message)
        services = self._services
        packet = bytearray(message.packet)
        if transactional:
            _alone(packet, self._transactions.take_numbers())
        packet[_SOURCE] = services.guid.bytes_le
        packet[_SENT_TIME] = services.ledger.now_s.to_bytes(4, "little")
        packet[_MESSAGE_ID] = services.message_ordinals.take().to_bytes(4, "little")
        # As for every other sent message, with the side effects of an arrival.
        ((result,), _) = target.core.enqueue_packets([bytes(packet)])
        if result not in TAKEN:
            raise refusal(result)


def _check(target: Queue, message: Received) -> bool:
    """Check that a queue accepts a message; returns whether the message is transactional. Raises
    TRANSACTION_USAGE, and what `check_kept` raises.
    """
    transactional = is_transactional(message.packet)
    if target.kind is not QueueKind.OUTGOING and transactional != target.transactional:
        raise wrong_kind(target)
    check_kept(target, message.packet)
    return transactional


def _as_refusal(error: MSMQError | ValueError) -> MSMQError:
    """Return the reason for which a message stays; a ValueError is that of a damaged packet."""
    return error if isinstance(error, MSMQError) else MSMQError(str(error))


class _Targets:
    """The open destination queues of one batch; each is opened only once."""

    def __init__(self, opener: Opener, token: Token | None) -> None:
        self._opener = opener
        self._token = token
        self._open: dict[str, OpenQueue] = {}

    def of(self, message: Received) -> Queue:
        """Returns the queue, local or outgoing, for the destination of a message. Raises the errors of
        `Opener.open`.
        """
        return self._named(str(Message.from_packet(message.packet).destination))

    def local(self, message: Received) -> Queue | None:
        """Returns the destination queue of a message; None if it is on another computer. Creates no outgoing
        queue. Raises the errors of `Opener.open`.
        """
        name = str(Message.from_packet(message.packet).destination)
        return self._named(name) if self._opener.is_local(name) else None

    def _named(self, name: str) -> Queue:
        opened = self._open.get(name)
        if opened is None:
            opened = self._open[name] = self._opener.open(name, Access.SEND, token=self._token)
        return opened.queue

    def close(self) -> None:
        for opened in self._open.values():
            opened.close()


def _alone(packet: bytearray, number: int) -> None:
    """Rewrite the transaction header of a packet: the message is the only one of transaction `number`, and
    has no place in a sequence yet.
    """
    offset = parse(packet).fields()["transaction_offset"]
    old, end = TransactionHeader.decode(bytes(packet), offset)
    header = TransactionHeader(
        0, 0, 0, transaction_id=number, first=True, last=True, connector_manager=old.connector_manager
    )
    packet[offset:end] = header.encode()

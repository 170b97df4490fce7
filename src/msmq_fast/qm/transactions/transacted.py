"""Operations of an open queue inside a transaction: send, receive, look up, subscribe, move (DM-103, DM-115,
DM-130, DM-145).
"""

from __future__ import annotations

from collections.abc import Callable

from msmq_fast._native.queue import QueueCore
from msmq_fast._native.queuebase import Received
from msmq_fast.packet.message import Message
from msmq_fast.protocol.errors import (
    AccessDenied,
    InvalidParameter,
    MessageNotFound,
    MSMQError,
    TransactionUsage,
)
from msmq_fast.qm.access import Access
from msmq_fast.qm.handles.handle import OpenQueue, refusal
from msmq_fast.qm.handles.moving import check_move
from msmq_fast.qm.queues.opening import check_transactional
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.reading.cursor import Cursor
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.readers import BATCH, BATCH_BYTES, Gate, ReadRequest, Sink, Subscription
from msmq_fast.qm.transactions.transaction import Transaction
from msmq_fast.store.completion import Completion


def check_usage(queue: Queue) -> None:
    """Raises TRANSACTION_USAGE if the queue cannot take part in a transaction (DM-107).

    Outgoing queues can take part unless they send to a multicast address; only the destination knows whether
    its queue is transactional.
    """
    if not queue.transactional and not queue.core.outgoing:
        raise TransactionUsage(f"{queue.name} is not transactional")
    if isinstance(queue, OutgoingQueue):
        check_transactional(queue.destination)


class TransactedQueue:
    """An open queue within a transaction.

    Every call raises TRANSACTION_SEQUENCE once the transaction has ended, and the errors of the same method
    of OpenQueue. The constructor raises TRANSACTION_USAGE if the queue cannot take part in a transaction; see
    `check_usage`.
    """

    def __init__(self, opened: OpenQueue, transaction: Transaction) -> None:
        check_usage(opened.queue)
        self._opened = opened
        self._transaction = transaction
        if opened.caller:
            transaction.operations.caller = opened.caller

    # ---- sending

    def send(self, message: Message) -> int:
        """Send a message when the transaction commits; returns the ordinal of the message identifier.

        The message is sent as recoverable and with priority 0. Raises INSUFFICIENT_RESOURCES if a quota is
        used up.
        """
        core = self._sending()
        message.transaction = self._transaction.header(core)
        packet = self._opened.stamp(message).to_packet()
        (result,) = self.send_packets([packet])
        if result:
            raise refusal(result)
        return message.message_id

    def send_packets(self, packets: list[bytes], dead_letters: list[int] | None = None) -> list[int]:
        """Send stamped packets that have the header of this transaction; returns an EnqueueResult for each.

        For `dead_letters` see OpenQueue.send_packets.
        """
        core = self._sending()
        chosen = dead_letters or [0] * len(packets)
        return [
            self._transaction.send(core, packet, dead_letter)
            for packet, dead_letter in zip(packets, chosen, strict=True)
        ]

    def _sending(self) -> QueueCore:
        self._transaction.check()
        if self._opened.access is not Access.SEND:
            raise AccessDenied(f"the queue is open for {self._opened.access.name} only")
        return self._opened.queue.core

    # ---- reading

    def receive(
        self,
        timeout_ms: int | None,
        *,
        gate: Gate | None = None,
        tag: int | None = None,
        cursor: Cursor | None = None,
    ) -> ReadRequest:
        """Receive the first message of the queue, or the next message of `cursor`. It is locked now and
        removed by the commit. Waits up to `timeout_ms` (None: without limit).
        """
        self._transaction.check()
        if cursor is not None:
            return self._joined(cursor.receive(timeout_ms, gate=gate, hold=self._transaction, tag=tag))
        return self._joined(self._opened.receive(timeout_ms, gate=gate, hold=self._transaction, tag=tag))

    def _joined(self, request: ReadRequest) -> ReadRequest:
        if not request.completion.done:
            readers = self._transaction.readers
            readers.add(request)
            request.completion.add_done_callback(lambda _: readers.discard(request))
        return request

    def lookup(self, lookup_id: int, operation: Lookup, *, peek: bool = False) -> Completion[Received]:
        """Receive a message by LookupIdentifier. It is locked now and removed by the commit. Raises
        INVALID_PARAMETER for a peek (DM-132).
        """
        self._transaction.check()
        if peek:
            raise InvalidParameter(
                "a transaction cannot peek; receive the message, or peek without the transaction"
            )
        return self._joined(self._opened.look_up(lookup_id, operation, self._transaction)).completion

    def reject(self, lookup_id: int) -> None:
        """Reject a message that the application has received in this transaction.

        The commit removes the message. Its sender gets NACK_RECEIVE_REJECTED and a dead letter, if the
        message requests them. Raises MESSAGE_NOT_FOUND if this transaction has not received the message, or
        if the message was purged since.
        """
        self._transaction.check()
        self._opened.may_read(peek=False)
        core = self._opened.queue.core
        if not 0 <= lookup_id < 1 << 64 or not self._transaction.operations.reject(core, lookup_id):
            raise MessageNotFound(f"this transaction has not received the message {lookup_id}")

    def subscribe(
        self, sink: Sink, credit: int, on_end: Callable[[MSMQError], None] | None = None
    ) -> Subscription:
        """Deliver up to `credit` messages to `sink`. They are locked, and removed by the commit.

        `on_end` is called when the queue is deleted or the transaction ends.
        """
        self._transaction.check()
        subscription = TransactedSubscription(self._opened, sink, credit, self._transaction, on_end)
        self._opened.enter(subscription)
        self._transaction.readers.add(subscription)
        return subscription

    def move(self, lookup_id: int, target: OpenQueue) -> None:
        """Move a message to the queue of `target` when the transaction commits; until then the message is
        locked (DM-145).

        Raises what `moving.check_move` raises.
        """
        self._transaction.check()
        source = self._opened.queue
        self._opened.may_read(peek=False)
        check_move(source, lookup_id, target.access, target.queue, transactional=True)
        if not self._transaction.operations.move(source.core, lookup_id, target.queue.core):
            raise MessageNotFound(f"no message has the lookup identifier {lookup_id}")


class TransactedSubscription(Subscription):
    """A subscription whose messages are locked by a transaction. The end of the transaction decides whether
    they are removed or returned.
    """

    __slots__ = ("_opened", "_transaction")

    def __init__(
        self,
        opened: OpenQueue,
        sink: Sink,
        credit: int,
        transaction: Transaction,
        on_end: Callable[[MSMQError], None] | None,
    ) -> None:
        super().__init__(opened.queue.readers, sink, credit, transaction.owner, True, on_end)
        self._opened = opened
        self._transaction = transaction

    def serve(self, core: QueueCore, pending: bool) -> bool:
        """Take as many messages as the credit allows; returns False if there is nothing to take now."""
        messages = [] if pending else core.take(min(self.credit, BATCH), BATCH_BYTES, self.owner)
        if not messages:
            return False
        self.credit -= len(messages)
        self._transaction.locked_many(core, messages)
        self._sink(messages)
        return True

    def cancel(self, error: MSMQError | None = None) -> None:
        """End the subscription, because the transaction has ended."""
        self._opened.unsubscribe(self)
        if self._on_end is not None and error is not None:
            self._on_end(error)

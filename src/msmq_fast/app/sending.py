"""Handles SEND frames: builds packets from the messages, puts them into the queue, and answers each frame
once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msmq_fast._native.applane import LaneTarget
from msmq_fast._native.queue import TAKEN
from msmq_fast.app.building import MessageBuilder
from msmq_fast.packet.fields import sent_field
from msmq_fast.protocol.errors import MSMQError, TransactionUsage
from msmq_fast.protocol.frames import Frame, SendFlag, pack_frame
from msmq_fast.qm.handles.handle import OpenQueue, refusal
from msmq_fast.qm.identity.signing import Signing
from msmq_fast.qm.queues.protection import demands
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.transactions.transacted import TransactedQueue, check_usage
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.transactions.transaction import Transaction
    from msmq_fast.security.token import Token

_FIRST, _LAST, _NEXT = 1 << 2, 1 << 3, 1 << 4  # TransactionHeader.Flags: FM, LM, one more in ID


class SendResult:
    """The outcomes of one SEND frame: an ordinal for each message, or 0 and an entry in `refusals`."""

    __slots__ = ("count", "ordinals", "refusals")

    def __init__(self, ordinals: list[int], refusals: dict[int, MSMQError]) -> None:
        self.ordinals = ordinals
        self.refusals = refusals
        self.count = len(ordinals) - len(refusals)

    @classmethod
    def lost(cls, count: int, reason: MSMQError) -> SendResult:
        """Return the result of a frame of which none of the `count` messages was stored."""
        return cls([0] * count, dict.fromkeys(range(count), reason))

    def frames(self, request_id: int, flags: int) -> list[bytes | memoryview]:
        """Return the answer: a SENT_ONE frame for each message if `flags` has SendFlag.EACH, then SENT."""
        frames: list[bytes | memoryview] = []
        if flags & SendFlag.EACH:
            frames = [
                pack_frame(Frame.SENT_ONE, request_id, [index, self._code(index), ordinal])
                for index, ordinal in enumerate(self.ordinals)
            ]
        refusals = [
            [index, self.refusals[index].code, self.refusals[index].name, self.refusals[index].detail]
            for index in sorted(self.refusals)
        ]
        answer: list[Any] = [self.count, refusals]
        if flags & SendFlag.IDS:
            answer.append(self.ordinals)
        frames.append(pack_frame(Frame.SENT, request_id, answer))
        return frames

    def _code(self, index: int) -> int:
        refused = self.refusals.get(index)
        return 0 if refused is None else refused.code


class SendTarget:
    """A queue that is open for sending: builds packets from messages and puts them into the queue."""

    def __init__(
        self,
        manager: QueueManager,
        opened: OpenQueue,
        token: Token | None = None,
        signing: Signing | None = None,
    ) -> None:
        self._manager = manager
        self._opened = opened
        self._builder = MessageBuilder(
            manager, opened.destination_manager, sent_field(opened.format_name), token, signing
        )

    def lane(self) -> LaneTarget:
        """Return the target for the native fast path of SEND frames."""
        queue = self._opened.queue
        outgoing = queue.kind is QueueKind.OUTGOING
        free = not demands(queue)
        single = free and (outgoing or queue.transactional)
        return LaneTarget(
            self._builder.native,
            queue.core,
            self._manager.message_ordinals,
            self._manager.transactions.take_numbers if single else None,
            free and (outgoing or not queue.transactional),
        )

    @property
    def queue(self) -> Queue:
        """The queue, local or outgoing. Raises InvalidHandle if it is closed, QueueNotAvailable if it was
        deleted.
        """
        return self._opened.queue

    def close(self) -> None:
        """Close the queue; messages that were sent before still get their reply."""
        self._opened.close()

    def send(
        self,
        payload: memoryview,
        count: int,
        done: Callable[[SendResult], None],
        *,
        transaction: Transaction | None = None,
        single: bool = False,
    ) -> None:
        """Send the messages of a SEND payload. `done` is called once: when all of them are stored or, in a
        transaction, when the transaction has accepted them.

        `single`: each message is a transaction of its own. Raises FrameFault, and MSMQError if none of the
        messages can be sent.
        """
        manager = self._manager
        queue = self._opened.queue
        sink: TransactedQueue | None = None
        headers: tuple[int, ...] = ()
        if transaction is not None:
            sink = TransactedQueue(self._opened, transaction)
            transaction.check()
            following = transaction.number << 4
            first = _FIRST if transaction.operations.first_for(queue.core) else 0
            headers = (following | first, following)
        elif single:
            check_usage(queue)
            whole = manager.transactions.take_numbers(count) << 4 | _FIRST | _LAST
            headers = (whole, whole + _NEXT, _NEXT)
        elif queue.transactional and queue.kind is not QueueKind.OUTGOING:
            raise TransactionUsage("a transactional queue takes only messages that are sent in a transaction")
        built = self._builder.packets(payload, count, *headers)
        refusals = self._builder.prepare(built, queue)
        dead_letters = self._builder.dead_letters(built)
        packets: list[bytes] = []
        places: list[int] = []
        ordinals = [0] * count
        for index, item in enumerate(built):
            if not isinstance(item, int):
                packets.append(item)
                places.append(index)

        def taken(results: list[int]) -> None:
            for index, packet, result in zip(places, packets, results, strict=True):
                if result in TAKEN:
                    ordinals[index] = int.from_bytes(packet[56:60], "little")
                else:
                    refusals[index] = refusal(result)

        def kept(completion: Completion[tuple[list[int], list[int]]]) -> None:
            failure = completion.exception()
            if failure is None:
                taken(completion.result()[0])
            else:
                refused = failure if isinstance(failure, MSMQError) else MSMQError()
                refusals.update(dict.fromkeys(places, refused))
            done(SendResult(ordinals, refusals))

        if sink is None:
            self._opened.send_packets(packets, dead_letters).add_done_callback(kept)
        else:
            taken(sink.send_packets(packets, dead_letters))
            done(SendResult(ordinals, refusals))

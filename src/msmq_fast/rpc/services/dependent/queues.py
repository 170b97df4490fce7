"""Queues that dependent clients have opened (MS-MQMP 3.1.1.2, 3.1.1.3, 3.1.4.17 … 3.1.4.22, 3.1.7.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msmq_fast.protocol.errors import (
    AccessDenied,
    InsufficientResources,
    InvalidHandle,
    QueueNotFound,
    RemoteMachineNotAvailable,
)
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.transactions.multiple import MultipleQueue

if TYPE_CHECKING:
    from msmq_fast.packet.names import FormatName
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.reading.cursor import Cursor
    from msmq_fast.rpc.association import Association
    from msmq_fast.rpc.call import Call, Caller
    from msmq_fast.store.completion import Completion

__all__ = ["RESERVED_CURSOR", "DependentQueue", "DependentQueues"]

RESERVED_CURSOR: Final = 0x0000000B
"""A reserved cursor handle. Closing it has no effect (3.1.4.19), and no cursor has it."""
MOST_OPEN: Final = 65_536
MOST_CURSORS: Final = 1_000
"""The largest number of cursors of one open queue."""

_KIND: Final = "RPC_QUEUE_HANDLE"
_ORDER: Final = 1


class DependentQueue:
    """LocalQueueContextHandle (3.1.1.3): an open queue. `context` is the number by which clients read it
    (pdwQMContext).
    """

    def __init__(
        self, context: int, opened: OpenQueue | MultipleQueue, association: Association, caller: Caller
    ) -> None:
        self.context = context
        self.opened = opened
        self.association = association
        self.caller = caller

    @property
    def format_name(self) -> str:
        """The format name with which the queue was opened (OpenQueueDescriptor.FormatName)."""
        return str(self.opened.format_name)

    def reader(self) -> OpenQueue:
        """Returns the queue to read. Raises ACCESS_DENIED if it is open for sending."""
        if isinstance(self.opened, MultipleQueue) or self.opened.access is Access.SEND:
            raise AccessDenied("the queue is open for sending only")
        return self.opened

    def purge(self) -> Completion[int]:
        """Removes all messages. Raises what OpenQueue.purge raises."""
        return self.reader().purge()

    # ---- cursors

    def new_cursor(self) -> int:
        """Open Cursor: returns its handle. Raises INSUFFICIENT_RESOURCES if there are too many cursors."""
        opened = self.reader()
        if len(opened.cursors) >= MOST_CURSORS:
            raise InsufficientResources(f"{MOST_CURSORS} cursors are open, which is the limit")
        cursor = opened.open_cursor()
        if cursor.number == RESERVED_CURSOR:
            cursor.close()
            cursor = opened.open_cursor()
        return cursor.number

    def cursor(self, number: int) -> Cursor:
        """Returns the cursor with the handle `number`. Raises INVALID_HANDLE if this queue has no such
        cursor.
        """
        cursor = self.reader().cursors.get(number)
        if cursor is None:
            raise InvalidHandle(f"the queue has no cursor with the handle {number}")
        return cursor

    def close_cursor(self, number: int) -> None:
        """Close Cursor. Raises INVALID_HANDLE if there is no such cursor."""
        if number != RESERVED_CURSOR:
            self.cursor(number).close()


class DependentQueues:
    """LocalQueueContextHandleTable. Only the association that opened a queue can use its handle and
    context.
    """

    def __init__(self, manager: QueueManager, *, anonymous_outgoing: bool) -> None:
        self._manager = manager
        self._anonymous_outgoing = anonymous_outgoing
        self._by_context: dict[int, DependentQueue] = {}

    def __len__(self) -> int:
        return len(self._by_context)

    def open(
        self, call: Call, name: FormatName, access: Access, share: Share
    ) -> tuple[DependentQueue, bytes]:
        """Open Queue for a client: returns the queue and its RPC_QUEUE_HANDLE.

        Clients can send to queues of other computers but not read them, because a read would connect this
        server to a host of the client's choice. Raises REMOTE_MACHINE_NOT_AVAILABLE for such a read, what
        QueueManager.open raises, INSUFFICIENT_RESOURCES, and ACCESS_DENIED for outgoing queues.
        """
        if len(self._by_context) >= MOST_OPEN:
            raise InsufficientResources(
                f"{MOST_OPEN} queues are open for dependent clients, which is the limit"
            )
        text = str(name)
        if access is Access.SEND:
            self._check_destinations(call.caller, text)
        try:
            opened = self._manager.open_destinations(text, access, share, token=call.caller.token)
        except QueueNotFound:
            if access not in (Access.RECEIVE, Access.PEEK) or self._manager.elsewhere(text) is None:
                raise
            raise RemoteMachineNotAvailable(f"{text} cannot be read through this computer") from None
        queue = DependentQueue(self._new_context(), opened, call.association, call.caller)
        try:
            handle = call.handles.create(_KIND, queue, self.closed, _ORDER)
        except BaseException:
            opened.close()
            raise
        self._by_context[queue.context] = queue
        return queue, handle

    def _check_destinations(self, caller: Caller, text: str) -> None:
        """Raises an error if the caller may not send to the destinations.

        The number of destinations on other computers is limited, because this computer connects to each of
        them.
        """
        for element in self._manager.directory.expand(text).split(","):
            elsewhere = self._manager.elsewhere(element)
            if elsewhere is None:
                continue
            if not caller.name and not self._anonymous_outgoing:
                raise AccessDenied("anonymous callers may not send to other computers")
            if not self._manager.answer_queues.admits(elsewhere):
                raise InsufficientResources(
                    f"{self._manager.answer_queues.most} outgoing queues exist, which is the limit"
                )

    def check_admin_queue(self, caller: Caller, name: FormatName) -> None:
        """Raises ACCESS_DENIED if the caller may not request acknowledgments that are sent to the queue
        `name`.
        """
        bound = not caller.name and not self._anonymous_outgoing
        if bound and self._manager.elsewhere(str(name)) is not None:
            raise AccessDenied("anonymous callers may not request acknowledgments to other computers")

    def of_handle(self, call: Call, handle: bytes | None) -> DependentQueue:
        """Returns the queue with a handle. Raises RpcFault for an invalid handle."""
        queue: DependentQueue = call.handles.get(handle, _KIND)
        return queue

    def of_context(self, call: Call, context: int) -> DependentQueue:
        """Returns the caller's queue with this number. Raises INVALID_HANDLE if the caller has none."""
        queue = self._by_context.get(context)
        if queue is None or queue.association is not call.association:
            raise InvalidHandle("the queue handle is not open")
        return queue

    def close(self, call: Call, handle: bytes) -> None:
        """Close Queue: waiting reads end with OPERATION_CANCELLED. Raises RpcFault for an invalid handle."""
        self.closed(call.handles.close(handle, _KIND))

    def closed(self, queue: DependentQueue) -> None:
        """Clean up after the client has closed the queue or has disconnected."""
        self._by_context.pop(queue.context, None)
        queue.opened.close()

    def _new_context(self) -> int:
        """Return a number that cannot be guessed."""
        number = 0
        while not number or number in self._by_context:
            number = int.from_bytes(self._manager.random_bytes(4), "little")
        return number

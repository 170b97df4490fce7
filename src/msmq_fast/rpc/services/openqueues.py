"""Descriptors that are open for remote reading (rOpenQueueEntryCollection, MS-MQQP 3.1.1.5).

R_QMOpenRemoteQueue of qmcomm opens one for a client that names it to another queue manager (`open`);
RemoteQMOpenQueue of qm2qm makes it that queue manager's own (`take_over`). R_OpenQueue of RemoteRead does
both. Handles are 32-bit numbers that travel in the clear: they are random, and from the second step on only
the association that took the descriptor over can use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from msmq_fast.protocol.errors import InsufficientResources, InvalidHandle, InvalidParameter, MSMQError
from msmq_fast.qm.access import Access, Share
from msmq_fast.rpc.services.reads import RemoteQueue

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.rpc.association import Association
    from msmq_fast.rpc.call import Caller

__all__ = ["OpenQueues"]

MOST_OPEN = 65_536
"""Descriptors open for remote readers at a time."""
MOST_CURSORS = 10_000
"""Cursors of one of them."""


class OpenQueues:
    """All descriptors that are open for remote reading, by their handles."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._queues: dict[int, RemoteQueue] = {}
        self._owners: dict[int, Association] = {}  # that took them over, by handle
        self._cursors: set[int] = set()

    def __len__(self) -> int:
        return len(self._queues)

    def __iter__(self) -> Iterator[RemoteQueue]:
        return iter(list(self._queues.values()))

    def open(self, name: str, access: Access, share: Share, caller: Caller) -> RemoteQueue:
        """Open a queue of this computer for a remote reader; RemoteReadState is Opened.

        Raises what QueueManager.open does, as far as the caller's token allows, and INSUFFICIENT_RESOURCES
        when `MOST_OPEN` are open.
        """
        if len(self._queues) >= MOST_OPEN:
            raise InsufficientResources(f"{MOST_OPEN} queues are open for remote readers")
        opened = self._manager.open(name, access, share, token=caller.token)
        opened.two_phase.opened()
        remote = RemoteQueue(self._number(self._queues), opened, caller)
        self._queues[remote.handle] = remote
        return remote

    def find(self, handle: int) -> RemoteQueue | None:
        """Returns the descriptor with a handle, for any caller."""
        return self._queues.get(handle)

    def owned(self, handle: int, association: Association) -> RemoteQueue | None:
        """The descriptor with a handle if this association took it over (RA-28)."""
        return self._queues.get(handle) if self._owners.get(handle) is association else None

    def take_over(self, handle: int, association: Association, client: UUID) -> RemoteQueue:
        """The queue manager that reads was told of a descriptor: it is its own from now on, and
        RemoteReadState is ReadyForRead (RA-01).

        Raises INVALID_PARAMETER: there is no such descriptor (RA-02), or it was taken over already.
        """
        remote = self._queues.get(handle)
        if remote is None or remote.ready or remote.opened.closed:
            raise InvalidParameter("no queue is open for remote reading under this handle")
        remote.opened.two_phase.ready()
        self._owners[handle] = association
        remote.client = client
        return remote

    def release(self, remote: RemoteQueue) -> None:
        """The context of the opener is closed or lost: closes the descriptor unless it was taken over
        (MS-MQMP 3.1.4.3).
        """
        if not remote.ready:
            self.close(remote)

    def new_cursor(self, remote: RemoteQueue) -> int:
        """Open Cursor; its handle, which no other cursor has (QP-025).

        Raises INSUFFICIENT_RESOURCES, and what OpenQueue.open_cursor does.
        """
        if len(remote.cursors) >= MOST_CURSORS:
            raise InsufficientResources(f"{MOST_CURSORS} cursors are open")
        cursor = remote.opened.open_cursor()
        handle = self._number(self._cursors)
        self._cursors.add(handle)
        remote.cursors[handle] = cursor
        return handle

    def close_cursor(self, remote: RemoteQueue, handle: int) -> None:
        """Close Cursor: a read of it that waits ends with OPERATION_CANCELLED (RA-13).

        Raises INVALID_HANDLE.
        """
        cursor = remote.cursors.pop(handle, None)
        if cursor is None:
            raise InvalidHandle("there is no such cursor")
        self._cursors.discard(handle)
        cursor.close()

    def close(self, remote: RemoteQueue, error: MSMQError | None = None) -> None:
        """Close Queue: waiting reads end with `error` (OPERATION_CANCELLED), what was delivered and not
        acknowledged is available again (RA-03). Closing twice is fine.
        """
        if self._queues.pop(remote.handle, None) is None:
            return
        self._owners.pop(remote.handle, None)
        for read in list(remote.pending.values()):
            read.cancel(error)
        for read in list(remote.delivered.values()):
            read.put_back()
        self._cursors.difference_update(remote.cursors)
        remote.cursors.clear()
        remote.opened.close()

    def _number(self, taken: dict[int, RemoteQueue] | set[int]) -> int:
        """Return a random 32-bit number that is not 0 and not in use."""
        number = 0
        while not number or number in taken:
            number = int.from_bytes(self._manager.random_bytes(4), "little")
        return number

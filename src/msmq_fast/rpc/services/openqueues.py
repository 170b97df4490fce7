"""Queues that are open for remote reading (rOpenQueueEntryCollection, MS-MQQP 3.1.1.5). A descriptor stands
for one open of a queue.

For qm2qm there are two steps. First, R_QMOpenRemoteQueue of qmcomm opens a descriptor (`open`) and returns
its handle. Then the reading queue manager passes the handle to RemoteQMOpenQueue, which assigns the
descriptor to its association (`take_over`). R_OpenQueue of RemoteRead does both steps. Handles are 32-bit
numbers that are sent unencrypted. They are random, and after the second step only the association to which
the descriptor is assigned can use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
"""The largest number of descriptors that remote readers have open at a time."""
MOST_CURSORS = 10_000
"""The largest number of cursors of one descriptor."""


class OpenQueues:
    """All descriptors that are open for remote reading, by their handles."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._queues: dict[int, RemoteQueue] = {}
        self._owners: dict[int, Association] = {}  # the associations that took queues over, by handle
        self._cursors: set[int] = set()

    def __len__(self) -> int:
        return len(self._queues)

    def __iter__(self) -> Iterator[RemoteQueue]:
        return iter(list(self._queues.values()))

    def open(self, name: str, access: Access, share: Share, caller: Caller) -> RemoteQueue:
        """Opens a queue of this computer for a remote reader; its RemoteReadState is Opened.

        Raises what QueueManager.open raises for the caller's token, and INSUFFICIENT_RESOURCES if `MOST_OPEN`
        are open.
        """
        if len(self._queues) >= MOST_OPEN:
            raise InsufficientResources(f"{MOST_OPEN} queues are open for remote readers, which is the limit")
        token = replace(caller.token, address=caller.address, program="RPC")
        opened = self._manager.open(name, access, share, token=token)
        opened.two_phase.opened()
        remote = RemoteQueue(self._number(self._queues), opened, caller)
        self._queues[remote.handle] = remote
        return remote

    def find(self, handle: int) -> RemoteQueue | None:
        """Returns the descriptor with a handle without checking the association of the caller; None if there
        is none.
        """
        return self._queues.get(handle)

    def owned(self, handle: int, association: Association) -> RemoteQueue | None:
        """Returns the descriptor with a handle, if it is assigned to this association (RA-28); otherwise
        None.
        """
        return self._queues.get(handle) if self._owners.get(handle) is association else None

    def take_over(self, handle: int, association: Association, client: UUID) -> RemoteQueue:
        """Assigns a descriptor to the association of the queue manager that reads it; its RemoteReadState
        becomes ReadyForRead (RA-01).

        Raises INVALID_PARAMETER if there is no such descriptor (RA-02), or if it is already assigned.
        """
        remote = self._queues.get(handle)
        if remote is None or remote.ready or remote.opened.closed:
            raise InvalidParameter("no queue is open for remote reading under this handle")
        remote.opened.two_phase.ready()
        self._owners[handle] = association
        remote.client = client
        return remote

    def release(self, remote: RemoteQueue) -> None:
        """Closes the descriptor of a queue whose context handle of qmcomm was closed or lost, unless the
        descriptor is assigned to an association (MS-MQMP 3.1.4.3).
        """
        if not remote.ready:
            self.close(remote)

    def new_cursor(self, remote: RemoteQueue) -> int:
        """Open Cursor: returns the handle of a new cursor, which no other cursor has (QP-025).

        Raises INSUFFICIENT_RESOURCES, and what OpenQueue.open_cursor raises.
        """
        if len(remote.cursors) >= MOST_CURSORS:
            raise InsufficientResources(f"{MOST_CURSORS} cursors are open, which is the limit")
        cursor = remote.opened.open_cursor()
        handle = self._number(self._cursors)
        self._cursors.add(handle)
        remote.cursors[handle] = cursor
        return handle

    def close_cursor(self, remote: RemoteQueue, handle: int) -> None:
        """Close Cursor: a waiting read of the cursor ends with OPERATION_CANCELLED (RA-13). Raises
        INVALID_HANDLE.
        """
        cursor = remote.cursors.pop(handle, None)
        if cursor is None:
            raise InvalidHandle("the queue has no cursor with this handle")
        self._cursors.discard(handle)
        cursor.close()

    def close(self, remote: RemoteQueue, error: MSMQError | None = None) -> None:
        """Close Queue: waiting reads end with `error` (OPERATION_CANCELLED). Messages that were delivered but
        not acknowledged are available again (RA-03). Closing twice has no effect.
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

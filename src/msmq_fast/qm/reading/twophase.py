"""Two-phase reads (MS-MQDMPR 3.1.7.1.11, 3.1.7.1.12), with which other computers read queues of this one.

A message is first delivered and locked. Later the reader decides whether it is removed or returned to the
queue.
"""

from __future__ import annotations

from array import array
from enum import IntEnum
from typing import TYPE_CHECKING

from msmq_fast._native.queue import QueueCore
from msmq_fast._native.seek import holds
from msmq_fast.protocol.errors import InvalidHandle, TransactionSequence
from msmq_fast.qm.reading.readers import MAX_BYTES
from msmq_fast.qm.records import stored
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast._native.ledger import Ledger
    from msmq_fast._native.queuebase import Received


class RemoteReadState(IntEnum):
    """RemoteReadState of an open queue (OQD-09, ST-10)."""

    NONE = 0  # not read from another computer
    OPENED = 1  # the handle is known to the remote-read client only
    READY_FOR_READ = 2  # and to the computer of the queue


class TwoPhaseRead:
    """A read that Dequeue Message Begin has started. It is also the `Hold` that keeps its message locked;
    only this read can release the lock (DA-036).
    """

    __slots__ = ("_reads", "owner")

    def __init__(self, reads: TwoPhaseReads, owner: int) -> None:
        self._reads = reads
        self.owner = owner

    def locked(self, core: QueueCore, key: int) -> None:
        """Record that the read has locked a message; from now on `TwoPhaseReads.end` can end the read."""
        self._reads.add(key, self.owner)

    def unlocked(self, core: QueueCore, key: int) -> None:
        """Return the message to the queue, because the read was cancelled before the message was
        delivered.
        """
        self._reads.put_back(core, key)


class TwoPhaseReads:
    """The two-phase reads of one open queue that have locked a message and have not ended, by
    LookupIdentifier.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._owners: dict[int, int] = {}
        self.state = RemoteReadState.NONE

    def __len__(self) -> int:
        return len(self._owners)

    def opened(self) -> None:
        """Record that the handle was given to a client that will read with it from another computer."""
        self.state = RemoteReadState.OPENED

    def ready(self) -> None:
        """Record that the client has announced the handle to the computer of the queue. Raises INVALID_HANDLE
        if no client was given the handle.
        """
        if self.state is RemoteReadState.NONE:
            raise InvalidHandle("the queue is not open for remote reading")
        self.state = RemoteReadState.READY_FOR_READ

    def begin(self) -> TwoPhaseRead:
        """Returns the `Hold` for a read that locks the message it finds."""
        return TwoPhaseRead(self, self._ledger.new_owner())

    def take_head(self, core: QueueCore) -> Received | None:
        """Begin a read and lock the first message in one step; returns this message.

        Returns None if there is no message, or if its packet is not in memory.
        """
        owner = self._ledger.new_owner()
        taken = core.take(1, MAX_BYTES, owner)
        if not taken:
            return None
        received = taken[0]
        self._owners[received.lookup_id] = owner
        return received

    def add(self, key: int, owner: int) -> None:
        """Record that a read has locked the message with this key for `owner`."""
        self._owners[key] = owner

    def put_back(self, core: QueueCore, key: int) -> None:
        """Make a message available again at its old place (DM-125); purge it if the queue was purged."""
        core.release(array("Q", [key]), self._owners.pop(key, 0))

    def end(self, core: QueueCore, key: int, *, delete: bool, caller: int = 0) -> Completion[None]:
        """End the read of a message: remove it if `delete` is True, else return it to the queue. Resolved
        when this is durable. `caller` is the number of the reader in the feed.

        Raises TRANSACTION_SEQUENCE if no read of this handle has locked the message, or its lock has ended
        (DM-122).
        """
        owner = self._owners.get(key, 0)
        if not holds(core, key, owner):
            self._owners.pop(key, None)
            raise TransactionSequence("the message is not locked by this reader")
        if not delete:
            self.put_back(core, key)
            return Completion.of(None)
        ended: Completion[None] = Completion()
        core.acked(array("Q", [key]), owner, lambda status: stored(ended, status, None), caller)
        del self._owners[key]
        return ended

    def run_down(self, core: QueueCore) -> None:
        """Return all messages that the reader has locked, because its handle is closed (DM-126)."""
        for key in list(self._owners):
            self.put_back(core, key)

    def forget(self) -> None:
        """Forget all reads, because the queue was deleted."""
        self._owners.clear()

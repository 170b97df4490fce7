"""The messages of one queue that are leased to one subscription, by delivery number, and the store records of
the lease.

Delivery numbers have no gaps and grow by one for every message that is handed to the subscription. They are
never reused: a message that returns to the queue gets a new number when it is handed out again.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from msmq_fast._native.lease import chain, leased
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.records import Records
from msmq_fast.store.schema import ORDINAL_KEY, MetaName

__all__ = ["CHUNK", "Chunk", "LeaseHolder", "LeaseLost", "Stored", "stored_leases"]

CHUNK: Final = 8192
"""Maximum number of messages in one record."""

_VOIDS: Final = 32  # ranges of numbers that are remembered as void


class LeaseLost(Exception):
    """HTTP status 409: the delivery numbers of a call were never assigned, are already acknowledged, or are
    void because their lease has ended.
    """


class Chunk(NamedTuple):
    """Messages with consecutive delivery numbers, stored as one record. `keys` are the lookup ids of the
    messages, `first` is the delivery number of the first one.
    """

    first: int
    keys: array[int]

    @property
    def stop(self) -> int:
        return self.first + len(self.keys)

    def part(self, start: int, stop: int) -> array[int]:
        """Returns the lookup ids of the delivery numbers from `start` up to but not including `stop`."""
        return self.keys[max(start - self.first, 0) : max(stop - self.first, 0)]


class LeaseHolder:
    """The leased messages of one subscription on one queue.

    Delivery numbers below `start` are acknowledged or, if they are in `voids`, void. Numbers from `start` up
    to but not including `next` are leased.

    `owner` is the owner number with which the messages are locked. A write of the records fails if an earlier
    one failed, so that the records never describe a state that the messages in the store do not have.
    `on_rest` is called when no write is pending any more.
    """

    def __init__(
        self,
        subscription: str,
        queue: Queue,
        owner: int,
        records: Records,
        on_rest: Callable[[LeaseHolder], object],
    ) -> None:
        self.subscription = subscription
        self.queue = queue
        self.owner = owner
        self.start = 1
        self.next = 1
        self.voids: deque[tuple[int, int]] = deque(maxlen=_VOIDS)
        self.chunks: deque[Chunk] = deque()
        self.seconds = 0.0  # how long a lease lasts
        self.due = 0.0  # monotonic
        self.used = 0  # Unix seconds
        self.jobs: deque[Iterator[bool]] = deque()  # its requests, in order
        self.gone = False  # the queue was deleted
        self.flying = 0  # units that are not durable yet
        self.failure = 0  # status of the first failed unit since `take_failure`
        self.broken = False  # a unit failed: the records are out of date
        self._records = records
        self._on_rest = on_rest
        self._stale: list[bytes] = []  # rows that are to be deleted
        self._batch = 0

    @property
    def held(self) -> int:
        """How many delivery numbers are leased, including those of messages that were removed meanwhile."""
        return self.next - self.start

    # ---- numbers

    def give(self, keys: array[int]) -> Chunk:
        """Assign the next delivery numbers to the messages with these lookup ids."""
        chunk = Chunk(self.next, keys)
        self.chunks.append(chunk)
        self.next = chunk.stop
        return chunk

    def check(self, start: int, stop: int) -> None:
        """Raises LeaseLost unless all delivery numbers from `start` up to but not including `stop` are
        leased.
        """
        for first, behind in self.voids:
            if start < behind and first < stop:
                first, last = max(first, start), min(behind, stop) - 1
                raise LeaseLost(
                    f"deliveries {first} to {last} of {self.queue.name} are back in the queue: the lease of"
                    f" {self.subscription} has ended"
                )
        if stop > self.next:
            raise LeaseLost(
                f"{self.subscription} has deliveries up to {self.next - 1}; {stop - 1} does not exist"
            )
        if start < min(self.start, stop):
            raise LeaseLost(
                f"deliveries up to {self.start - 1} are already acknowledged, so {start} cannot be used again"
            )

    def still(self, start: int, stop: int) -> tuple[array[int], array[int]]:
        """Returns (lookup ids, delivery numbers) of the messages that still exist and have a number from
        `start` up to but not including `stop`.
        """
        keys, numbers = array("Q"), array("Q")
        for chunk in self.chunks:
            first = max(chunk.first, start)
            part = chunk.part(first, min(chunk.stop, stop))
            if part:
                found, numbered = leased(self.queue.core, part, first, self.owner)
                keys += found
                numbers += numbered
        return keys, numbers

    def front(self, stop: int, limit: int) -> array[int]:
        """Returns the lookup ids of the first leased delivery numbers: those below `stop`, at most `limit`,
        and only from the first chunk.
        """
        chunk = self.chunks[0]
        return chunk.part(self.start, min(chunk.stop, stop, self.start + limit))

    def advance(self, count: int) -> None:
        """Mark the first `count` leased delivery numbers as no longer leased."""
        self.start += count
        while self.chunks and self.chunks[0].stop <= self.start:
            self._stale.append(self._row(self.chunks.popleft().first))

    def snapshot(self) -> Callable[[], None]:
        """Returns a function that undoes later calls of `advance`: it restores the numbers as they are
        now.
        """
        start, chunks, stale = self.start, list(self.chunks), list(self._stale)

        def restore() -> None:
            self.start, self.chunks, self._stale = start, deque(chunks), stale

        return restore

    def take_back(self, first: int) -> array[int]:
        """Withdraw the delivery numbers from `first` on, because the subscription does not get them after
        all. Returns the lookup ids of their messages.
        """
        keys = array("Q")
        while self.chunks and self.chunks[-1].first >= first:
            chunk = self.chunks.pop()
            self._stale.append(self._row(chunk.first))
            keys = chunk.keys + keys
        self.next = first
        return keys

    def void(self, stop: int) -> list[array[int]]:
        """Void all leased delivery numbers below `stop`; returns the lookup ids of their messages, which are
        still locked.
        """
        stop = min(stop, self.next)
        if stop <= self.start:
            return []
        parts = [chunk.part(max(chunk.first, self.start), min(chunk.stop, stop)) for chunk in self.chunks]
        if self.voids and self.voids[-1][1] == self.start:
            self.voids[-1] = (self.voids[-1][0], stop)
        else:
            self.voids.append((self.start, stop))
        self.advance(stop - self.start)
        return [part for part in parts if part]

    # ---- records, in the current unit

    def write(self, chunk: Chunk | None = None) -> None:
        """Write the present state to the records, including the new `chunk` if given.

        Call inside a unit, which the caller must roll back if this raises.
        """
        live = {self._row(one.first) for one in self.chunks}  # numbers that were taken back are given again
        stale = [row for row in self._stale if row not in live]

        def ended(status: int) -> None:
            self.flying -= 1
            if status:
                self._stale += stale
                self.broken = True
                self._batch = 0  # later writes must not depend on one that failed
                self.failure = self.failure or status
            elif not self.flying:
                self.broken = False
            if not self.flying:
                self._on_rest(self)

        try:
            self._put(chunk, stale)
            self.queue.core.ledger.writer.when_durable(ended)
        except Exception:
            self.broken = True
            raise
        self._stale = []
        self.flying += 1

    def _put(self, chunk: Chunk | None, stale: list[bytes]) -> None:
        self._batch = chain(self.queue.core.ledger, self._batch)
        for row in stale:
            self._records.delete_meta(row)
        if chunk is not None:
            keys = chunk.keys
            if sys.byteorder == "big":
                keys = keys[:]
                keys.byteswap()
            self._records.set_meta(self._row(chunk.first), keys.tobytes())
        self._records.set_meta(self._row(None), self._head())

    def take_failure(self) -> int:
        """Returns the store status of the first unit that failed since the last call of this method; 0 if
        none failed.
        """
        status, self.failure = self.failure, 0
        return status

    def delete(self) -> None:
        """Delete all records of this holder, in the current unit."""
        for chunk in self.chunks:
            self._records.delete_meta(self._row(chunk.first))
        for row in self._stale:
            self._records.delete_meta(row)
        self._records.delete_meta(self._row(None))

    def _head(self) -> dict[str, Any]:
        voids = [list(pair) for pair in self.voids]
        return {
            "start": self.start,
            "next": self.next,
            "voids": voids,
            "seconds": self.seconds,
            "used": self.used,
        }

    def _row(self, first: int | None) -> bytes:
        name = MetaName.LEASE + ORDINAL_KEY.pack(self.queue.ordinal) + self.subscription.encode() + b"\0"
        return name if first is None else name + first.to_bytes(8)

    def restore(self, stored: Stored) -> None:
        """Read the state that was stored before the start. Raises ValueError, TypeError or KeyError if a
        record is damaged.
        """
        head = stored.head
        self.start, self.next = int(head["start"]), int(head["next"])
        self.seconds, self.used = float(head["seconds"]), int(head["used"])
        self.voids.extend((int(first), int(stop)) for first, stop in head["voids"])
        if not 0 < self.start <= self.next:
            raise ValueError("the delivery numbers are out of range")
        for first, packed in sorted(stored.chunks.items()):
            keys = array("Q", packed)
            if sys.byteorder == "big":
                keys.byteswap()
            chunk = Chunk(first, keys)
            if not chunk.stop <= self.next or (self.chunks and self.chunks[-1].stop != first):
                raise ValueError("the records contradict each other")
            self.chunks.append(chunk)
        self.advance(0)
        named = self.chunks and self.chunks[0].first <= self.start and self.chunks[-1].stop == self.next
        if self.held and not named:
            raise ValueError("a record with lookup ids is missing")


class Stored(NamedTuple):
    """The records of one subscription on one queue. `head` is the state, `chunks` the lookup ids by first
    delivery number, `names` the keys of all these records.
    """

    head: dict[str, Any]
    chunks: dict[int, bytes]
    names: list[bytes]


def stored_leases(records: Records) -> dict[tuple[int, str], Stored]:
    """Returns the records of all stored leases: (queue ordinal, subscription name) → records."""
    found: dict[tuple[int, str], Stored] = {}
    for key, value in records.metas(MetaName.LEASE):
        size = ORDINAL_KEY.size
        (ordinal,) = ORDINAL_KEY.unpack(key[:size])
        name, _, rest = key[size:].partition(b"\0")
        stored = found.setdefault((ordinal, name.decode("ascii", "replace")), Stored({}, {}, []))
        stored.names.append(MetaName.LEASE + key)
        if rest:
            stored.chunks[int.from_bytes(rest)] = value
        else:
            stored.head.update(value)
    return found

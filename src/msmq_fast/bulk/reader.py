"""Queues and the event feed as Arrow IPC streams.

The event loop selects the messages of the next batch (bounded work in native code). A worker thread reads
those that are not in memory, builds the columns and then the parts of the stream, nearly always without the
GIL. For each stream the thread prepares one batch while the client reads the batch before it, so that a slow
client costs no memory and many streams share the thread.
"""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msmq_fast._native.columncells import Encoded
from msmq_fast._native.columnevents import EventEncoder
from msmq_fast._native.columnmessages import MessageEncoder
from msmq_fast._native.columnrows import Rows, pick, scan
from msmq_fast._native.columnstore import Contents
from msmq_fast.bulk.worker import Worker
from msmq_fast.protocol.arrow import END_OF_STREAM, arrow_schema, record_batch
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.columns import DELIVERY_SEQUENCE, Column, copies
from msmq_fast.protocol.errors import QueueNotFound
from msmq_fast.protocol.text import printable
from msmq_fast.qm.bulk.bounds import Plan, Planned
from msmq_fast.qm.queues.kinds import kind_of
from msmq_fast.store.schema import EventKind, Transport

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.queues.queue import Queue

__all__ = ["UNLIMITED_BYTES", "BulkReader", "EventsGone", "Figures", "Part", "with_numbers"]

_log = logging.getLogger(__name__)

Part: TypeAlias = bytes | memoryview
"""A part of a stream. Receivers must not change it."""

ROWS: Final = 4096
BYTES: Final = 1 << 20
"""Maximum size of the packets in one batch, in bytes."""

UNLIMITED_BYTES: Final = 2 << 20
"""Maximum size of the packets in one batch, in bytes, if the share of a core that the reader may use is not
limited: larger batches mean fewer hand-overs between threads.
"""

HEADS_BYTES: Final = 16 << 20  # of packets that are looked at for a batch without bodies

CLASSES: Final = {int(value): value.name for value in MessageClass}
KINDS: Final = {int(kind): kind.name.lower() for kind in EventKind}
TRANSPORTS: Final = {int(transport): transport.name.lower() for transport in Transport}


class EventsGone(Exception):
    """The feed no longer holds the requested events; `first` is the number of the first event that it
    holds.
    """

    def __init__(self, first: int) -> None:
        super().__init__(f"the feed begins with event {first}: earlier events are deleted")
        self.first = first


@dataclass(slots=True)
class Figures:
    """Counters of bulk reads since the server started. `gone`: messages that were removed after the event
    loop had selected them and before the worker thread read them. `damaged`: messages that could not be read.
    """

    rows: int = 0
    events: int = 0
    batches: int = 0
    bytes: int = 0
    gone: int = 0
    damaged: int = 0

    def count(self, encoded: Encoded) -> None:
        """Add the rows, bytes and losses of one encoded batch to the counters."""
        self.rows += encoded.rows
        self.batches += 1
        self.bytes += encoded.bytes
        self.gone += encoded.gone
        self.damaged += encoded.damaged


class BulkReader:
    """Reads queues and events in bulk. A queue manager has one; call its methods on the event loop.

    `settle` requests a commit of the pending writes, and returns a watermark above every message that has
    arrived by now, once all of these are durable. `share` is the share of one core that reads may use; 0
    means no limit. `holders` returns the name of each lease holder by the number with which it locks
    messages.
    """

    def __init__(
        self,
        manager: QueueManager,
        settle: Callable[[], Awaitable[int]],
        *,
        incarnation: int = 0,
        share: float = 0.5,
        holders: Callable[[], Mapping[int, str]] | None = None,
    ) -> None:
        self._manager = manager
        self._settle = settle
        self._incarnation = incarnation
        self._holders = holders
        self._contents = Contents(manager.store.tables, background=True)
        self._worker = Worker(share, self._contents.boost)
        self.limited = share > 0
        self._batch_bytes = BYTES if self.limited else UNLIMITED_BYTES
        self.figures = Figures()

    @property
    def cpu_seconds(self) -> float:
        """Processor time that the worker thread has used, in seconds."""
        return self._worker.cpu_seconds

    def charge(self, used: float) -> None:
        """Count `used` seconds of processor time, which the event loop spent on a stream, toward the
        share.
        """
        self._worker.charge(used)

    async def plan(
        self,
        queue: Queue,
        start: int,
        stop: int,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        parts: int = 1,
    ) -> Planned:
        """Count the messages with arrival numbers from `start` up to but not including `stop`, and split them
        into about `parts` ranges (`qm.bulk.bounds.Plan`).

        Yields to the event loop while it counts a large queue.
        """
        if stop > self._manager.ledger.watermark:
            await self._settle()
        steps = Plan(self._manager.ledger, queue, start, stop, max_rows, max_bytes)
        for _ in iter(steps.step, True):
            await asyncio.sleep(0)
        return steps.planned(parts)

    async def messages(
        self, queue: Queue, start: int, stop: int, columns: Sequence[Column]
    ) -> AsyncGenerator[Part, None]:
        """Yields the parts of an IPC stream: rows with start <= arrival_seq < stop in order, up to the
        watermark.

        Raises ArrowMissing and QUEUE_NOT_FOUND before the first part; a later exception breaks the stream.
        """
        if stop > self._manager.ledger.watermark:
            stop = min(stop, await self._settle())
        position = start
        budget = self._budget(columns)

        def look() -> Rows | None:
            nonlocal position
            while position < stop:
                rows = scan(queue.core, position, stop, ROWS, budget)
                position = rows.next
                if len(rows):
                    return rows
            return None

        async for part in self._rows(queue, columns, look):
            yield part

    async def chosen(
        self, queue: Queue, lookup_ids: array[int], numbers: array[int], columns: Sequence[Column]
    ) -> AsyncGenerator[Part, None]:
        """Yields the parts of an IPC stream: the given messages in the given order, each with its
        `delivery_seq` from `numbers`. Raises as `messages` does.
        """
        columns = with_numbers(columns)
        position = 0
        budget = self._budget(columns)

        def look() -> Rows | None:
            nonlocal position
            while position < len(lookup_ids):
                rows = pick(queue.core, lookup_ids, numbers, position, ROWS, budget)
                position = rows.next
                if len(rows):
                    return rows
                self.figures.gone += rows.gone
            return None

        async for part in self._rows(queue, columns, look):
            yield part

    def _budget(self, columns: Sequence[Column]) -> int:
        """Return how many bytes of packets one batch may hold, so that its columns stay within the size of a
        batch.
        """
        times = copies(columns)
        return self._batch_bytes // times if times else HEADS_BYTES

    async def _rows(
        self, queue: Queue, columns: Sequence[Column], look: Callable[[], Rows | None]
    ) -> AsyncGenerator[Part, None]:
        schema = arrow_schema(columns)
        constants: dict[str, str | int | None] = {
            "qm_guid": str(self._manager.guid),
            "queue": queue.name,
            "queue_guid": str(queue.guid),
            "queue_kind": kind_of(queue),
        }
        encoder = MessageEncoder(self._contents, _pairs(columns), constants, CLASSES)
        with_holders = self._holders is not None and any(column.name == "lease_holder" for column in columns)

        def following() -> asyncio.Future[tuple[Encoded, Any]] | None:
            if queue.core.gone:
                raise QueueNotFound(f"the queue {queue.name} was deleted")
            rows = look()
            if rows is None:
                return None
            holders = self._holders() if with_holders and self._holders is not None else None

            def work() -> tuple[Encoded, Any]:
                encoded = encoder.encode(rows, holders)
                return encoded, _part(schema, encoded)

            return self._worker.run(work)

        pending = following()
        try:
            yield memoryview(schema.serialize())
            while pending is not None:
                encoded, part = await pending
                self.figures.count(encoded)
                if encoded.damaged:
                    _log.warning("%d messages of %s cannot be read", encoded.damaged, printable(queue.name))
                pending = following()
                if part is not None:
                    yield memoryview(part)
        finally:
            if pending is not None:
                pending.cancel()
        yield END_OF_STREAM

    async def events(self, start: int, stop: int, columns: Sequence[Column]) -> AsyncGenerator[Part, None]:
        """Yields the parts of an IPC stream: durable events with start <= feed_seq < stop.

        Before the first part, raises ArrowMissing, or EventsGone if the feed begins after `start`.
        """
        schema = arrow_schema(columns)
        constants: dict[str, str | int | None] = {
            "qm_guid": str(self._manager.guid),
            "incarnation": self._incarnation,
        }
        encoder = EventEncoder(
            self._contents, _pairs(columns), constants, CLASSES, KINDS, TRANSPORTS, _Names(self._manager)
        )
        position = start

        def following() -> asyncio.Future[tuple[Encoded, Any]]:
            def work() -> tuple[Encoded, Any]:
                encoded = encoder.encode(position, stop, ROWS)
                return encoded, _part(schema, encoded)

            return self._worker.run(work)

        pending: asyncio.Future[tuple[Encoded, Any]] | None = following()
        begun = False
        try:
            while pending is not None:
                encoded, part = await pending
                pending = None
                if encoded.first > position and not encoded.damaged:
                    raise EventsGone(encoded.first)
                position = encoded.next
                if not encoded.finished:
                    pending = following()
                self.figures.events += encoded.rows
                if encoded.damaged:
                    self.figures.damaged += encoded.damaged
                    _log.warning("%d records of the event feed cannot be read", encoded.damaged)
                if not begun:
                    begun = True
                    yield memoryview(schema.serialize())
                if part is not None:
                    yield memoryview(part)
        finally:
            if pending is not None:
                pending.cancel()
        yield END_OF_STREAM

    def close(self) -> None:
        """Stop the worker thread; open streams break off. Call this before the store is closed; a second call
        has no effect.
        """
        self._worker.close()
        self._contents.close()


def with_numbers(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns of deliveries: the delivery number first."""
    return (DELIVERY_SEQUENCE, *(column for column in columns if column != DELIVERY_SEQUENCE))


def _pairs(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.kind) for column in columns]


def _part(schema: Any, encoded: Encoded) -> Any:
    """Return the columns of `encoded` as a record batch in IPC form; None if there are no rows. Drops the
    columns, so that only one copy stays in memory.
    """
    part = record_batch(schema, encoded).serialize() if encoded.rows else None
    encoded.columns.clear()
    return part


class _Names:
    """Returns (name, GUID, kind) of a queue by its ordinal. The worker thread may call this object."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._known: dict[int, tuple[str, str, str]] = {}
        self._highest = -1

    def __call__(self, ordinal: int) -> tuple[str, str, str] | None:
        if ordinal > self._highest:  # later queues have greater ordinals
            queues = [*self._manager.registry.local(), *list(self._manager.outgoing())]
            gone = self._manager.events.names.gone()
            self._known = {old: (name, str(guid), kind) for old, (name, guid, kind) in gone.items()}
            self._known |= {queue.ordinal: (queue.name, str(queue.guid), kind_of(queue)) for queue in queues}
            self._highest = max(ordinal, max(self._known, default=0))
        return self._known.get(ordinal)

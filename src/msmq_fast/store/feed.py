"""The event feed: what happened to messages and queues, in commit order, for audits and analytics.

Native code appends the events of messages (`Writer.append_entry` with a FeedEntry of record.h) in the commit
of the change that they report. `Feed` adds events that are not about one message, reads ranges of events, and
deletes old events. Numbers grow by one; (incarnation, number) identifies an event permanently.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final, Protocol

from msmq_fast._native.batch import Writer
from msmq_fast._native.tables import Tables
from msmq_fast.store import decode, records
from msmq_fast.store.decode import EventKind, FeedEvent
from msmq_fast.store.schema import NUMBER_KEY, Table

_IDENTIFIER: Final = struct.Struct("<16sI")  # as feed entries hold it
_ORDINAL_AT: Final = 48  # offset of the number of the message identifier in an entry
_LOOK: Final = 16  # records read at a time for a trim: one may have a megabyte


class FeedStore(Protocol):
    """The methods of a store that the feed uses."""

    @property
    def writer(self) -> Writer:
        """The writer for all changes of the store."""

    @property
    def tables(self) -> Tables:
        """The tables with everything that is durable."""

    def unit(self, then: Callable[[int], object] | None = None) -> AbstractContextManager[Writer]:
        """See Store.unit."""

    def scan(
        self, table: int, lower: bytes = b"", upper: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """See Store.scan."""


class Feed:
    """Appends and reads events, and deletes old ones. If `enabled` is False, `append` writes nothing."""

    def __init__(self, store: FeedStore, *, enabled: bool = True) -> None:
        self.store = store
        self.enabled = enabled

    def append(
        self, kind: EventKind, time_us: int, *, queue: int = 0, subject: bytes = bytes(16), lazy: bool = False
    ) -> int:
        """Adds an event that is not about one message to the current batch. Returns the number of the event,
        or 0 if the feed is disabled. `subject` is the GUID of the queue that the event is about, in wire
        order.
        """
        if not self.enabled:
            return 0
        event = FeedEvent(0, kind, 0, 0, queue, 0, 0, time_us, subject, 0, 0)
        return self.store.writer.add_entry(Table.FEED, records.feed_entry(event), lazy)

    def bounds(self) -> tuple[int, int]:
        """Returns (number of the first durable event, number of the next event to be written); equal if the
        feed is empty.
        """
        tables = self.store.tables
        following = tables.next_number(Table.FEED)
        first = tables.scan(Table.FEED, b"", None, 1)
        return (NUMBER_KEY.unpack(first[0][0])[0], following) if first else (following, following)

    def read(self, start: int, stop: int | None = None) -> Iterator[FeedEvent]:
        """Yields durable events with start <= number < stop, in order. If the oldest of them were trimmed,
        begins with the first event that is left.
        """
        for key, value in self.store.scan(Table.FEED, self._record_with(start), None):
            for event in decode.feed(key, value):
                if stop is not None and event.number >= stop:
                    return
                if event.number >= start:
                    yield event

    def find(self, source: bytes, ordinal: int, start: int, budget: int) -> tuple[list[FeedEvent], int]:
        """Returns (events, number at which to continue). The events are the durable ones of the message with
        this identifier, from number `start` on. At the end of the feed, the second value is the number of the
        next event to be written.

        Reads about `budget` bytes of records, and decodes only records that contain the identifier.
        """
        wanted = _IDENTIFIER.pack(source, ordinal)
        events: list[FeedEvent] = []
        lower, following = self._record_with(start), start
        while True:
            found = self.store.tables.scan(Table.FEED, lower, None, _LOOK)
            for key, value in found:
                budget -= len(value)
                following = max(following, _span(key, value).stop)
                if wanted in value:
                    events += [
                        event
                        for event in decode.feed(key, value)
                        if event.number >= start and (event.source, event.ordinal) == (source, ordinal)
                    ]
                if budget <= 0:
                    return events, following
            if len(found) < _LOOK:
                break
            lower = NUMBER_KEY.pack(following)
        return events, max(following, self.bounds()[1])

    def select(
        self, start: int, budget: int, choose: Callable[[list[int]], Iterable[int]]
    ) -> tuple[list[FeedEvent], int]:
        """Returns (events, number at which to continue): of the durable events from `start` on, the ones that
        `choose` selects. `start` is the number of the first event of a record. `choose` gets the last number
        of the message identifiers in one record, and returns positions in this list.

        Reads about `budget` bytes of records, and decodes only the selected events. A damaged record is
        skipped.
        """
        events: list[FeedEvent] = []
        while budget > 0:
            found = self.store.tables.scan(Table.FEED, NUMBER_KEY.pack(start), None, _LOOK)
            for key, value in found:
                budget -= len(value)
                try:
                    wanted = list(choose(_ordinals(value)))
                    if wanted:
                        events += decode.feed_some(key, value, wanted)
                except (decode.DecodeError, ValueError):
                    pass
                start = max(start, _span(key, value).stop)
            if len(found) < _LOOK:
                break
        return events, start

    def _record_with(self, number: int) -> bytes:
        """Returns the key of the record that holds event `number`: the last record that begins at or before
        it.
        """
        tables = self.store.tables
        low, high = self.bounds()
        low = min(low, number)
        wanted = NUMBER_KEY.pack(number)
        step = 1
        while True:  # a record holds the events of one commit, so its key is seldom far below
            lower = max(low, number - step)
            found = tables.scan(
                Table.FEED, NUMBER_KEY.pack(lower), NUMBER_KEY.pack(min(number, high) + 1), 1 << 16
            )
            if found:
                return found[-1][0]
            if lower == low:
                return wanted
            step *= 16

    def trim(
        self, now_us: int, max_age_s: int, max_bytes: int, limit: int = 1000, keep_from: int | None = None
    ) -> int:
        """Deletes, in the current batch, the records that are older than `max_age_s` seconds, and the oldest
        ones while the feed is larger than `max_bytes`. Returns how many it deleted, at most `limit`.

        Records are deleted whole. A record that holds event `keep_from` or a later one is kept whatever its
        age, and so is the newest record, because the numbering continues from it. Call again while this
        returns `limit`.
        """
        oldest_us = now_us - max_age_s * 1_000_000
        surplus = self._size() - max_bytes
        dropped: list[bytes] = []
        lower = b""
        while len(dropped) < limit:
            found = self.store.tables.scan(Table.FEED, lower, None, _LOOK + 1)
            for key, value in found[:_LOOK]:
                span = _span(key, value)
                kept = keep_from is not None and span.stop > keep_from
                newest = key == found[-1][0]
                if newest or kept or len(dropped) == limit or (surplus <= 0 and span.last_us >= oldest_us):
                    return self._drop(dropped)
                surplus -= (span.stop - span.start) * decode.FEED_ENTRY.size
                dropped.append(key)
            if not found:
                break
            lower = found[-1][0]
        return self._drop(dropped)

    def _drop(self, keys: list[bytes]) -> int:
        with self.store.unit() as writer:
            for key in keys:
                writer.delete_record(Table.FEED, key)
        return len(keys)

    def _size(self) -> int:
        first, following = self.bounds()
        return (following - first) * decode.FEED_ENTRY.size


def _ordinals(value: bytes) -> list[int]:
    """Returns the last number of the message identifier of each event of a record. Raises ValueError."""
    size, count = decode.PACK_HEAD.unpack_from(value)[2:]
    entries = memoryview(value)[decode.PACK_HEAD.size :]
    if len(entries) != size * count or size % 4:
        raise ValueError("not a record of events")
    return entries.cast("I")[_ORDINAL_AT // 4 :: size // 4].tolist()


def _span(key: bytes, value: bytes) -> decode.FeedSpan:
    """Returns the range of a record of the feed. A damaged record counts as one event of the year 1970, so
    that `trim` deletes it.
    """
    try:
        return decode.feed_span(key, value)
    except decode.DecodeError:
        number = int.from_bytes(key)
        return decode.FeedSpan(number, number + 1, 0)

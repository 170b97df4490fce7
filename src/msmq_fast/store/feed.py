"""The event feed: what happened to messages and queues, in commit order, for audit and analytics.

Native code appends the events of messages (`Writer.append_entry` with a FeedEntry of record.h) in the commit
of the change they tell of; this class adds the rare ones, reads ranges and trims. Numbers grow by one;
(incarnation, number) names an event for good.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final, Protocol

from msmq_fast._native.batch import Writer
from msmq_fast._native.tables import Tables
from msmq_fast.store import decode, records
from msmq_fast.store.decode import EventKind, FeedEvent
from msmq_fast.store.schema import NUMBER_KEY, Table

_IDENTIFIER: Final = struct.Struct("<16sI")  # as feed entries hold it
_LOOK: Final = 16  # records read at a time for a trim: one may have a megabyte


class FeedStore(Protocol):
    """The part of a store that the feed uses."""

    @property
    def writer(self) -> Writer:
        """The writer for mutations."""

    @property
    def tables(self) -> Tables:
        """The durable tables."""

    def unit(self, then: Callable[[int], object] | None = None) -> AbstractContextManager[Writer]:
        """As Store.unit."""

    def scan(
        self, table: int, lower: bytes = b"", upper: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """As Store.scan."""


class Feed:
    """Append, read and trim; `enabled` = False keeps `append` from writing anything."""

    def __init__(self, store: FeedStore, *, enabled: bool = True) -> None:
        self.store = store
        self.enabled = enabled

    def append(
        self, kind: EventKind, time_us: int, *, queue: int = 0, subject: bytes = bytes(16), lazy: bool = False
    ) -> int:
        """Adds an event that is not about one message, to the current batch; its number, or 0 when the feed
        is off. `subject`: the GUID of what it is about, as on the wire.
        """
        if not self.enabled:
            return 0
        event = FeedEvent(0, kind, 0, 0, queue, 0, 0, time_us, subject, 0, 0)
        return self.store.writer.add_entry(Table.FEED, records.feed_entry(event), lazy)

    def bounds(self) -> tuple[int, int]:
        """(number of the first durable event, number of the next one); equal when the feed is empty."""
        tables = self.store.tables
        following = tables.next_number(Table.FEED)
        first = tables.scan(Table.FEED, b"", None, 1)
        return (NUMBER_KEY.unpack(first[0][0])[0], following) if first else (following, following)

    def read(self, start: int, stop: int | None = None) -> Iterator[FeedEvent]:
        """Durable events with start <= number < stop, in order; starts at the first one kept if that is
        later.
        """
        for key, value in self.store.scan(Table.FEED, self._record_with(start), None):
            for event in decode.feed(key, value):
                if stop is not None and event.number >= stop:
                    return
                if event.number >= start:
                    yield event

    def find(self, source: bytes, ordinal: int, start: int, budget: int) -> tuple[list[FeedEvent], int]:
        """Durable events of the message with this identifier, from number `start` on, and the number with
        which to go on: that of the next event when nothing is left.

        Looks through about `budget` bytes of records; decodes only those that have the identifier in them.
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

    def _record_with(self, number: int) -> bytes:
        """The key of the record that holds event `number`: the last one that begins at or before it."""
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
        """Drops, in the current batch, the oldest records beyond an age or a total size; returns how many, at
        most `limit`.

        Records are dropped whole; one that holds event `keep_from` or a later one stays whatever its age, and
        so does the newest, from which the numbering goes on. Call again while it returns `limit`.
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


def _span(key: bytes, value: bytes) -> decode.FeedSpan:
    """A damaged record goes when its turn comes, and holds up nothing."""
    try:
        return decode.feed_span(key, value)
    except decode.DecodeError:
        number = int.from_bytes(key)
        return decode.FeedSpan(number, number + 1, 0)

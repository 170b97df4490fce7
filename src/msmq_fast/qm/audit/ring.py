"""The ring of the audit in the store: the newest entries, in two shares.

1. An entry is one record of the table AUDIT, under its number: a version byte and a msgpack array, as
   `_FIELDS` describes it.
2. Acts have one half of the ring, denials and log-ons the other: a flood of denials cannot push out an act.
3. A share is limited in entries and in bytes. The records that have become too many are deleted in the same
   unit that writes the next entries, so that an entry costs no commit of its own.
4. Memory holds the number and the size of each durable record, not the entry. It changes only when the commit
   is durable: after a failed commit, memory and store still agree.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, Final

import msgpack

from msmq_fast.protocol.resources import AuditEntry
from msmq_fast.protocol.text import printable
from msmq_fast.qm.services import Services
from msmq_fast.store.decode import RECORD_VERSION
from msmq_fast.store.paging import scan_pages
from msmq_fast.store.records import cold
from msmq_fast.store.schema import NUMBER_KEY, Table

__all__ = ["ACT", "DENIAL", "KINDS", "LOGIN", "AuditRing", "Page", "Record", "bounded"]

ACT: Final = "act"
DENIAL: Final = "denial"
LOGIN: Final = "login"
KINDS: Final = (ACT, DENIAL, LOGIN)

_FIELDS: Final[tuple[tuple[str, type], ...]] = (
    ("time", int),
    ("kind", str),
    ("caller", str),
    ("sid", str),
    ("address", str),
    ("operation", str),
    ("object", str),
    ("result", str),
    ("detail", str),
    ("more", int),
)
"""The values of a record, in order. Later versions append values; a value that a record lacks has the default
of its field.
"""
_LONGEST: Final = {
    "caller": 200,
    "sid": 190,  # a SID has at most 15 subauthorities of 10 digits
    "address": 64,
    "operation": 100,
    "object": 300,
    "detail": 500,
}
"""Characters of the texts of an entry. An entry is below 6 KB with the longest UTF-8."""


def bounded(entry: AuditEntry) -> AuditEntry:
    """Return the entry with its texts printable and cut to their limits."""
    return AuditEntry(
        number=entry.number,
        time=entry.time,
        kind=entry.kind,
        result=entry.result,
        more=entry.more,
        **{name: _cut(getattr(entry, name), longest) for name, longest in _LONGEST.items()},
    )


def _cut(text: str, longest: int) -> str:
    text = printable(text[: longest + 1])
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


@dataclass(slots=True, eq=False)
class Record:
    """A record of the ring. `entry.number` is 0 until the record is written for the first time."""

    entry: AuditEntry


@dataclass(frozen=True, slots=True)
class Page:
    """Entries of one read. `following` is the number with which the next read continues."""

    entries: list[AuditEntry]
    following: int
    finished: bool


class _Share:
    """The durable records of one half of the ring: their numbers, in order, and their sizes in bytes."""

    def __init__(self, entries: int, size: int) -> None:
        self._entries = entries
        self._size = size
        self.numbers: list[int] = []
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._leaving: set[int] = set()  # their deletion is in a batch that is not durable yet

    def keep(self, number: int, size: int) -> None:
        if number not in self._sizes:
            insort(self.numbers, number)
        self._bytes += size - self._sizes.get(number, 0)
        self._sizes[number] = size

    def surplus(self) -> list[int]:
        """Return the oldest records that are beyond the limits, and are not being deleted yet."""
        count = len(self.numbers) - len(self._leaving)
        held = self._bytes - sum(self._sizes[number] for number in self._leaving)
        found: list[int] = []
        for number in self.numbers:
            if count <= self._entries and held <= self._size:
                break
            if number not in self._leaving:
                found.append(number)
                count -= 1
                held -= self._sizes[number]
        return found

    def leave(self, numbers: Sequence[int]) -> None:
        self._leaving.update(numbers)

    def left(self, numbers: Sequence[int], *, deleted: bool) -> None:
        self._leaving.difference_update(numbers)
        if deleted:
            for number in numbers:
                self._bytes -= self._sizes.pop(number)
                del self.numbers[bisect_left(self.numbers, number)]


class AuditRing:
    """The records of the audit. `entries` and `size` (bytes) limit the whole ring."""

    def __init__(self, services: Services, entries: int, size: int) -> None:
        self._services = services
        self._store = services.store
        self._acts = _Share(entries // 2, size // 2)
        self._others = _Share(entries - entries // 2, size // 2)
        self._next = 1

    def recover(self) -> None:
        """Read the numbers and sizes of the stored records. Deletes those that are too many, in the current
        batch.
        """
        for key, value in scan_pages(self._store.tables.scan, Table.AUDIT):
            if len(key) != NUMBER_KEY.size:
                self._services.report_corrupt(
                    "audit", f"the audit record with the key {key.hex()} is damaged"
                )
                continue
            (number,) = NUMBER_KEY.unpack(key)
            self._next = number + 1
            entry = _entry(number, value)
            if entry is None:
                self._services.report_corrupt("audit", f"the audit record {number} is damaged")
            # A damaged record leaves the ring with the denials.
            share = self._others if entry is None else self._share(entry.kind)
            share.keep(number, len(value))
        self.write((), lambda stored: None)

    def write(self, records: Sequence[Record], then: Callable[[bool], object]) -> None:
        """Write records in the current batch; one that was written before replaces its older state.
        `then(stored)` is called when the batch is durable or has failed.

        Raises StoreError if the store accepts nothing more.
        """
        sizes: list[tuple[_Share, int, int]] = []
        again = {record.entry.number for record in records}
        leaving = [
            (share, [number for number in share.surplus() if number not in again])
            for share in (self._acts, self._others)
        ]
        if not records and not any(numbers for _, numbers in leaving):
            return

        def ended(status: int) -> None:
            for share, numbers in leaving:
                share.left(numbers, deleted=not status)
            if not status:
                for share, number, size in sizes:
                    share.keep(number, size)
            then(not status)

        with self._store.writer.unit() as writer:
            writer.when_durable(ended)
            for record in records:
                entry = record.entry
                if not entry.number:
                    entry = record.entry = _numbered(entry, self._next)
                    self._next += 1
                value = _stored(entry)
                writer.put_record(Table.AUDIT, NUMBER_KEY.pack(entry.number), value)
                sizes.append((self._share(entry.kind), entry.number, len(value)))
            for _, numbers in leaving:
                for number in numbers:
                    writer.delete_record(Table.AUDIT, NUMBER_KEY.pack(number))
        for share, numbers in leaving:
            share.leave(numbers)

    def page(self, start: int, look: int, *, newest_first: bool) -> Page:
        """Return the durable entries among the next `look` records, from number `start` on: upwards, or with
        `newest_first` downwards. `start` 0 is the beginning of that order.
        """
        numbers = list(merge(self._acts.numbers, self._others.numbers))
        if newest_first:
            numbers.reverse()
            if start:
                numbers = numbers[bisect_left(numbers, -start, key=lambda number: -number) :]
        else:
            numbers = numbers[bisect_left(numbers, start) :]
        found: list[AuditEntry] = []
        for number in numbers[:look]:
            value = self._store.tables.get(Table.AUDIT, NUMBER_KEY.pack(number))
            entry = None if value is None else _entry(number, value)
            if entry is not None:
                found.append(entry)
        if len(numbers) > look:
            return Page(found, numbers[look], finished=False)
        following = start if newest_first or not numbers else numbers[-1] + 1
        return Page(found, following, finished=True)

    def _share(self, kind: str) -> _Share:
        return self._acts if kind == ACT else self._others


def _numbered(entry: AuditEntry, number: int) -> AuditEntry:
    return AuditEntry.from_map(entry.as_map() | {"number": number})


def _stored(entry: AuditEntry) -> bytes:
    return cold([getattr(entry, name) for name, _ in _FIELDS])


def _entry(number: int, value: bytes) -> AuditEntry | None:
    """Return the entry of a record, None if the record is damaged."""
    if value[:1] != bytes((RECORD_VERSION,)):
        return None
    try:
        values: Any = msgpack.unpackb(memoryview(value)[1:])
    except (ValueError, msgpack.exceptions.UnpackException):
        return None
    if not isinstance(values, list):
        return None
    fields: dict[str, Any] = {}
    for (name, kind), given in zip(_FIELDS, values, strict=False):
        if type(given) is not kind:
            return None
        fields[name] = given
    return AuditEntry(number=number, **fields)

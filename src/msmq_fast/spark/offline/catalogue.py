"""The catalogue of a store: its queue manager, its queues, and the key ranges of messages and events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from msmq_fast.spark.offline.backend import Backend, every
from msmq_fast.spark.offline.errors import OfflineError
from msmq_fast.store import decode
from msmq_fast.store.decode import DecodeError
from msmq_fast.store.schema import (
    LOGGED_SCHEMA_VERSION,
    NUMBER_KEY,
    ORDINAL_KEY,
    POSITION_KEY,
    MetaName,
    Table,
)

BANDS: Final = 8  # priorities: the first byte of a LookupIdentifier
BAND: Final = 56
SEQUENCES: Final = (1 << BAND) - 1

# QueueKind of qm/queues/queue.py -> the value in the column
_PUBLIC, _PRIVATE, _SYSTEM, _CONNECTOR, _OUTGOING, _JOURNAL, _SUBQUEUE = range(7)
_KINDS: Final = ("queue", "queue", "system", "connector", "outgoing", "journal", "subqueue")
_PARTS: Final = {
    "system$;journal": "journal",
    "system$;deadletter": "deadletter",
    "system$;deadxact": "xact_deadletter",
    "private$\\admin_queue$": "admin",
    "private$\\order_queue$": "system",
    "private$\\notify_queue$": "system",
}
_DELETING: Final = 2  # QueueState


class QueueEntry(NamedTuple):
    """A queue of the store. `ordinal`: its number in the store. `record`: its stored record; None if the
    record is damaged or missing.
    """

    ordinal: int
    name: str | None
    guid: str | None
    kind: str | None
    record: dict[str, Any] | None = None

    @property
    def deleting(self) -> bool:
        """Whether the queue and its messages are being deleted."""
        return self.record is not None and self.record.get("state") == _DELETING

    @property
    def purged_to(self) -> int:
        """The arrival number up to which messages are being purged. This is 0 if the queue is not being
        purged, and the highest possible number if the queue is being deleted.
        """
        stated = 0 if self.record is None else self.record.get("purged_to")
        return SEQUENCES if self.deleting else stated if isinstance(stated, int) else 0


@dataclass(frozen=True)
class Catalogue:
    """The queues of one store by ordinal. `deleted`: queues that were deleted, but to which events refer."""

    guid: str
    incarnation: int
    schema_version: int
    queues: dict[int, QueueEntry]
    deleted: dict[int, QueueEntry]

    def queue(self, ordinal: int) -> QueueEntry:
        """Returns the queue with an ordinal; an entry without a name if the store has no record of it."""
        return self.queues.get(ordinal) or QueueEntry(ordinal, None, None, None)

    def resolve(self, ordinal: int) -> tuple[str | None, str | None, str | None] | None:
        """Returns (name, GUID, kind) of an existing or deleted queue; None if the ordinal is unknown."""
        found = self.queues.get(ordinal) or self.deleted.get(ordinal)
        return None if found is None else found[1:4]


def read_catalogue(backend: Backend, computer: str) -> Catalogue:
    """Returns the catalogue from the tables META and QUEUE of a store. `computer` is the name of the queue
    manager's computer, which the store does not contain.

    Raises OfflineError if the directory has no store of a queue manager, or the store has a later schema
    version.
    """
    version = _meta(backend, MetaName.SCHEMA, 0)
    guid = _meta(backend, MetaName.GUID, None)
    if not isinstance(guid, bytes) or len(guid) != 16 or not isinstance(version, int):
        raise OfflineError("the directory has no store of a queue manager")
    if version > LOGGED_SCHEMA_VERSION:
        raise OfflineError(
            f"the store has schema version {version}, but this program supports versions up to "
            f"{LOGGED_SCHEMA_VERSION}: use a newer release"
        )
    return Catalogue(
        str(UUID(bytes_le=guid)),
        int(_meta(backend, MetaName.INCARNATION, 1)),
        version,
        _queues(backend, computer),
        _deleted(backend),
    )


def _meta(backend: Backend, name: bytes, default: Any) -> Any:
    value = backend.get(Table.META, name)
    try:
        return default if value is None else decode.cold(value)
    except DecodeError as error:
        raise OfflineError(f"the record {name.decode()} of the store is damaged: {error}") from None


def metas(backend: Backend, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields (name without the prefix, value) of all records of META whose names begin with a prefix."""
    for key, value in every(backend, Table.META, prefix, prefix[:-1] + bytes((prefix[-1] + 1,))):
        yield key[len(prefix) :], value


def _queues(backend: Backend, computer: str) -> dict[int, QueueEntry]:
    found: dict[int, QueueEntry] = {}
    for key, value in every(backend, Table.QUEUE):
        try:
            ordinal, record = decode.queue_key(key), decode.queue(value)
            parent = found.get(record["parent"]) if "parent" in record else None
            found[ordinal] = _entry(ordinal, record, parent, computer)
        except (DecodeError, KeyError, TypeError, ValueError, IndexError, AttributeError):
            if len(key) == ORDINAL_KEY.size:
                (ordinal,) = ORDINAL_KEY.unpack(key)
                found[ordinal] = QueueEntry(ordinal, None, None, None)
    return found


def _entry(ordinal: int, record: dict[str, Any], parent: QueueEntry | None, computer: str) -> QueueEntry:
    kind = record["kind"]
    guid = str(UUID(bytes_le=record["guid"]))
    if kind == _OUTGOING:
        name = str(record["destination"])
    elif kind == _CONNECTOR:
        suffix = ";XACTONLY" if record["transactional"] else ""
        name = f"CONNECTOR={UUID(bytes_le=record['site'])}{suffix}"
    elif kind == _JOURNAL:
        name = f"{parent.name if parent else ''};JOURNAL"
    else:
        name = f"{computer}\\{record['part']}"
    part = str(record.get("part", "")).casefold()
    return QueueEntry(ordinal, name, guid, _PARTS.get(part) or _KINDS[kind], record)


def _deleted(backend: Backend) -> dict[int, QueueEntry]:
    found: dict[int, QueueEntry] = {}
    for key, value in metas(backend, MetaName.DELETED_QUEUE):
        try:
            (ordinal,) = ORDINAL_KEY.unpack(key)
            record = decode.cold(value)
            guid = str(UUID(bytes_le=record["guid"]))
            name = str(record["name"])
            part = name.partition("\\")[2].casefold()
            found[ordinal] = QueueEntry(ordinal, name, guid, _PARTS.get(part) or _KINDS[record["kind"]])
        except (DecodeError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            continue
    return found


class Stretch(NamedTuple):
    """A key range: the messages of the queue `ordinal` with start <= LookupIdentifier < stop, or the events
    with start <= number < stop.
    """

    ordinal: int
    start: int
    stop: int


def message_stretches(backend: Backend, parts: int) -> Iterator[Stretch]:
    """Yields the key ranges of all messages: up to `parts` equally wide ranges per queue and priority."""
    lower = b""
    while first := backend.scan(Table.POSITION, lower, None, 1):
        key = first[0][0]
        if len(key) != POSITION_KEY.size:
            lower = key + b"\0"
            continue
        ordinal, lookup_id = POSITION_KEY.unpack(key)
        band = lookup_id >> BAND
        end = (band + 1) << BAND
        following = (ordinal << 64) + end
        last = _last(backend, Table.POSITION, key, following.to_bytes(13, "big")[-12:])
        yield from _parted(ordinal, lookup_id, end, (last & (1 << 64) - 1) + 1, parts)
        lower = following.to_bytes(12, "big") if following >> 96 == 0 else b"\xff" * 13


def _parted(ordinal: int, first: int, end: int, expected: int, parts: int) -> Iterator[Stretch]:
    """Splits the key range from `first` to `end` into up to `parts` ranges. The keys before `expected` are
    divided evenly. The last range also includes the keys from `expected` to `end`, at which no records are
    expected.
    """
    width = max(1, -(-max(0, expected - first) // parts))
    start = first
    for _ in range(parts - 1):
        if start + width >= expected:
            break
        yield Stretch(ordinal, start, start + width)
        start += width
    yield Stretch(ordinal, start, min(end, (1 << 64) - 1))


def event_stretches(backend: Backend, parts: int) -> Iterator[Stretch]:
    """Yields the key ranges of all events: up to `parts` ranges with the same number of event numbers."""
    first = backend.scan(Table.FEED, b"", None, 1)
    if not first or len(first[0][0]) != NUMBER_KEY.size:
        return
    (start,) = NUMBER_KEY.unpack(first[0][0])
    last = _last(backend, Table.FEED, first[0][0], NUMBER_KEY.pack((1 << 63) - 1))
    yield from _parted(0, start, (1 << 63) - 1, last + 1, parts)


def _last(backend: Backend, table: Table, first: bytes, end: bytes) -> int:
    """Returns the last key of a table in the range from `first`, which must exist, up to but not including
    `end`. The key is found by a binary search, and returned as a big-endian number.
    """
    low, high = int.from_bytes(first, "big"), int.from_bytes(end, "big")
    while high - low > 1:
        middle = (low + high) // 2
        if backend.scan(table, middle.to_bytes(len(first), "big"), end, 1):
            low = middle
        else:
            high = middle
    return low

"""What queues are called of which the event feed tells: events name them by ordinal, also long after they are
gone.

A queue that is deleted leaves a record of its name behind, until no event is kept that could mean it.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from msmq_fast.qm.services import Services
from msmq_fast.store.schema import ORDINAL_KEY, MetaName, Table

__all__ = ["FeedNames", "FeedQueue", "QueueName"]

_MESSAGES_LEFT: Final = 0  # of `until`: events of its messages are still to come


class FeedQueue(Protocol):
    """The facts about a queue that the feed uses."""

    @property
    def ordinal(self) -> int:
        """The number by which events name it."""

    @property
    def guid(self) -> UUID:
        """Its GUID."""

    @property
    def name(self) -> str:
        """Its path name, or the format name of a destination."""


class QueueName(NamedTuple):
    """A queue as events mean it: its path name, or the format name of a destination; `kind` as
    `queues.kinds.kind_of` returns it.
    """

    name: str
    guid: UUID
    kind: str


class FeedNames:
    """The names of deleted queues."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._records = services.records
        self._deleted: dict[
            int, tuple[QueueName, int]
        ] = {}  # the name, and what no event of it stands behind

    def gone(self) -> dict[int, QueueName]:
        """Deleted queues that the feed still has events of, by ordinal. Any thread may call this."""
        return {ordinal: name for ordinal, (name, _) in list(self._deleted.items())}

    # ---- what becomes of queues

    def deleted(self, queue: FeedQueue, kind: str) -> None:
        """A queue is deleted with the current batch; its messages are deleted later."""
        self._write(queue.ordinal, QueueName(queue.name, queue.guid, kind), _MESSAGES_LEFT)

    def emptied(self, ordinal: int) -> None:
        """The last message of a deleted queue is removed: it gets no more events."""
        found = self._deleted.get(ordinal)
        if found is not None:
            self._write(ordinal, found[0], self._services.store.writer.next_entry(Table.FEED))

    def trimmed(self, first: int) -> None:
        """No event before number `first` is kept."""
        gone = [o for o, (_, until) in self._deleted.items() if _MESSAGES_LEFT != until <= first]
        for ordinal in gone:
            del self._deleted[ordinal]
            self._records.delete_meta(_key(ordinal))

    def load(self) -> None:
        """At start: what the store has."""
        for key, value in self._records.metas(MetaName.DELETED_QUEUE):
            try:
                (ordinal,) = ORDINAL_KEY.unpack(key)
                name, until = _decoded(value)
            except (ValueError, TypeError, KeyError, struct.error) as error:
                self._services.report_corrupt("name", f"the name of a deleted queue is damaged: {error!r}")
                continue
            self._deleted[ordinal] = name, until

    def _write(self, ordinal: int, name: QueueName, until: int) -> None:
        record = {"name": name.name, "guid": name.guid.bytes_le, "kind": name.kind, "until": until}
        self._records.set_meta(_key(ordinal), record)
        self._deleted[ordinal] = name, until


def _key(ordinal: int) -> bytes:
    return MetaName.DELETED_QUEUE + ORDINAL_KEY.pack(ordinal)


def _decoded(record: dict[str, Any]) -> tuple[QueueName, int]:
    name = QueueName(str(record["name"]), UUID(bytes_le=record["guid"]), str(record["kind"]))
    return name, int(record["until"])

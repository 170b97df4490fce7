"""Names of the queues in the event feed: events refer to queues by ordinal, even long after their deletion.

A deleted queue leaves a record of its name until no event that refers to it is kept.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from msmq_fast.qm.services import Services
from msmq_fast.store.schema import ORDINAL_KEY, MetaName, Table

__all__ = ["FeedNames", "FeedQueue", "QueueName"]

_MESSAGES_LEFT: Final = 0  # a value of `until`: more events of its messages follow


class FeedQueue(Protocol):
    """The attributes of a queue that the feed uses."""

    @property
    def ordinal(self) -> int:
        """The number with which events refer to the queue."""

    @property
    def guid(self) -> UUID:
        """The GUID of the queue."""

    @property
    def name(self) -> str:
        """The path name of the queue, or the destination's format name if it is an outgoing queue."""


class QueueName(NamedTuple):
    """A queue as events describe it.

    `name` is its path name, or the destination's format name if it is an outgoing queue; `kind` is a value
    that `queues.kinds.kind_of` returns.
    """

    name: str
    guid: UUID
    kind: str


class FeedNames:
    """The names of deleted queues that events in the feed refer to."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._records = services.records
        self._deleted: dict[
            int, tuple[QueueName, int]
        ] = {}  # the name, and the event number after its last event

    def gone(self) -> dict[int, QueueName]:
        """Returns the deleted queues that the feed still refers to: ordinal → name. Safe to call from any
        thread.
        """
        return {ordinal: name for ordinal, (name, _) in list(self._deleted.items())}

    # ---- what becomes of queues

    def deleted(self, queue: FeedQueue, kind: str) -> None:
        """Record the name of a queue that is deleted in the current batch; its messages are deleted later."""
        self._write(queue.ordinal, QueueName(queue.name, queue.guid, kind), _MESSAGES_LEFT)

    def emptied(self, ordinal: int) -> None:
        """Record that the last message of a deleted queue was deleted: the feed gets no more events of this
        queue.
        """
        found = self._deleted.get(ordinal)
        if found is not None:
            self._write(ordinal, found[0], self._services.store.writer.next_entry(Table.FEED))

    def trimmed(self, first: int) -> None:
        """Delete the names that only deleted events refer to: the events before number `first` were
        deleted.
        """
        gone = [o for o, (_, until) in self._deleted.items() if _MESSAGES_LEFT != until <= first]
        for ordinal in gone:
            del self._deleted[ordinal]
            self._records.delete_meta(_key(ordinal))

    def load(self) -> None:
        """Read the stored names at start."""
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

"""Records of the queue manager other than messages ("cold records"): one version byte and one msgpack value
(KV-01, KV-06).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from msmq_fast._native.batch import Writer
from msmq_fast._native.tables import Reader, Tables
from msmq_fast.protocol.errors import MessageStorageFailed
from msmq_fast.store import decode
from msmq_fast.store.completion import Completion
from msmq_fast.store.meta import read_meta
from msmq_fast.store.paging import scan_pages
from msmq_fast.store.records import cold
from msmq_fast.store.schema import OF_QUEUES, ORDINAL_KEY, Table, outgoing_stream_key


class Store(Protocol):
    """The part of the store that the queue manager uses."""

    @property
    def writer(self) -> Writer:
        """The writer for all changes of the store."""

    @property
    def reader(self) -> Reader:
        """The reader of packets that are not in memory."""

    @property
    def tables(self) -> Tables:
        """The durable tables."""

    def commit(self) -> None:
        """Wait until every write of the current batch is durable. Raises StoreError."""

    def unit(self, then: Callable[[int], object] | None = None) -> AbstractContextManager[Writer]:
        """A unit: all writes inside the context are in one commit. `then(status)` is called when the unit is
        durable (status 0) or has failed.
        """

    def scan(
        self, table: int, lower: bytes = b"", upper: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields (key, value) of every record with lower <= key < upper, in key order."""


class Records:
    """Reads and writes cold records; the writes belong to the current unit of the writer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def meta(self, name: bytes, default: Any = None) -> Any:
        """Returns the value of META with this key, or `default` if there is none. Raises StoreError if the
        value is damaged.
        """
        return read_meta(self._store.tables, name, default)

    def set_meta(self, name: bytes, value: Any) -> None:
        """Write a value of META."""
        self._store.writer.put_record(Table.META, name, cold(value))

    def delete_meta(self, name: bytes) -> None:
        """Delete a value of META."""
        self._store.writer.delete_record(Table.META, name)

    def metas(self, prefix: bytes) -> Iterator[tuple[bytes, Any]]:
        """Yields (rest of the key, value) for every value of META whose key begins with `prefix`. Raises
        StoreError if a value is damaged.
        """
        upper = prefix[:-1] + bytes((prefix[-1] + 1,))
        for name, _ in scan_pages(self._store.tables.scan, Table.META, prefix, upper):
            yield name[len(prefix) :], self.meta(name)

    def queues(self, report_corrupt: Callable[[str, str], None]) -> list[tuple[int, dict[str, Any]]]:
        """Returns (queue ordinal, record) of all queue records; calls `report_corrupt(kind, text)` for each
        damaged record.
        """
        result: list[tuple[int, dict[str, Any]]] = []
        for key, value in scan_pages(self._store.tables.scan, Table.QUEUE):
            try:
                result.append((decode.queue_key(key), decode.queue(value)))
            except decode.DecodeError as error:
                report_corrupt("queue", f"the queue record with the key {key.hex()} is damaged: {error}")
        return result

    def set_queue(self, ordinal: int, record: dict[str, Any]) -> None:
        """Write a queue record."""
        self._store.writer.put_record(Table.QUEUE, ORDINAL_KEY.pack(ordinal), cold(record))

    def delete_queue(self, ordinal: int) -> None:
        """Delete the record of a queue in each table of `OF_QUEUES`, and the state of its sequence if it is
        an outgoing queue.
        """
        writer = self._store.writer
        with writer.unit():
            for table in OF_QUEUES:
                writer.delete_record(table, ORDINAL_KEY.pack(ordinal))
            writer.delete_record(Table.SEQUENCE, outgoing_stream_key(ordinal))

    def unit(self, fill: Callable[[], None]) -> Completion[None]:
        """Run `fill` inside one unit of work; resolved when the unit is durable.

        If `fill` raises, none of its writes is kept.
        """
        completion: Completion[None] = Completion()
        with self._store.writer.unit() as writer:
            fill()
            writer.when_durable(lambda status: stored(completion, status, None))
        return completion


def stored(completion: Completion[Any], status: int, value: Any) -> None:
    """End a completion that waits for a commit: resolve it with `value` if `status` is 0, else let it
    fail.
    """
    if status:
        completion.fail(storage_error(status))
    else:
        completion.resolve(value)


def storage_error(status: int) -> MessageStorageFailed:
    """Returns the error for a commit that failed with `status`."""
    return MessageStorageFailed(f"the store failed (status {status})")


def followed_by(done: Completion[None], value: object) -> Completion:  # type: ignore[type-arg]
    """Returns a completion that is resolved with `value` when `done` is resolved, and fails if `done`
    fails.
    """
    completion: Completion = Completion()  # type: ignore[type-arg]

    def resolve(done: Completion[None]) -> None:
        error = done.exception()
        if error is None:
            completion.resolve(value)
        else:
            completion.fail(error)

    done.add_done_callback(resolve)
    return completion

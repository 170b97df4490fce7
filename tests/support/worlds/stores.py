"""What the store's tests share."""

from __future__ import annotations

import random
import select
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msmq_fast._native.lmdbthreads import LmdbReader, LmdbWriter
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from msmq_fast.store.store import Store, StoreOptions

SMALL = StoreOptions(map_size=1 << 30, force_place=True)


def open_store(
    directory: Path, *, now_s: int = 1_000_000, seed: int = 0, warn: Callable[[str], object] | None = None
) -> Store:
    """A store that may lie anywhere."""
    return Store.open(directory, now_s=now_s, random=random.Random(seed), options=SMALL, warn=warn)


def reserve_now(store: Store, name: bytes, block: int) -> tuple[int, int]:
    """Reserves numbers durably: (last number that may be in use, new limit)."""
    used = int(store.meta(name, 0))
    limit = store.reserve(name, block, lambda _status: None)
    store.commit()
    return used, limit


def queues_of(store: Store) -> list[tuple[int, dict[str, Any]]]:
    """(ordinal, attributes) of every queue record."""
    return [(decode.queue_key(key), decode.queue(value)) for key, value in store.scan(Table.QUEUE)]


def history_entry(item: decode.HistoryItem) -> bytes:
    """The stored form of one message identifier; its number is given by its place."""
    return decode.HISTORY_ENTRY.pack(*item[1:])


def crash(store: Store) -> None:
    """Ends a store as the end of its process would: a redo log keeps what LMDB does not hold yet."""
    if isinstance(store.writer, LmdbWriter):
        store.writer.abandon()
    store._release()


def settle(writer: LmdbWriter, statuses: list[int], count: int = 1) -> None:
    """Runs the writer until `statuses` has `count` members."""
    while len(statuses) < count:
        writer.flush()
        assert select.select([writer.fileno()], [], [], 10)[0], "the writer does not answer"
        writer.complete()


def commit(writer: LmdbWriter) -> int:
    """Commits what is gathered; returns the status."""
    statuses: list[int] = []
    writer.when_durable(statuses.append)
    settle(writer, statuses)
    return statuses[0]


def read(reader: LmdbReader, wanted: list[tuple[int, int]]) -> list[tuple[bytes | None, int]]:
    """Reads contents (id, size) through the reader thread."""
    found: dict[int, tuple[bytes | None, int]] = {}
    for index, (content_id, size) in enumerate(wanted):
        reader.read(
            content_id, size, lambda body, status, index=index: found.__setitem__(index, (body, status))
        )
    while len(found) < len(wanted):
        assert select.select([reader.fileno()], [], [], 10)[0], "the reader does not answer"
        reader.complete()
    return [found[index] for index in range(len(wanted))]

"""One queue over a store, in memory or on disk, without a queue manager around it."""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from msmq_fast._native.columncells import Encoded
from msmq_fast._native.columnmessages import MessageEncoder
from msmq_fast._native.columnrows import Rows, scan
from msmq_fast._native.columnstore import Contents
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbReader, LmdbWriter
from msmq_fast._native.memorystore import MemoryReader, MemoryTables, MemoryWriter
from msmq_fast._native.queue import QueueCore
from msmq_fast.bulk.reader import CLASSES
from msmq_fast.protocol.arrow import arrow_schema, record_batch
from msmq_fast.protocol.columns import MESSAGE_COLUMNS, Column

NOW_US = 1_700_000_000_000_000
EVER = 1 << 56
CONSTANTS = {"qm_guid": "guid", "queue": "HOST\\q", "queue_guid": None, "queue_kind": "queue"}
OF_MESSAGES = tuple(column for column in MESSAGE_COLUMNS if column.name not in CONSTANTS)


class Core:
    """`queue` is its own; `cache` bytes of recoverable packets stay in memory."""

    def __init__(self, directory: Path | None = None, *, cache: int = 0) -> None:
        if directory is None:
            tables = MemoryTables()
            self.tables: LmdbTables | MemoryTables = tables
            self.writer: LmdbWriter | MemoryWriter = MemoryWriter(tables)
            self.reader: LmdbReader | MemoryReader = MemoryReader(tables)
        else:
            directory.mkdir(exist_ok=True)
            self.tables = LmdbTables(directory, map_size=1 << 30)
            self.writer = LmdbWriter(self.tables)
            self.reader = LmdbReader(self.tables)
        self.ledger = Ledger(bytes(16), self.writer, self.reader)
        self.ledger.tables = self.tables
        self.ledger.reserved(1 << 40)
        self.ledger.cache_limit = cache
        self.ledger.tick(NOW_US)
        self.queue = QueueCore(self.ledger, 20)
        self.contents = Contents(self.tables)

    def until(self, done: Callable[[], object]) -> None:
        """Turn the loop until something has come about."""
        while not done():
            self.writer.flush()
            if isinstance(self.writer, LmdbWriter):
                assert select.select([self.writer.fileno()], [], [], 10)[0], "the writer does not answer"
                self.writer.complete()
            else:
                self.writer.complete_all()

    def put(self, *packets: bytes) -> list[int]:
        """Enqueue; their LookupIdentifiers when all are durable."""
        ended: list[int] = []
        results, keys = self.queue.enqueue_packets(list(packets), ended.append)
        assert set(results) <= {0, 4}
        self.until(lambda: ended)
        assert not any(ended)
        return keys

    def settle(self) -> None:
        """Everything that was gathered is durable."""
        ended: list[int] = []
        self.writer.when_durable(ended.append)
        self.until(lambda: ended)

    def encoder(self, columns: Sequence[Column] = OF_MESSAGES, **constants: Any) -> MessageEncoder:
        pairs = [(column.name, column.kind) for column in columns]
        return MessageEncoder(self.contents, pairs, constants, CLASSES)

    def rows(self, columns: Sequence[Column] = OF_MESSAGES, **limits: Any) -> list[dict[str, Any]]:
        """All of the queue as dicts."""
        found = scan(self.queue, 0, EVER, limits.get("max_rows", 10_000), limits.get("max_bytes", 1 << 40))
        return dicts(columns, self.encoder(columns).encode(found))

    def close(self) -> None:
        self.contents.close()
        for part in (self.writer, self.reader, self.tables):
            part.close()


def dicts(columns: Sequence[Column], encoded: Encoded) -> list[dict[str, Any]]:
    """The rows of a batch, which pyarrow has checked to the last bit."""
    batch = record_batch(arrow_schema(columns), encoded)
    batch.validate(full=True)
    rows: list[dict[str, Any]] = pa.Table.from_batches([batch]).to_pylist()
    return rows


def sequences(rows: Rows) -> list[int]:
    return [key & (EVER - 1) for key in rows.keys()]  # noqa: SIM118 - no mapping

"""The store of a queue manager: its environment, its writer and reader, its identity, its counters."""

from __future__ import annotations

import logging
import os
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol

from msmq_fast._native.batch import Writer
from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbReader, LmdbWriter
from msmq_fast._native.memorystore import MemoryReader, MemoryTables, MemoryWriter
from msmq_fast._native.tables import Reader, Tables
from msmq_fast.store import decode, records
from msmq_fast.store.datafile import check_data_file
from msmq_fast.store.errors import StoreError, StorePlaceError, status_text
from msmq_fast.store.files import make_directory
from msmq_fast.store.identity import Identity, identity_of, is_copy
from msmq_fast.store.lock import StoreLock
from msmq_fast.store.meta import read_meta
from msmq_fast.store.paging import scan_pages
from msmq_fast.store.place import check_place
from msmq_fast.store.schema import SCHEMA_VERSION, MetaName, Table
from msmq_fast.store.upgrade import upgrade

_log = logging.getLogger(__name__)

DEFAULT_MAP_SIZE: Final = 1 << 40
DEFAULT_LOG_SIZE: Final = 16 << 20
_SMALLEST_MAP: Final = 1 << 30
_ORDINAL_JUMP: Final = 1 << 30  # at least, and at most twice as far, with each new incarnation
_SPREAD: Final = 0x9E37_79B1  # copies made at different seconds jump far apart


class RandomBytes(Protocol):
    """The source of GUIDs and tokens; random.Random and random.SystemRandom have this interface."""

    def randbytes(self, n: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Options for opening a store."""

    map_size: int = DEFAULT_MAP_SIZE  # bytes of address space; the file is only as large as its content
    force_place: bool = False  # also on network and overlay file systems
    read_ahead: bool = True
    log: bool = True  # commits go to a redo log, and to LMDB later, many at once
    log_size: int = DEFAULT_LOG_SIZE  # bytes on the disk and in memory
    inline_us: int = 0  # the caller commits lone messages itself unless commits to the log take longer
    holder: str = "msmq-fast"  # name shown to another process that wants the store
    guid: bytes | None = None  # of the queue manager, 16 bytes little-endian, for a store that is created
    examine: Callable[[Tables], object] | None = (
        None  # called with the stored tables before anything is written
    )


class Store:
    """An open store. `Store.open` opens the store in a directory; `Store.in_memory` makes one for tests and
    simulators.

    Operations on messages use `writer` and `reader` directly; the methods of this class are for the start and
    for rare operations. Messages to peers carry `guid` (16 bytes) and `incarnation`, so that two servers with
    the same identity are detected.
    """

    def __init__(
        self,
        tables: Tables,
        writer: LmdbWriter | MemoryWriter,
        reader: LmdbReader | MemoryReader,
        directory: Path | None = None,
        lock: StoreLock | None = None,
    ) -> None:
        self.tables = tables
        self.writer: Writer = writer
        self.reader: Reader = reader
        self.directory = directory
        self.was_clean = True
        self.is_copy = False
        self.damaged_history = 0  # records of the duplicate history that were passed over
        self._native = (writer, reader)
        self._lock = lock

    # -- opening and closing

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        now_s: int,
        random: RandomBytes,
        options: StoreOptions | None = None,
        warn: Callable[[str], object] | None = None,
    ) -> Store:
        """Opens or creates the store in `directory` (REC-01, REC-02).

        `now_s` is the wall clock; `warn` gets one line for each thing an operator should know. Raises
        StoreLockedError, StorePlaceError, StoreVersionError or StoreError, and whatever `options.examine`
        raises. If `options.examine` raises, the store is unchanged.
        """
        options = options or StoreOptions()
        warn = warn or (lambda _line: None)
        path = Path(directory)
        try:
            make_directory(path)
        except FileExistsError as error:
            raise StorePlaceError(f"{path} is not a directory", error.errno or 0) from error
        except OSError as error:
            raise StorePlaceError(f"cannot create {path}: {error.strerror}", error.errno or 0) from error
        check_place(path, force=options.force_place)
        lock = StoreLock(path)
        try:
            check_data_file(path, used=bool(lock.read().get("tokens")))
            tables = _open_tables(path, options, warn)
            writer = LmdbWriter(tables, inline_us=options.inline_us)
            store = cls(tables, writer, LmdbReader(tables), path, lock)
        except BaseException:
            lock.release()
            raise
        try:
            store._start(now_s, random, options, warn)
        except BaseException:
            store._release()
            raise
        return store

    @classmethod
    def in_memory(cls, *, now_s: int, random: RandomBytes, tables: MemoryTables | None = None) -> Store:
        """Returns a store in memory only. `tables`, if given, is the durable state of an earlier store in
        memory after its `writer.crash()`.
        """
        tables = MemoryTables() if tables is None else tables
        store = cls(tables, MemoryWriter(tables), MemoryReader(tables))
        store._start(now_s, random, StoreOptions(), lambda _line: None)
        return store

    def _start(
        self, now_s: int, random: RandomBytes, options: StoreOptions, warn: Callable[[str], object]
    ) -> None:
        if options.examine is not None:
            options.examine(self.tables)
        if self.tables.get(Table.META, MetaName.GUID) is None:
            self._create(now_s, random, options.guid)
        upgrade(self.tables, self.writer, now_s, self.commit)
        if options.log and isinstance(self.tables, LmdbTables):
            self._start_log(self.tables, options.log_size, warn)
        self.was_clean = bool(self.meta(MetaName.CLEAN, False))
        token = random.randbytes(8).hex()
        identity: Identity | None = None
        if self._lock is not None and self.directory is not None:
            before = self._lock.read()
            tokens = [token for token in before.get("tokens", []) if isinstance(token, str)]
            identity = identity_of(self.directory, token)
            self.is_copy = is_copy(self.meta(MetaName.IDENTITY), identity, tokens)
            started = datetime.fromtimestamp(now_s, UTC).isoformat()
            holder = {
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "name": options.holder,
                "started": started,
            }
            self._lock.write({**holder, "tokens": [*tokens[-1:], token]})
        with self.unit():
            if self.is_copy:
                renew_incarnation(self.tables, self.writer, now_s)
                warn(f"the store in {self.directory} was copied or restored: it gets a new incarnation")
            if identity is not None:
                self.put_meta(MetaName.IDENTITY, identity.stored())
            self.put_meta(MetaName.CLEAN, False)
        self.commit()
        self.guid: bytes = self.meta(MetaName.GUID)
        self.incarnation: int = self.meta(MetaName.INCARNATION)
        self.tx_timestamp: int = self.meta(MetaName.TX_TIMESTAMP)

    def _start_log(self, tables: LmdbTables, size: int, warn: Callable[[str], object]) -> None:
        aside = tables.start_log(size)
        if aside:
            warn(
                f"the redo log in {self.directory} belongs to another state of the store; "
                f"it was moved to log.aside-{aside}"
            )

    def _create(self, now_s: int, random: RandomBytes, given: bytes | None) -> None:
        guid = bytearray(random.randbytes(16))
        guid[7] = guid[7] & 0x0F | 0x40  # version 4 in the wire's byte order
        guid[8] = guid[8] & 0x3F | 0x80
        with self.unit():
            self.put_meta(MetaName.SCHEMA, SCHEMA_VERSION)
            self.put_meta(MetaName.GUID, given or bytes(guid))
            self.put_meta(MetaName.INCARNATION, 1)
            self.put_meta(MetaName.TX_TIMESTAMP, now_s)
            self.put_meta(MetaName.CREATED, now_s)
            self.put_meta(MetaName.CLEAN, True)
        self.commit()

    def close(self, counters: dict[bytes, int] | None = None) -> None:
        """Commits the current batch, marks the shutdown as clean and releases the directory.

        `counters` holds the last used value of each counter, so that the next start continues there and the
        unused rest of the reserved block is not lost.
        """
        try:
            if not self.writer.failed:
                with self.unit():
                    for name, value in (counters or {}).items():
                        self.put_meta(name, value)
                    self.put_meta(MetaName.CLEAN, True)
                self.commit()
        finally:
            self._release()

    def _release(self) -> None:
        for native in self._native:
            native.close()
        self.tables.close()
        if self._lock is not None:
            self._lock.release()

    # -- cold operations

    @contextmanager
    def unit(self, then: Callable[[int], object] | None = None) -> Iterator[Writer]:
        """Everything written inside the context is one commit, all or nothing. `then(status)` is called on
        the event loop when the commit has ended; status 0 means that it is durable.
        """
        with self.writer.unit() as writer:
            yield writer
            if then is not None:
                writer.when_durable(then)

    def commit(self) -> None:
        """Waits until every write of the current batch is durable. It blocks, so use it for start-up and
        shutdown only. Raises StoreError.
        """
        ended: list[int] = []
        self.writer.when_durable(ended.append)
        writer = self._native[0]
        while not ended:
            writer.flush()
            if isinstance(writer, MemoryWriter):
                writer.complete_one()
                continue
            select.select([writer.fileno()], [], [])
            writer.complete()
        if ended[0]:
            raise StoreError(f"cannot write the store: {status_text(ended[0])}", ended[0])

    def meta(self, name: bytes, default: Any = None) -> Any:
        """Returns a durable value of META, `default` if there is none. Raises StoreError if the value is
        damaged.
        """
        return read_meta(self.tables, name, default)

    def put_meta(self, name: bytes, value: Any) -> None:
        """Writes a value of META in the current batch."""
        self.writer.put_record(Table.META, name, records.cold(value))

    def scan(
        self, table: int, lower: bytes = b"", upper: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields (key, value) of every record with lower <= key < upper, in key order, with short read
        transactions.
        """
        return scan_pages(self.tables.scan, table, lower, upper)

    # -- counters (DU-18)

    def reserve(self, name: bytes, block: int, then: Callable[[int], object]) -> int:
        """Reserves the next `block` numbers of a counter, starting at its durable limit. Returns the new
        limit.

        The caller may use the numbers only after `then(status)` was called with status 0, and makes one
        reservation per counter at a time.
        """
        limit = int(self.meta(name, 0)) + block
        with self.unit(then):
            self.put_meta(name, limit)
        return limit

    # -- loading (REC-03 … REC-09)

    def load_history(self) -> Iterator[decode.HistoryItem]:
        """Yields every message identifier of the duplicate history, oldest first.

        Damaged records are skipped, counted and logged.
        """
        for key, value in self.scan(Table.HISTORY):
            try:
                yield from decode.history(key, value)
            except decode.DecodeError as error:
                self.damaged_history += 1
                _log.error("not loaded: the history record with the key %s is damaged: %s", key.hex(), error)

    def trim(self, table: Table, before: int, limit: int = 1000) -> int:
        """Deletes, in the current batch, packed records that hold only entries before number `before`.
        Returns how many it deleted, at most `limit`.

        The newest record is kept, because the numbering continues from it.
        """
        upper = decode.NUMBER_KEY.pack(before)
        dropped = 0
        found = self.tables.scan(table, b"", None, limit + 1)
        with self.unit():
            for (key, _value), (following, _next) in pairwise(found):
                if following > upper:
                    break
                self.writer.delete_record(table, key)
                dropped += 1
        return dropped


def renew_incarnation(tables: Tables, writer: Writer, now_s: int) -> None:
    """Gives a copied store a new incarnation, a later time stamp for transactional sequences, and message
    ordinals far beyond any that the original store may have used since the copy, so that receivers do not
    discard new messages as duplicates.
    """
    incarnation = read_meta(tables, MetaName.INCARNATION, 0)
    stamp = read_meta(tables, MetaName.TX_TIMESTAMP, 0)
    writer.put_record(Table.META, MetaName.INCARNATION, records.cold(incarnation + 1))
    writer.put_record(Table.META, MetaName.TX_TIMESTAMP, records.cold(max(now_s, stamp + 1)))
    ordinal = read_meta(tables, MetaName.MESSAGE_ID_HW, 0)
    jump = _ORDINAL_JUMP + now_s * _SPREAD % _ORDINAL_JUMP
    writer.put_record(Table.META, MetaName.MESSAGE_ID_HW, records.cold(ordinal + jump))


def _open_tables(path: Path, options: StoreOptions, warn: Callable[[str], object]) -> LmdbTables:
    size = options.map_size
    while True:
        try:
            tables = LmdbTables(path, map_size=size, read_ahead=options.read_ahead)
        except StoreError as error:
            if error.status != 12 or size // 4 < _SMALLEST_MAP:  # ENOMEM: no address space
                raise
            size //= 4
            continue
        if size != options.map_size:
            warn(f"the store in {path} is limited to {size >> 30} GiB: the address space allows no more")
        return tables

"""Two ways into the LMDB file of a store: natively, or through py-lmdb alone. Read-only both."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from msmq_fast.spark.offline.errors import OfflineError
from msmq_fast.store.paging import scan_pages
from msmq_fast.store.redotail import LogNotApplied, wait_applied
from msmq_fast.store.schema import Table


class Backend(Protocol):
    """Cold reads. Keys come in order."""

    native: Any
    """The native tables, None where there are none."""

    def get(self, table: int, key: bytes) -> bytes | None:
        """One value."""

    def scan(
        self, table: int, lower: bytes = b"", upper: bytes | None = None, limit: int = 1000
    ) -> list[tuple[bytes, bytes]]:
        """At most `limit` records with lower <= key < upper."""

    def transaction(self) -> int:
        """Number of the last commit: two reads of it that are equal saw the same store."""

    def copy(self, directory: Path) -> None:
        """A copy of the store in an existing directory."""

    def close(self) -> None:
        """Nothing is read any more."""


class NativeBackend:
    """Through `_native.lmdbstore`. ImportError: it is not built."""

    def __init__(self, directory: Path) -> None:
        from msmq_fast._native import columnmessages as _columnmessages  # noqa: F401 - both or none
        from msmq_fast._native.lmdbstore import LmdbTables

        self.native = LmdbTables(directory, read_only=True)
        self.get = self.native.get
        self.scan = self.native.scan

    def transaction(self) -> int:
        """As Backend."""
        return int(self.native.space()["last_transaction"])

    def copy(self, directory: Path) -> None:
        """As Backend."""
        target = os.open(directory / "data.mdb", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            self.native.copy(target)
        finally:
            os.close(target)

    def close(self) -> None:
        """As Backend."""
        self.native.close()


class PlainBackend:
    """Through py-lmdb."""

    native = None

    def __init__(self, directory: Path) -> None:
        import lmdb

        try:
            self._environment = lmdb.open(str(directory), readonly=True, max_dbs=len(Table) + 1)
        except lmdb.Error:  # nothing can be written beside the data, not even the table of readers
            self._environment = lmdb.open(str(directory), readonly=True, max_dbs=len(Table) + 1, lock=False)
        self._tables: dict[int, Any] = {}
        for table in Table:
            with contextlib.suppress(lmdb.NotFoundError):  # of a store that an earlier version wrote
                self._tables[table] = self._environment.open_db(table.name.lower().encode(), create=False)

    def get(self, table: int, key: bytes) -> bytes | None:
        """As Backend."""
        if table not in self._tables:
            return None
        with self._environment.begin(self._tables[table]) as transaction:
            found: bytes | None = transaction.get(key)
            return found

    def scan(
        self, table: int, lower: bytes = b"", upper: bytes | None = None, limit: int = 1000
    ) -> list[tuple[bytes, bytes]]:
        """As Backend."""
        found: list[tuple[bytes, bytes]] = []
        if table not in self._tables:
            return found
        with self._environment.begin(self._tables[table]) as transaction, transaction.cursor() as cursor:
            there = cursor.set_range(lower) if lower else cursor.first()
            while there and len(found) < limit:
                key = bytes(cursor.key())
                if upper is not None and key >= upper:
                    break
                found.append((key, bytes(cursor.value())))
                there = cursor.next()
        return found

    def transaction(self) -> int:
        """As Backend."""
        return int(self._environment.info()["last_txnid"])

    def copy(self, directory: Path) -> None:
        """As Backend."""
        self._environment.copy(str(directory))

    def close(self) -> None:
        """As Backend."""
        self._environment.close()


@contextlib.contextmanager
def opened(directory: Path, decoder: str = "auto") -> Iterator[Backend]:
    """The store in a directory, closed at the end. `decoder`: native, plain, or auto (native if possible).

    OfflineError: it cannot be opened.
    """
    backend: Backend | None = None
    if decoder != "plain":
        try:
            backend = NativeBackend(directory)
        except Exception as error:  # not built, or a table is missing that the native code needs
            if decoder == "native":
                raise OfflineError(f"cannot read {directory} natively: {error}") from error
    if backend is None:
        try:
            backend = PlainBackend(directory)
        except Exception as error:
            raise OfflineError(f"cannot open the store in {directory}: {error}") from error
    try:
        wait_applied(directory, lambda name: backend.get(Table.META, name))
        yield backend
    except LogNotApplied as error:
        raise OfflineError(str(error)) from None
    finally:
        backend.close()


def every(
    backend: Backend, table: int, lower: bytes = b"", upper: bytes | None = None, step: int = 500
) -> Iterator[tuple[bytes, bytes]]:
    """All records with lower <= key < upper; short reads, so that nothing is pinned for long."""
    return scan_pages(backend.scan, table, lower, upper, step)

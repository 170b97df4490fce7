"""Two ways to open the LMDB file of a store for reading: with the native modules, or with py-lmdb alone."""

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
    """Reads the records of a store directly from its file. Records are returned in order of their keys."""

    native: Any
    """The native tables, None without native modules."""

    def get(self, table: int, key: bytes) -> bytes | None:
        """Returns the value of a key in a table, None if the key does not exist."""

    def scan(
        self, table: int, lower: bytes = b"", upper: bytes | None = None, limit: int = 1000
    ) -> list[tuple[bytes, bytes]]:
        """Returns at most `limit` records (key, value) with lower <= key < upper. `upper` may be None."""

    def transaction(self) -> int:
        """Returns the number of the last commit. If two calls return the same number, the store did not
        change between them.
        """

    def copy(self, directory: Path) -> None:
        """Copies the store to an existing directory."""

    def close(self) -> None:
        """Closes the file."""


class NativeBackend:
    """Reads through `_native.lmdbstore`. Raises ImportError if it is not built."""

    def __init__(self, directory: Path) -> None:
        from msmq_fast._native import columnmessages as _columnmessages  # noqa: F401 - both or none
        from msmq_fast._native.lmdbstore import LmdbTables

        self.native = LmdbTables(directory, read_only=True)
        self.get = self.native.get
        self.scan = self.native.scan

    def transaction(self) -> int:
        """Implements `Backend.transaction`."""
        return int(self.native.space()["last_transaction"])

    def copy(self, directory: Path) -> None:
        """Implements `Backend.copy`."""
        target = os.open(directory / "data.mdb", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            self.native.copy(target)
        finally:
            os.close(target)

    def close(self) -> None:
        """Implements `Backend.close`."""
        self.native.close()


class PlainBackend:
    """Reads with py-lmdb."""

    native = None

    def __init__(self, directory: Path) -> None:
        import lmdb

        try:
            self._environment = lmdb.open(str(directory), readonly=True, max_dbs=len(Table) + 1)
        except lmdb.Error:  # read-only: not even the table of readers can be written
            self._environment = lmdb.open(str(directory), readonly=True, max_dbs=len(Table) + 1, lock=False)
        self._tables: dict[int, Any] = {}
        for table in Table:
            with contextlib.suppress(lmdb.NotFoundError):  # a table that earlier versions lack
                self._tables[table] = self._environment.open_db(table.name.lower().encode(), create=False)

    def get(self, table: int, key: bytes) -> bytes | None:
        """Implements `Backend.get`."""
        if table not in self._tables:
            return None
        with self._environment.begin(self._tables[table]) as transaction:
            found: bytes | None = transaction.get(key)
            return found

    def scan(
        self, table: int, lower: bytes = b"", upper: bytes | None = None, limit: int = 1000
    ) -> list[tuple[bytes, bytes]]:
        """Implements `Backend.scan`."""
        found: list[tuple[bytes, bytes]] = []
        if table not in self._tables:
            return found
        with self._environment.begin(self._tables[table]) as transaction, transaction.cursor() as cursor:
            valid = cursor.set_range(lower) if lower else cursor.first()
            while valid and len(found) < limit:
                key = bytes(cursor.key())
                if upper is not None and key >= upper:
                    break
                found.append((key, bytes(cursor.value())))
                valid = cursor.next()
        return found

    def transaction(self) -> int:
        """Implements `Backend.transaction`."""
        return int(self._environment.info()["last_txnid"])

    def copy(self, directory: Path) -> None:
        """Implements `Backend.copy`."""
        self._environment.copy(str(directory))

    def close(self) -> None:
        """Implements `Backend.close`."""
        self._environment.close()


@contextlib.contextmanager
def opened(directory: Path, decoder: str = "auto") -> Iterator[Backend]:
    """Opens the store in a directory for reading while the context is open.

    `decoder` is "native" (native modules), "plain" (py-lmdb), or "auto" (native if possible). Raises
    OfflineError if the store cannot be opened.
    """
    backend: Backend | None = None
    if decoder != "plain":
        try:
            backend = NativeBackend(directory)
        except Exception as error:  # not built, or a table is missing that the native code needs
            if decoder == "native":
                raise OfflineError(
                    f"cannot read the store in {directory} with the native modules: {error}"
                ) from error
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
    """Yields all records (key, value) with lower <= key < upper, at most `step` in one read transaction, so
    that the transaction does not keep old pages of the store for long.
    """
    return scan_pages(backend.scan, table, lower, upper, step)

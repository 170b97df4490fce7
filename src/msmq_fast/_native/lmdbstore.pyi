"""Types of the store on disk; see src/_native/lmdbstore.pyx."""

from os import PathLike
from typing import Any, TypedDict

from msmq_fast._native.batch import Writer, WriterStatistics
from msmq_fast._native.tables import Reader, Tables

class TableSpace(TypedDict):
    entries: int
    pages: int

class Space(TypedDict):
    page_size: int
    pages: int
    free_pages: int
    map_size: int
    last_transaction: int
    log_bytes: int
    tables: dict[str, TableSpace]

class LogStatistics(TypedDict):
    records: int
    bytes: int
    applied_batches: int
    applied_operations: int
    unapplied_bytes: int
    waits: int
    inline_commits: int

class LmdbStatistics(WriterStatistics):
    log: LogStatistics

def status_text(status: int) -> str: ...
def status_is_full(status: int) -> bool: ...

class LmdbTables(Tables):
    def __init__(
        self,
        path: str | PathLike[str],
        *,
        map_size: int = ...,
        read_only: bool = False,
        read_ahead: bool = True,
        settled: bool = False,
    ) -> None: ...
    def start_log(self, size: int) -> int: ...
    def settle(self) -> None: ...
    def space(self) -> Space: ...
    def copy(self, fd: int, compact: bool = False) -> None: ...

class LmdbWriter(Writer):
    def __init__(
        self,
        tables: LmdbTables,
        *,
        max_bytes: int = ...,
        max_units: int = ...,
        inline_us: int = 0,
        **kwargs: Any,
    ) -> None: ...
    def fileno(self) -> int: ...
    def abandon(self) -> None: ...
    def statistics(self) -> LmdbStatistics: ...
    def close(self) -> None: ...

class LmdbReader(Reader):
    def __init__(self, tables: LmdbTables) -> None: ...
    def fileno(self) -> int: ...
    @property
    def transactions(self) -> int: ...
    def close(self) -> None: ...

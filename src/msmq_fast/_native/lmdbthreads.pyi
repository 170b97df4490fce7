"""Types of the writer and the reader of the store on disk; see src/_native/lmdbthreads.pyx."""

from typing import Any, TypedDict

from msmq_fast._native.batch import Writer, WriterStatistics
from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.tables import Reader

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

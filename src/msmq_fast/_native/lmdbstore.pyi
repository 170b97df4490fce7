"""Types of the store on disk; see src/_native/lmdbstore.pyx."""

from os import PathLike
from typing import TypedDict

from msmq_fast._native.tables import Tables

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

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msmq_fast._native.queue import QueueCore
from msmq_fast._native.tables import Tables

class Rows:
    ordinal: int
    bytes: int
    next: int
    finished: bool
    gone: int
    damaged: list[Any]
    def __len__(self) -> int: ...
    def keys(self) -> list[int]: ...

def scan(core: QueueCore, start: int, stop: int, max_rows: int, max_bytes: int) -> Rows: ...
def pick(core: QueueCore, keys: Any, numbers: Any, begin: int, max_rows: int, max_bytes: int) -> Rows: ...
def stored(tables: Tables, queue: int, start: int, stop: int, max_rows: int, max_bytes: int) -> Rows: ...
def packets(found: list[bytes]) -> Rows: ...
def first_sequence(core: QueueCore, stop: int) -> int: ...

class Tally:
    start: int
    next: int
    rows: int
    bytes: int
    finished: bool
    def __init__(self, core: QueueCore, start: int, stop: int, max_rows: int, max_bytes: int) -> None: ...
    def advance(self, limit: int = ...) -> bool: ...
    def ranges(self, parts: int) -> list[tuple[int, int, int, int]]: ...

class Segment:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Encoded:
    rows: int
    columns: list[tuple[int, list[Segment | None]]]
    bytes: int
    gone: int
    damaged: int
    next: int
    first: int
    finished: bool

class Contents:
    tables: Tables
    background: bool
    def __init__(self, tables: Tables, *, background: bool = False) -> None: ...
    def close(self) -> None: ...
    def boost(self) -> bool: ...

class MessageEncoder:
    def __init__(
        self,
        contents: Contents,
        columns: Iterable[tuple[str, str]],
        constants: Mapping[str, str | int | None],
        classes: Mapping[int, str],
    ) -> None: ...
    def encode(self, rows: Rows, holders: Mapping[int, str] | None = None) -> Encoded: ...

class EventEncoder:
    def __init__(
        self,
        contents: Contents,
        columns: Iterable[tuple[str, str]],
        constants: Mapping[str, str | int | None],
        classes: Mapping[int, str],
        kinds: Mapping[int, str],
        transports: Mapping[int, str],
        resolve: Callable[[int], tuple[str | None, str | None, str | None] | None],
    ) -> None: ...
    def encode(self, start: int, stop: int, max_rows: int) -> Encoded: ...

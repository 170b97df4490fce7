"""Types of the messages to be read in bulk; see src/_native/columnrows.pyx."""

from typing import Any

from msmq_fast._native.queue import QueueCore

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

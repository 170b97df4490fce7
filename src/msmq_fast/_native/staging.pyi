import builtins
from array import array
from collections.abc import Callable

from msmq_fast._native.batch import CommitListener
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.packetblock import PacketBlock
from msmq_fast._native.queue import QueueCore

ROW_PREFIX: bytes
ROW_WEIGHT: int

class Refused(Exception):
    index: int
    result: int
    def __init__(self, index: int, result: int) -> None: ...

def row_key(identifier: bytes, row: int) -> bytes: ...

class Intake(CommitListener):
    ledger: Ledger
    identifier: builtins.bytes
    messages: int
    bytes: int
    rows: int
    flying: int
    status: int
    reserved: dict[QueueCore, int]
    def __init__(
        self,
        ledger: Ledger,
        identifier: builtins.bytes,
        on_written: Callable[[], object],
        whole: int = 0,
    ) -> None: ...
    def put(
        self,
        packets: PacketBlock,
        targets: array[int] | memoryview,
        cores: list[QueueCore],
        ordinal: int,
        number: int,
    ) -> None: ...
    def end(self, head: Callable[[int], builtins.bytes]) -> bool: ...
    def forget(self) -> None: ...
    def close(self) -> None: ...

def release_reserved(reserved: dict[QueueCore, int]) -> None: ...
def reserve_again(reserved: dict[QueueCore, int]) -> None: ...
def sizes_by_queue(row: bytes) -> dict[int, int]: ...
def weigh(row: bytes) -> int: ...
def place(
    ledger: Ledger,
    rows: list[tuple[bytes, bytes]],
    keys: list[bytes],
    reserved: dict[QueueCore, int],
    sink: Callable[[int], object],
) -> tuple[int, int]: ...
def drop(ledger: Ledger, rows: list[tuple[bytes, bytes]], sink: Callable[[int], object]) -> int: ...

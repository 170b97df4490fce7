from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msmq_fast._native.batch import CommitListener
from msmq_fast._native.counter import Counter
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.requestids import RequestIds

class FrameFault(ValueError): ...

class Stored(Protocol):
    @property
    def packet(self) -> bytes: ...
    @property
    def lookup_id(self) -> int: ...
    @property
    def arrival_seq(self) -> int: ...
    @property
    def arrived_time(self) -> int: ...
    @property
    def abort_count(self) -> int: ...
    @property
    def move_count(self) -> int: ...
    @property
    def reason(self) -> int: ...

class PacketBuilder:
    refusal: int
    dead_letters: dict[int, str]
    signatures: dict[int, tuple[int, int, bytes]]
    def __init__(
        self,
        source: bytes,
        address: bytes,
        dest_type: int,
        destination: bytes,
        resolve: Callable[[str], tuple[int, bytes]],
        long_lived: int = 345_600,
    ) -> None: ...
    def packets(
        self,
        payload: bytes | memoryview,
        first_ordinal: int,
        now_s: int,
        transaction: int | None = None,
        following: int = 0,
        step: int = 0,
    ) -> list[bytes | int]: ...

def send_head(payload: bytes | memoryview) -> tuple[int, int, int, int]: ...

class Encoder:
    def message(self, request_id: int, received: Stored) -> list[bytes | memoryview]: ...
    def delivery(
        self, subscription: int, first_tag: int, messages: Sequence[Stored], target: int
    ) -> list[bytes | memoryview]: ...

class LaneTarget:
    def __init__(
        self,
        builder: PacketBuilder,
        core: QueueCore,
        ordinals: Counter,
        take_numbers: Callable[[int], int] | None = None,
        plain: bool = True,
    ) -> None: ...

class SendLane(CommitListener):
    def __init__(
        self,
        ledger: Ledger,
        pending: RequestIds,
        reads: dict[int, Any],
        deliveries: dict[int, Any],
        answered: Callable[[bytes, int], None],
        failed: Callable[[int, int, int, int], None],
        *,
        max_frame: int,
        max_batch: int,
        max_pending: int,
        max_bytes: int,
    ) -> None: ...
    def open(self, handle: int, target: LaneTarget) -> None: ...
    def close(self, handle: int) -> None: ...
    @property
    def frames(self) -> int: ...
    @property
    def full(self) -> bool: ...
    def run(self, buffer: bytearray, start: int, end: int) -> int: ...

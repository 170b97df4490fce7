"""Types of the fast path of SEND frames; see src/_native/applane.pyx."""

from collections.abc import Callable
from typing import Any

from msmq_fast._native.appcodec import PacketBuilder
from msmq_fast._native.batch import CommitListener
from msmq_fast._native.counter import Counter
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.requestids import RequestIds

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

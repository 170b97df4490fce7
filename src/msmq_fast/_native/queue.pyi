"""Types of one queue; see src/_native/queue.pyx."""

import builtins
from array import array
from collections.abc import Callable

from msmq_fast._native.batch import CommitListener
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.outsequence import OutSequence
from msmq_fast._native.positions import PositionList
from msmq_fast._native.queuebase import Received

TAKEN: tuple[int, int]

class QueueCore(CommitListener):
    ordinal: int
    positions: PositionList
    ledger: Ledger
    quota_bytes: int
    outgoing: bool
    sequence: OutSequence | None
    srmp: bool
    role: int
    timeless: bool
    journal: QueueCore | None
    bytes: int
    used_bytes: int
    reserved_bytes: int
    parent: QueueCore | None
    sub_bytes: int
    moving_bytes: int
    expected: int
    poison_after: int
    messages: int
    arrived_total: int
    removed_total: int
    expired_total: int
    late: int
    gone: bool
    purged_to: int
    interested: bool
    watched: bool
    ready: Callable[[], None] | None
    def __init__(
        self,
        ledger: Ledger,
        ordinal: int,
        quota_bytes: int = 0xFFFFFFFFFFFFFFFF,
        outgoing: bool = False,
        parent: QueueCore | None = None,
    ) -> None: ...
    def nudge(self) -> None: ...
    def acked(self, keys: array[int], owner: int, sink: Callable[[int], None] | None = None) -> int: ...
    def claim(self, key: int, owner: int) -> bool: ...
    def release(self, keys: array[int], owner: int) -> int: ...
    def remove(self, key: int, owner: int = 0) -> bool: ...
    def take(self, max_count: int, max_bytes: int, owner: int) -> list[Received]: ...
    def receive_bulk(
        self,
        max_count: int,
        max_bytes: int,
        sink: Callable[[list[Received], int], None],
        pending: bool = False,
        ordered: bool = False,
        wanted: Callable[[], bool] | None = None,
    ) -> int: ...
    def receive_key(
        self,
        key: int,
        sink: Callable[[list[Received], int], None],
        wanted: Callable[[], bool] | None = None,
    ) -> bool: ...
    def peek(self, key: int, sink: Callable[[Received | None, int], object]) -> bool: ...
    def head_in_memory(self, pending: bool = False) -> bool: ...
    def purge(self) -> int: ...
    def abandon(self) -> int: ...
    def enqueue_packets(
        self,
        packets: list[builtins.bytes],
        sink: Callable[[int], None] | None = None,
        fingerprint: int = 0,
        dead_letters: list[int] | None = None,
    ) -> tuple[list[int], list[int]]: ...
    def give_back(self, messages: list[Received], received_is_in_feed: bool = True) -> None: ...

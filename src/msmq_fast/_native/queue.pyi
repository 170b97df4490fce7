import builtins
from array import array
from collections.abc import Callable, Iterable

from msmq_fast._native.batch import CommitListener, PositionVisitor, Reader, Tables, Writer
from msmq_fast._native.positions import PositionList
from msmq_fast._native.sources import SourceTable
from msmq_fast._native.wheel import TimerWheel

SEQUENCE_BLOCK: int

class Received:
    lookup_id: int
    arrival_seq: int
    content_id: int
    arrived_us: int
    packet: builtins.bytes
    abort_count: int
    move_count: int
    @property
    def arrived_time(self) -> int: ...
    @property
    def priority(self) -> int: ...

class Ledger:
    writer: Writer
    reader: Reader
    sequence: int
    sequence_limit: int
    bytes: int
    quota_bytes: int
    cached_bytes: int
    cache_limit: int
    throttled: bool
    feed: bool
    now_s: int
    now_us: int
    reserve: Callable[[int], None] | None
    wake: Callable[[], None] | None
    on_read_error: Callable[[int, int, int], None] | None
    wheel: TimerWheel
    sources: SourceTable
    removals: Removals
    reaping: bool
    def __init__(self, guid: builtins.bytes, writer: Writer, reader: Reader, seed: int = 0) -> None: ...
    def tick(self, now_us: int) -> None: ...
    def new_owner(self) -> int: ...
    def reserved(self, limit: int) -> None: ...
    @property
    def doomed(self) -> int: ...
    @property
    def returned(self) -> int: ...
    def return_again(self) -> None: ...
    def reap(self, limit: int = 1000, sink: Callable[[int], None] | None = None) -> int: ...
    def serve(self) -> None: ...
    def expire(self, limit: int = 1000) -> int: ...
    def next_deadline(self) -> int | None: ...
    def core(self, ordinal: int) -> QueueCore | None: ...
    def totals(self) -> tuple[int, int]: ...

class Removals(CommitListener):
    failed: int

class QueueCore(CommitListener):
    ordinal: int
    positions: PositionList
    ledger: Ledger
    quota_bytes: int
    outgoing: bool
    bytes: int
    used_bytes: int
    messages: int
    arrived_total: int
    removed_total: int
    expired_total: int
    gone: bool
    purged_to: int
    interested: bool
    ready: Callable[[], None] | None
    def __init__(
        self, ledger: Ledger, ordinal: int, quota_bytes: int = 0xFFFFFFFFFFFFFFFF, outgoing: bool = False
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
    ) -> int: ...
    def receive_key(self, key: int, sink: Callable[[list[Received], int], None]) -> bool: ...
    def peek(self, key: int, sink: Callable[[Received | None, int], None]) -> bool: ...
    def head_in_memory(self, pending: bool = False) -> bool: ...
    def purge(self) -> int: ...
    def abandon(self) -> int: ...
    def enqueue_packets(
        self, packets: list[builtins.bytes], sink: Callable[[int], None] | None = None, remember: bool = False
    ) -> tuple[list[int], list[int]]: ...
    def give_back(self, messages: list[Received]) -> None: ...

class Delivery(CommitListener): ...
class Confirmation(CommitListener): ...

class Loader(PositionVisitor):
    positions: int
    bytes: int
    highest_sequence: int
    doomed: int
    orphans: dict[int, int]
    damaged: list[builtins.bytes]
    def __init__(self, ledger: Ledger, purges: dict[int, int], deleting: Iterable[int] = ()) -> None: ...
    def run(self, tables: Tables) -> int: ...

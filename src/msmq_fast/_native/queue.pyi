import builtins
from array import array
from collections.abc import Callable, Iterable
from enum import IntEnum

from msmq_fast._native.batch import CommitListener, Writer
from msmq_fast._native.outsequence import OutSequence
from msmq_fast._native.positions import PositionList
from msmq_fast._native.sources import SourceTable
from msmq_fast._native.tables import PositionVisitor, Reader, Tables
from msmq_fast._native.wheel import TimerWheel

SEQUENCE_BLOCK: int
TAKEN: tuple[int, int]

class EnqueueResult(IntEnum):
    ENQUEUED = 0
    QUEUE_QUOTA = 1
    MACHINE_QUOTA = 2
    EXPIRED = 3
    ENQUEUED_PENDING = 4
    QUEUE_GONE = 5

class FeedEvent(IntEnum):
    EVENT_NONE = 0
    EVENT_SENT = 1
    EVENT_ARRIVED = 2
    EVENT_RECEIVED = 3
    EVENT_REMOVED = 4
    EVENT_EXPIRED = 5
    EVENT_MOVED = 6
    EVENT_PURGED = 7
    EVENT_JOURNALED = 8
    EVENT_DEAD_LETTERED = 9
    EVENT_ACKED = 10
    EVENT_NACKED = 11
    EVENT_ABORTED_RETURN = 16
    EVENT_RETURNED = 18

class FeedTransport(IntEnum):
    TRANSPORT_LOCAL = 0
    TRANSPORT_MQQB = 1
    TRANSPORT_SRMP = 3

class Received:
    lookup_id: int
    arrival_seq: int
    content_id: int
    arrived_us: int
    packet: builtins.bytes
    abort_count: int
    move_count: int
    reason: int
    dead_letter: int
    @property
    def arrived_time(self) -> int: ...
    @property
    def priority(self) -> int: ...

class Ledger:
    writer: Writer
    reader: Reader
    tables: Tables
    sequence: int
    sequence_limit: int
    bytes: int
    quota_bytes: int
    cached_bytes: int
    cache_limit: int
    throttled: bool
    express_bytes: int
    express_low: int
    express_mid: int
    express_high: int
    memory: int
    on_memory: Callable[[int], None] | None
    feed: bool
    horizon: int
    now_s: int
    now_us: int
    reserve: Callable[[int], None] | None
    on_read_error: Callable[[int, int, int], None] | None
    on_poison: Callable[[int, list[int]], None] | None
    discarded: int
    on_discard: Callable[[int], None] | None
    dispose: Callable[[int, builtins.bytes, int, int, int], tuple[int, bool, QueueCore | None]] | None
    open_stream: Callable[[], int] | None
    final_grace: int
    wheel: TimerWheel
    sources: SourceTable
    removals: Removals
    reaping: bool
    def __init__(self, guid: builtins.bytes, writer: Writer, reader: Reader, seed: int = 0) -> None: ...
    def tick(self, now_us: int) -> None: ...
    def new_owner(self, transfer: bool = False, lease: bool = False) -> int: ...
    def reserved(self, limit: int) -> None: ...
    @property
    def doomed(self) -> int: ...
    @property
    def returned(self) -> int: ...
    def return_again(self) -> None: ...
    def reap(self, limit: int = 1000, sink: Callable[[int], None] | None = None) -> int: ...
    def turned_away(
        self,
        kind: int,
        queue: int,
        source: builtins.bytes,
        ordinal: int,
        size: int,
        message_class: int,
        reason: int = 0,
        identifier: int = 0,
        number: int = 0,
    ) -> None: ...
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

class Identifiers:
    def __init__(self, core: QueueCore) -> None: ...
    def __len__(self) -> int: ...
    def __contains__(self, packet: builtins.bytes) -> bool: ...
    def add(self, packet: builtins.bytes) -> bool: ...

def survey(core: QueueCore, after: int, upto: int, count: int) -> list[tuple[int, int, int, int]]: ...
def is_transactional(packet: builtins.bytes) -> bool: ...
def place(core: QueueCore, entries: list[tuple[builtins.bytes, int, int, int, int]]) -> list[int]: ...
def withdraw(core: QueueCore, keys: list[int], event: int) -> int: ...

class Delivery(CommitListener): ...
class Withdrawal(CommitListener): ...

def dead_letter(target: QueueCore, packet: builtins.bytes, reason: int) -> bool: ...
def give_up(core: QueueCore, key: int, reason: int) -> None: ...
def order_ack(ledger: Ledger, identifier: int, number: int) -> QueueCore | None: ...
def sender_of(ledger: Ledger, identifier: int, ordinal: int = 0, number: int = 0) -> QueueCore | None: ...
def final_ack(ledger: Ledger, ordinal: int, identifier: int, number: int, reason: int) -> bool: ...
def resend(core: QueueCore) -> int: ...
def resent(core: QueueCore) -> None: ...
def may_continue(core: QueueCore, sink: Callable[[int], None]) -> bool: ...
def depart(core: QueueCore, key: int) -> tuple[int, int, int]: ...
def answered(core: QueueCore, key: int, owner: int, keeper: int) -> bool: ...
def session_ended(core: QueueCore, owner: int) -> int: ...
def resume_sequence(core: QueueCore, record: builtins.bytes | None) -> None: ...
def settle_sequence(core: QueueCore, stamp: int) -> None: ...

class Loader(PositionVisitor):
    highest_sequence: int
    orphans: dict[int, int]
    damaged: list[builtins.bytes]
    def __init__(
        self,
        ledger: Ledger,
        purges: dict[int, int],
        deleting: Iterable[int] = (),
        silent: Iterable[int] = (),
        held: Iterable[tuple[int, int]] = (),
    ) -> None: ...
    def run(self, tables: Tables) -> int: ...

def seek(core: QueueCore, key: int, forward: bool = True, peek: bool = False) -> int | None: ...
def readable(core: QueueCore, key: int, peek: bool = False) -> bool: ...
def allow_peek_when_locked(core: QueueCore, key: int, allowed: bool = True) -> bool: ...
def holds(core: QueueCore, key: int, owner: int) -> bool: ...
def hand_out(core: QueueCore, key: int, owner: int, sink: Callable[[Received | None, int], None]) -> None: ...
def fresh(core: QueueCore) -> list[int]: ...
def move(
    source: QueueCore, key: int, target: QueueCore, sink: Callable[[int], None] | None = None
) -> bool: ...
def lock_for_move(source: QueueCore, key: int, owner: int, target: QueueCore) -> bool: ...
def keep_counts(core: QueueCore, keys: array[int]) -> None: ...
def move_locked(source: QueueCore, key: int, owner: int, target: QueueCore) -> bool: ...
def complete_move(source: QueueCore, key: int, owner: int, target: QueueCore) -> bool: ...
def abort_move(source: QueueCore, key: int, owner: int, target: QueueCore) -> bool: ...
def lease(
    core: QueueCore, owner: int, max_count: int, max_bytes: int, one: bool = True
) -> tuple[array[int], int]: ...
def lock_again(core: QueueCore, keys: array[int], owner: int) -> int: ...
def leased(core: QueueCore, keys: array[int], first: int, owner: int) -> tuple[array[int], array[int]]: ...
def settle(core: QueueCore, keys: array[int], owner: int) -> int: ...
def chain(ledger: Ledger, behind: int) -> int: ...

class Horizon(CommitListener):
    def __init__(self, ledger: Ledger) -> None: ...
    def look(self, sink: Callable[[], object] | None = None) -> int: ...

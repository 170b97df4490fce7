"""Types of one queue, see src/_native/queue.pyx, and of the ledger of all queues, which
msmq_fast._native.ledger has.
"""

import builtins
from array import array
from collections.abc import Callable
from typing import Protocol

from msmq_fast._native.batch import CommitListener, Writer
from msmq_fast._native.ledgerbase import Removals
from msmq_fast._native.outsequence import OutSequence
from msmq_fast._native.positions import PositionList
from msmq_fast._native.queuebase import Received
from msmq_fast._native.sources import SourceTable
from msmq_fast._native.tables import Reader, Tables
from msmq_fast._native.wheel import TimerWheel

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
    in_per_second: float
    out_per_second: float
    out_of_order: int
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
        ready: Callable[[], None] | None = None,
    ) -> None: ...
    def nudge(self) -> None: ...
    def acked(
        self, keys: array[int], owner: int, sink: Callable[[int], None] | None = None, caller: int = 0
    ) -> int: ...
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
        caller: int = 0,
    ) -> int: ...
    def receive_key(
        self,
        key: int,
        sink: Callable[[list[Received], int], None],
        wanted: Callable[[], bool] | None = None,
        caller: int = 0,
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
    def requeue(self, messages: list[Received], received_is_in_feed: bool = True) -> None: ...

class LedgerOwner(Protocol):
    """The functions that a ledger calls. Each is called inside the unit of its cause, if there is one."""

    def on_removed(
        self, role: int, packet: builtins.bytes, reason: int, ack_flags: int, chosen: int
    ) -> tuple[int, bool, QueueCore | None]:
        """Applies the side effects of a removal. Returns the class of the outcome, whether an acknowledgment
        was sent, and the queue that gets the message or a copy.
        """

    def reserve_sequence(self, limit: int) -> None:
        """Reserves arrival sequences up to `limit`. `Ledger.reserved` must be called when that has ended."""

    def new_stream(self) -> int:
        """Returns the TxSequenceID (TimeStamp << 32 | Ordinal) of a new sequence; 0: none is reserved."""

    def discarded(self, ordinal: int) -> None:
        """Called if a queue had no room for a copy; at most once a minute."""

    def expired(self, messages: list[tuple[int, builtins.bytes, int]], more: int) -> None:
        """Called with (queue ordinal, GUID, ordinal of the identifier) of the first messages that expired in
        one step, and the number of the others.
        """

    def memory_changed(self, level: int) -> None:
        """Called when `Ledger.memory` has changed."""

    def poisoned(self, ordinal: int, keys: list[int]) -> None:
        """Called if messages of a queue were put back too often; they are locked until they are moved."""

    def read_failed(self, ordinal: int, key: int, status: int) -> None:
        """Called if the packet of a message cannot be read from the store."""

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
    watermark: int
    now_s: int
    now_us: int
    reserve: Callable[[int], None] | None
    on_read_error: Callable[[int, int, int], None] | None
    on_poison: Callable[[int, list[int]], None] | None
    discarded: int
    on_discard: Callable[[int], None] | None
    on_removed: Callable[[int, builtins.bytes, int, int, int], tuple[int, bool, QueueCore | None]] | None
    open_stream: Callable[[], int] | None
    final_grace: int
    wheel: TimerWheel
    sources: SourceTable
    removals: Removals
    reaping: bool
    def __init__(
        self,
        guid: builtins.bytes,
        writer: Writer,
        reader: Reader,
        seed: int = 0,
        owner: LedgerOwner | None = None,
    ) -> None: ...
    def tick(self, now_us: int) -> None: ...
    def new_owner(self, transfer: bool = False, lease: bool = False) -> int: ...
    def reserved(self, limit: int) -> None: ...
    @property
    def pending_deletes(self) -> int: ...
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

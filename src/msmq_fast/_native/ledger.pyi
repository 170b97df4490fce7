"""Types of the ledger of all queues; see src/_native/ledger.pyx."""

import builtins
from collections.abc import Callable
from typing import Protocol

from msmq_fast._native.batch import Writer
from msmq_fast._native.ledgerbase import Removals
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.sources import SourceTable
from msmq_fast._native.tables import Reader, Tables
from msmq_fast._native.wheel import TimerWheel

class LedgerOwner(Protocol):
    """What a ledger asks and tells. Each method is called inside the unit of its cause, if there is one."""

    def dispose(
        self, role: int, packet: builtins.bytes, reason: int, wishes: int, chosen: int
    ) -> tuple[int, bool, QueueCore | None]:
        """What follows from a removal: the class of what became of the message, whether an acknowledgment
        went out, and the queue that gets the message or a copy.
        """

    def reserve_sequence(self, limit: int) -> None:
        """Reserve arrival sequences up to `limit`; `Ledger.reserved` ends it."""

    def new_stream(self) -> int:
        """The TxSequenceID (TimeStamp << 32 | Ordinal) of a sequence that begins; 0: none is reserved."""

    def discarded(self, ordinal: int) -> None:
        """A queue had no room for a copy; at most once a minute."""

    def memory_changed(self, level: int) -> None:
        """`Ledger.memory` has changed."""

    def poisoned(self, ordinal: int, keys: list[int]) -> None:
        """Messages of a queue were put back too often; they are locked until they are moved."""

    def read_failed(self, ordinal: int, key: int, status: int) -> None:
        """The packet of a message cannot be read from the store."""

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

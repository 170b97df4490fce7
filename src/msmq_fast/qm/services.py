"""Services for every part of the queue manager: identity, settings, time, random numbers and the store."""

from __future__ import annotations

import logging
from collections import Counter
from enum import IntEnum
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

from msmq_fast._native.ledger import Ledger
from msmq_fast._native.ledgerbase import SEQUENCE_BLOCK
from msmq_fast.protocol.errors import ServiceNotAvailable
from msmq_fast.qm.clock import Clock
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.ids import MESSAGE_BLOCK, Ordinals
from msmq_fast.qm.records import Records, Store
from msmq_fast.qm.settings import QueueManagerSettings, quota_bytes
from msmq_fast.store.schema import MetaName

if TYPE_CHECKING:
    from msmq_fast._native.ledger import LedgerOwner  # a Protocol, in the stub only

__all__ = ["Services", "State"]

_log = logging.getLogger(__name__)

FIRST_MESSAGE_BITS = 31
"""Number of bits of the random ordinal at which message identifiers of a new store begin.

It is random so that it cannot be guessed from the age of the store.
"""


class State(IntEnum):
    """The states of a queue manager (QueueManagerState, ST-7)."""

    STOPPED = 0
    INITIALIZING = 1
    READY = 2
    STOPPING = 3


class Services:
    """The services that the parts of the queue manager share. All methods run on one thread. Call `tick` to
    update the time before other methods.

    `guid` and `name` identify the queue manager. `ledger` is the native object with the state that all queues
    share; it calls `owner`. `damage` counts damaged data in the store: records by kind, and packets.
    """

    def __init__(
        self,
        store: Store,
        settings: QueueManagerSettings,
        clock: Clock,
        random: Random,
        owner: LedgerOwner,
        faults: Faults | None = None,
    ) -> None:
        self.store = store
        self.settings = settings
        self.records = Records(store)
        self.state = State.STOPPED
        self.faults = faults or Faults()  # unexpected exceptions; the server adds its own
        self.damage: Counter[str] = Counter()
        self.clock = clock
        self._random = random
        self.guid = self._identity()
        self.name = settings.computer_name
        seed = int.from_bytes(self.random_bytes(8))
        self.ledger = Ledger(self.guid.bytes_le, store.writer, store.reader, seed, owner)
        self.ledger.tables = store.tables
        self.ledger.quota_bytes = quota_bytes(settings.quota_kb)
        self.ledger.cache_limit = settings.cache_bytes
        self.ledger.feed = settings.feed
        self.message_ordinals = Ordinals(
            self.records,
            MetaName.MESSAGE_ID_HW,
            first=random.getrandbits(FIRST_MESSAGE_BITS),
            block=MESSAGE_BLOCK,
            wraps=True,
        )

    def _identity(self) -> UUID:
        stored = self.records.meta(MetaName.GUID)
        return self.new_guid() if stored is None else UUID(bytes_le=stored)

    # ---- time and random numbers

    def monotonic(self) -> float:
        """Monotonic seconds of the clock that the constructor got."""
        return self.clock.monotonic()

    def tick(self) -> None:
        """Update the time from the clock."""
        self.ledger.tick(self.clock.wall_us())

    def random_bytes(self, count: int) -> bytes:
        """Returns random bytes from the source that the constructor got."""
        return self._random.randbytes(count)

    def new_guid(self) -> UUID:
        """Returns a random GUID."""
        return UUID(bytes=self.random_bytes(16), version=4)

    # ---- state

    def require_ready(self) -> None:
        """Raises SERVICE_NOT_AVAILABLE unless the queue manager is ready."""
        if self.state is not State.READY:
            raise ServiceNotAvailable(f"the queue manager is {self.state.name.lower()}")

    def reserve(self) -> None:
        """Reserve the first blocks of message ordinals and arrival sequences. Call at start, inside a unit
        (DU-18).
        """
        self.message_ordinals.reserve()
        self.reserve_sequence(self.ledger.sequence_limit + SEQUENCE_BLOCK)

    def reserve_sequence(self, limit: int) -> None:
        """Reserve arrival sequences up to `limit`."""
        done = self.records.unit(lambda: self.records.set_meta(MetaName.SEQUENCE_HW, limit))
        done.add_done_callback(lambda done: self.ledger.reserved(0 if done.exception() else limit))

    # ---- damage

    def report_corrupt(self, kind: str, text: str, count: int = 1) -> None:
        """Count and log a damaged item in the store. The item stays in the store."""
        self.damage[kind] += count
        _log.error("not loaded: %s", text)

    def read_failed(self, ordinal: int, lookup_id: int, status: int) -> None:
        """Report a message whose packet cannot be read."""
        self.report_corrupt(
            "packet", f"the packet of message {lookup_id} of queue {ordinal} cannot be read (status {status})"
        )

"""Acknowledgment of transactional messages in transit: OrderAcks, FinalAcks and the resend ladder (MS-MQQB
3.1.5.6, 3.1.5.7, 3.1.6.5).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from msmq_fast._native.ledger import Ledger
from msmq_fast._native.outbound import final_ack, order_ack, resend, resent, sender_of
from msmq_fast._native.queue import QueueCore
from msmq_fast.packet.acks import FinalAck, OrderAck
from msmq_fast.protocol.classes import about_receiving, is_negative
from msmq_fast.qm.deadlines import Deadlines
from msmq_fast.qm.faults import Faults


@dataclass(frozen=True, slots=True)
class Messenger:
    """The peer that brought an acknowledgment.

    `addresses`: its acknowledgments count for messages that were sent to one of these addresses. `manager`:
    the queue manager that the peer is verified to be; None if it could not be verified. `router`: True if the
    peer is a router, which forwards acknowledgments of other queue managers.
    """

    addresses: frozenset[str] = frozenset()
    manager: UUID | None = None
    router: bool = False


@dataclass(slots=True)
class _Route:
    """Where the messages of one outgoing queue go. `manager`: the queue manager of their destination; None if
    unknown. `addresses`: the addresses to which they were sent since the start of the server.
    """

    manager: UUID | None
    addresses: dict[str, None] = field(default_factory=dict)


_log = logging.getLogger(__name__)

_MOST_ADDRESSES = 16
"""Maximum number of addresses that are remembered for one queue; a peer that moves often keeps the latest."""


class SequenceEvent(Enum):
    """The names of counters for metrics: of acknowledgments by outcome, and of resend time-outs."""

    ORDER_ACK = "OrderAcks"
    STRAY_ORDER_ACK = "OrderAcks that match no sequence"
    FINAL_ACK = "FinalAcks"
    STRAY_FINAL_ACK = "FinalAcks that match no message"
    FOREIGN = "acknowledgments from another address than the messages were sent to"
    RESEND = "resend time-outs"


class OutgoingSequences:
    """The sequences of all outgoing queues. Times are monotonic seconds.

    `ladder` is the ResendTimerTable: entry i is how many seconds a sequence waits for an OrderAck after i
    unanswered attempts, before its messages are sent again. The last entry repeats (QB-128). `on_rejected` is
    called for each message that its destination refused.
    """

    def __init__(
        self,
        guid: UUID,
        ledger: Ledger,
        ladder: tuple[float, ...],
        on_rejected: Callable[[FinalAck], None] | None = None,
        faults: Faults | None = None,
    ) -> None:
        if not ladder:
            raise ValueError("a resend ladder must have at least one interval")
        self._guid = guid
        self._ledger = ledger
        self._ladder = ladder
        self._on_rejected = on_rejected
        self._faults = faults or Faults()
        self._due: Deadlines[QueueCore] = Deadlines()
        self._routes: dict[QueueCore, _Route] = {}
        self.counts: Counter[SequenceEvent] = Counter()

    # ---- the Transactional Ack Wait Timer, one per sequence (AMB-42)

    def transmitted(self, core: QueueCore, now: float) -> None:
        """Called when messages of a queue's sequence were written to a session: start the resend timer of the
        sequence, unless the timer is already running.
        """
        if core not in self._due and core.sequence is not None and core.sequence.sent:
            self._start(core, now)

    def _start(self, core: QueueCore, now: float) -> None:
        sequence = core.sequence
        if sequence is None:
            return
        interval = self._ladder[min(sequence.resend_index, len(self._ladder) - 1)]
        sequence.resend_interval = round(interval)
        sequence.resend_s = self._ledger.now_s + round(interval)
        self._due.set(core, now + interval)

    def stop(self, core: QueueCore) -> None:
        """Stop the resend timer of a queue's sequence, because no message of it is in transit."""
        if core in self._due and core.sequence is not None:
            core.sequence.resend_s = 0
        self._due.set(core, None)

    def resend_now(self, core: QueueCore, now: float) -> None:
        """Let the next call of `expire` send the messages of a queue's sequence again, and start the ladder
        from its beginning; do nothing if no message waits for an OrderAck.
        """
        if core in self._due and core.sequence is not None:
            core.sequence.resend_index = 0
            self._due.set(core, now)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never."""
        return self._due.next_deadline()

    def expire(self, now: float) -> None:
        """For each sequence whose timer has expired: send all messages again that no OrderAck has
        acknowledged, in order and with the same numbers. Then start the timer with the next entry of the
        ladder (AMB-17).
        """
        for core in self._due.take(now):
            if core.gone or core.sequence is None or not core.sequence.sent:
                continue
            self.counts[SequenceEvent.RESEND] += 1
            core.sequence.resend_index = min(core.sequence.resend_index + 1, len(self._ladder) - 1)
            for step in (resent, lambda core: self._start(core, now), resend):
                try:
                    step(core)
                except Exception as error:
                    self._faults.note("sending again", error)

    # ---- acknowledgments; to be called inside a unit of work

    def reached(self, core: QueueCore, address: str, manager: UUID | None) -> None:
        """Record that messages of a queue are now sent to a session with a peer at `address`.

        `manager` is the queue manager of their destination, None if the name of the queue does not determine
        it.
        """
        route = self._routes.setdefault(core, _Route(manager))
        route.manager = manager
        route.addresses.pop(address, None)
        route.addresses[address] = None
        if len(route.addresses) > _MOST_ADDRESSES:
            del route.addresses[next(iter(route.addresses))]

    def forget(self, core: QueueCore) -> None:
        """Forget a deleted queue."""
        self.stop(core)
        self._routes.pop(core, None)

    def _counts(self, core: QueueCore | None, messenger: Messenger | None) -> bool:
        """Whether an acknowledgment that a peer brought counts for the messages of a queue.

        Until the first message of the queue is sent after a start, it is not known to which address earlier
        ones were sent. Then acknowledgments of any peer count, and only the numbers in them are checked.
        """
        route = None if core is None else self._routes.get(core)
        if route is None or messenger is None or messenger.router:
            return True
        if messenger.manager is not None and messenger.manager == route.manager:
            return True
        if messenger.addresses.isdisjoint(route.addresses):
            self.counts[SequenceEvent.FOREIGN] += 1
            _log.debug(
                "ignored an acknowledgment from %s: its messages were sent to %s",
                ", ".join(sorted(messenger.addresses)),
                ", ".join(route.addresses),
            )
            return False
        return True

    def order_ack(self, ack: OrderAck, now: float, messenger: Messenger | None = None) -> None:
        """Apply an OrderAck: the destination has stored the messages of a sequence up to a number (QB-208 …
        QB-212).
        """
        identifier = ack.sequence_timestamp << 32 | ack.sequence_ordinal
        if not self._counts(sender_of(self._ledger, identifier), messenger):
            return
        core = order_ack(self._ledger, identifier, ack.sequence_number)
        if core is None:
            self.counts[SequenceEvent.STRAY_ORDER_ACK] += 1
            return
        self.counts[SequenceEvent.ORDER_ACK] += 1
        self._ledger.writer.on_roll_back(lambda: self._start(core, now))
        self._advanced(core, now)

    def _advanced(self, core: QueueCore, now: float) -> None:
        sequence = core.sequence
        if sequence is None or not sequence.sent:
            self.stop(core)
        elif sequence.ack_count == 1:
            self._start(core, now)

    def final_ack(self, ack: FinalAck, now: float, messenger: Messenger | None = None) -> None:
        """Apply a FinalAck: the final state of one message at its destination (QB-216 … QB-219)."""
        identifier = ack.sequence_timestamp << 32 | ack.sequence_ordinal
        core = sender_of(self._ledger, identifier, ack.message_id, ack.sequence_number)
        if not self._counts(core, messenger):
            return
        if ack.source == self._guid and final_ack(
            self._ledger, ack.message_id, identifier, ack.sequence_number, ack.message_class
        ):
            self.counts[SequenceEvent.FINAL_ACK] += 1
            refused = is_negative(ack.message_class) and not about_receiving(ack.message_class)
            if refused and self._on_rejected is not None:
                self._on_rejected(ack)
        else:
            self.counts[SequenceEvent.STRAY_FINAL_ACK] += 1

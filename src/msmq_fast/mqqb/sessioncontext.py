"""The context that all MS-MQQB sessions of one queue manager share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from msmq_fast._native.history import DuplicateHistory
from msmq_fast._native.instream import InStreams
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.receive import Receiver
from msmq_fast._native.routes import Routes
from msmq_fast.mqqb.destination import Gate, Resolver
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.limits import Limits, PartialPackets
from msmq_fast.mqqb.orderack import OrderAcks
from msmq_fast.mqqb.peers import Peers
from msmq_fast.mqqb.receive import Counts, Nack, Pipeline
from msmq_fast.mqqb.shortage import WindowSizes
from msmq_fast.mqqb.streamshares import StreamShares
from msmq_fast.mqqb.switches import Switches
from msmq_fast.mqqb.timers import Timers
from msmq_fast.security.keyturns import KeyTurns

if TYPE_CHECKING:
    from msmq_fast.mqqb.reasons import Refusal

DEFAULT_WINDOW = 64


class SessionContext:
    """Identity, settings and tables.

    `resolve` finds the local queue of a message, see `destination.Resolver`;
    `on_refusal(refusal, receiver)` hears of each message that was dropped while the receiver stands at it.
    `gate` decides about senders to queues with restricted access; without it, none of them may send.
    `quarantine` is where messages of refused senders go, if it gives a queue.
    `nack` does what follows when a message is refused.
    `order_acks` acknowledges the streams that arrive; without it they get no acknowledgments.
    `hooks` may be set later too: what routing, security, tracing and outgoing sequences do with messages.
    `turns` are those for operations with keys that a message of a session asks for (`ReceivedKeys`).
    `peers` are the sessions by the queue manager at their other end; `order_acks` knows the same.
    """

    def __init__(
        self,
        guid: UUID,
        ledger: Ledger,
        resolve: Resolver,
        *,
        history: DuplicateHistory | None = None,
        window: int = DEFAULT_WINDOW,
        timers: Timers | None = None,
        switches: Switches | None = None,
        limits: Limits | None = None,
        on_refusal: Callable[[Refusal, Receiver], None] | None = None,
        gate: Gate | None = None,
        quarantine: Callable[[], QueueCore | None] | None = None,
        nack: Nack | None = None,
        order_acks: OrderAcks | None = None,
        hooks: Hooks | None = None,
        turns: KeyTurns | None = None,
        peers: Peers | None = None,
    ) -> None:
        if not 1 <= window <= 0xFFFF:
            raise ValueError("the window must be between 1 and 65535")
        self.guid = guid
        self.ledger = ledger
        self.window = window
        self.timers = timers if timers is not None else Timers()
        self.switches = switches if switches is not None else Switches()
        self.windows = WindowSizes(window, self.timers.window_recovery)
        self.limits = limits if limits is not None else Limits()
        self.partial_packets = PartialPackets(self.limits.unfinished)
        self.history = history if history is not None else DuplicateHistory()
        self.order_acks = order_acks
        self.streams = order_acks.streams if order_acks is not None else InStreams(ledger)
        self.routes = Routes()
        self.peers = peers if peers is not None else Peers(guid)
        self.counts = Counts()
        self.hooks = hooks or Hooks()
        self.turns = turns
        self._stream_shares = StreamShares(self.streams, self.limits.streams_per_address)
        self.pipeline = Pipeline(
            guid,
            resolve,
            self.routes,
            self.counts,
            on_refusal,
            gate,
            quarantine,
            nack,
            self.hooks,
            self._stream_shares,
        )

    def set_limits(self, limits: Limits, session_init: float) -> None:
        """Replace the limits, and the seconds of the Session Initialization Timer.

        A session keeps the rate of session keys that it began with, and `unfinished` stays as it is.
        """
        self.limits = limits
        self.timers = replace(self.timers, session_init=session_init)
        self._stream_shares.most = limits.streams_per_address

    def forget_routes(self) -> None:
        """Queues were created, deleted or changed: destinations are looked up anew."""
        self.routes.clear()

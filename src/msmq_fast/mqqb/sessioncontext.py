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
    """Identity, settings and tables of all sessions.

    `resolve` finds the local queue of a message, see `destination.Resolver`.
    `on_refusal(refusal, receiver)` is called for each dropped message: the current one of the receiver.
    `gate` decides about senders to queues with restricted access; without it, no sender may send to them.
    `quarantine` returns the queue for messages of refused senders; None if there is no such queue.
    `nack` applies the side effects of a refusal.
    `order_acks` acknowledges arriving streams; without it they are not acknowledged.
    `hooks` are the hooks of routing, security, tracing and outgoing sequences; they may be set later.
    `turns` schedules the operations with private keys that arriving messages need (`ReceivedKeys`).
    `peers` has the sessions by the GUID of their peer; it must be the object that `order_acks` uses.
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
        """Replace the limits and the Session Initialization Timer; `session_init` is in seconds.

        Open sessions keep their rate limit of session keys. The limit `unfinished` is not replaced.
        """
        self.limits = limits
        self.timers = replace(self.timers, session_init=session_init)
        self._stream_shares.most = limits.streams_per_address

    def forget_routes(self) -> None:
        """Forget the routes, because queues were created, deleted or changed: destinations are looked
        up again.
        """
        self.routes.clear()

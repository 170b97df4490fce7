"""The interface through which `transfer` uses the outgoing queues of the queue manager (MC-MQSRM 3.1.7.2)."""

from __future__ import annotations

import logging
import math
from array import array
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from msmq_fast._native.outbound import answered, depart, give_up, may_continue
from msmq_fast._native.queuebase import Received
from msmq_fast._native.receive import head
from msmq_fast.logfields import Fields, about_packet, logged
from msmq_fast.packet.properties import is_traced
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import PacketFault
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.outgoing.resending import OutgoingSequences
from msmq_fast.qm.queues.outgoing import ConnectionStatus, OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.stall import FLOWING, Stall
from msmq_fast.srmp.endpoint import Endpoint, Progress
from msmq_fast.srmp.returnpath import split
from msmq_fast.srmp.sending import Report, too_late, url_of
from msmq_fast.srmp.urls import Url
from msmq_fast.srmp.values import Nonconforming

__all__ = ["ChannelContext", "Encode", "HttpChannel", "Place"]

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
S_contra = TypeVar("S_contra", contravariant=True)

_log = logging.getLogger("msmq_fast.srmp")

_TAKE: Final = 1 << 26  # bytes; one message is taken at a time

Place = tuple[int, int, int]
"""The place of a message in its stream: (identifier of the stream, number of the message, previous number).

Zeros if the message has no stream.
"""

_STATUS: Final = {
    Progress.IN_PROCESS: (ConnectionStatus.IN_PROCESS, OutgoingState.WAITING, 0),
    Progress.ESTABLISHED: (ConnectionStatus.ESTABLISHED, OutgoingState.CONNECTED, 0),
    Progress.DNS_FAILURE: (ConnectionStatus.DNS_FAILURE, OutgoingState.INACTIVE, 0x80072AF9),
    Progress.CONNECT_FAILURE: (ConnectionStatus.SOCKET_CONNECT_FAILURE, OutgoingState.INACTIVE, 0x8007274C),
    Progress.REFUSED: (ConnectionStatus.CONNECTION_REFUSED, OutgoingState.INACTIVE, 0x8007274D),
    Progress.CERTIFICATE_FAILURE: (
        ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE,
        OutgoingState.INACTIVE,
        0x80090325,
    ),
    Progress.CREATE_FAILURE: (ConnectionStatus.SOCKET_CREATE_FAILURE, OutgoingState.INACTIVE, 0x80072728),
    Progress.SEND_FAILURE: (ConnectionStatus.SOCKET_SEND_FAILURE, OutgoingState.INACTIVE, 0x80072746),
    Progress.NO_ANSWER: (ConnectionStatus.CONNECTION_NOT_READY, OutgoingState.INACTIVE, 0x8007274C),
    Progress.ANSWERED_BADLY: (ConnectionStatus.UNKNOWN_FAILURE, OutgoingState.INACTIVE, 0xC00E0001),
}
"""For each progress: the connection status, the state of the queue, and the HRESULT of a ConnectionHistory
entry.
"""


class Encode(Protocol[R_co]):
    """Builds an HTTP request from a message."""

    def __call__(self, packet: bytes, url: Url, place: Place) -> R_co:
        """Return the request that sends a message to `url`; `place` is the position of the message in its
        stream.

        Raises Nonconforming if SRMP cannot express the message.
        """


class Carrier(Protocol[S_contra]):
    """Sends the messages of channels; implemented by `transfer.Transfer`."""

    def submit(self, channel: S_contra, now: float) -> None:
        """Called when a channel has messages to send: sends them."""

    def hold(self, channel: S_contra) -> None:
        """Called when the queue of a channel was paused: sends no more of its messages."""

    def release(self, channel: S_contra, now: float) -> None:
        """Called when the queue of a channel was resumed: sends its messages again."""

    def kick(self, channel: S_contra, now: float) -> None:
        """Called when an operator requests an attempt now: connects without the rest of a pause."""


class ChannelContext(Generic[R]):
    """The context that all channels share. `R` is the type of requests."""

    def __init__(
        self,
        carrier: Carrier[HttpChannel[R]],
        manager: QueueManager,
        sequences: OutgoingSequences,
        encode: Encode[R],
        connect_to: Callable[[Url], Url],
        monotonic: Callable[[], float],
        unix_time: Callable[[], int],
        touch: Callable[[], None],
        refused: Callable[[str, str, Fields], None],
        report: Report | None = None,
    ) -> None:
        """- `connect_to` returns, for the URL of a queue, the URL to whose host to connect.
        - `monotonic` and `unix_time` return seconds.
        - `touch` announces work, which is submitted to the store at the end of this iteration of the event
          loop.
        - `refused(reason, description, log fields)` is called for each message that cannot be sent.
        - `report` is called for each traced message that is sent.
        """
        self.carrier = carrier
        self.manager = manager
        self.sequences = sequences
        self.encode = encode
        self.connect_to = connect_to
        self.monotonic = monotonic
        self.unix_time = unix_time
        self.touch = touch
        self.refused = refused
        self.report = report
        self.owner = manager.ledger.new_owner()  # locks messages in progress, which do not expire meanwhile
        self.keeper = manager.ledger.new_owner(transfer=True)  # locks messages that wait for a stream receipt


class HttpChannel(Generic[R]):
    """The interface through which the transfer uses one outgoing queue."""

    def __init__(self, queue: OutgoingQueue, context: ChannelContext[R]) -> None:
        self._context = context
        self._queue = queue
        self._core = queue.core
        self._target: Url | None = None
        self._leads_nowhere = False
        self._only = split(queue.destination.text)[1]  # receipts go to the computer that asked for them
        self._key = 0  # of the message that is under way
        self._address = ""  # of the other side of the connection

    # ---- what the queue tells, see `qm.queues.outgoing.Channel`

    def has_work(self) -> None:
        """Let the carrier send the messages of the queue; called when messages are available."""
        context = self._context
        if self._located():
            context.carrier.submit(self, context.monotonic())
        context.touch()

    def held(self, on_hold: bool) -> None:
        """Let the carrier stop sending when the queue was paused (`on_hold` is True), and send again when it
        was resumed (False).
        """
        context = self._context
        if not self._located():
            return
        if on_hold:
            context.carrier.hold(self)
        else:
            context.carrier.release(self, context.monotonic())
        context.touch()

    def kick(self) -> None:
        """Connect now, and send now what no stream receipt has acknowledged."""
        context = self._context
        if self._located():
            now = context.monotonic()
            context.sequences.resend_now(self._core, now)
            context.carrier.kick(self, now)
        context.touch()

    def obstacle(self) -> Stall:
        """Return `FLOWING`: all that can go wrong is in the history of the queue."""
        return FLOWING

    def _located(self) -> bool:
        """Return whether the queue's name is a URL. If it is not, log that once, at the first message."""
        if self._target is None and not self._leads_nowhere:
            try:
                self._target = url_of(self._queue)
            except ValueError as error:
                self._leads_nowhere = True
                now = self._context.unix_time()
                self._queue.note(ConnectionStatus.UNKNOWN_FAILURE, now, detail=str(error))
                _log.warning(
                    "nothing can be sent to %s: %s",
                    self._queue.name,
                    error,
                    extra=logged(queue=self._queue.name),
                )
        return self._target is not None

    @property
    def _url(self) -> Url:
        """The URL of the queue. Raises ValueError if the queue's name is not a URL."""
        if self._target is None:
            self._target = url_of(self._queue)
        return self._target

    # ---- what the transfer asks and tells

    def endpoint(self) -> Endpoint:
        """Return the server to which to connect now for the messages of the queue."""
        url = self._context.connect_to(self._url)
        only = self._only if url is self._url else None  # an administrator has redirected it
        return Endpoint(url.scheme, url.host, url.port, only)

    def waits(self) -> bool:
        """Return whether the queue holds a message that may be sent."""
        return (
            self._queue.may_send
            and self._context.manager.outgoing_queues.connection_active
            and head(self._core)[1] > 0
            and self._core.head_in_memory()
        )

    def may_continue(self, settled: Callable[[int], None]) -> bool:
        """Return whether the next message may be sent now. If not, a commit must end first.

        At the end of this commit, `settled(status)` is called. The status 0 means success: the caller may ask
        again at once. After any other status, the caller must wait for a timer before it asks again.
        """
        sequence = self._core.sequence
        if sequence is None:
            return True

        def kept(status: int) -> None:
            if not status:
                sequence.state_not_durable = False
            settled(status)

        return may_continue(self._core, kept)

    def take(self) -> R | None:
        """Lock the next message of the queue, and return the request that sends it; None if there is none.

        A message that has expired or that cannot be expressed in SRMP is skipped.
        """
        while self.waits():
            taken = self._core.take(1, _TAKE, self._context.owner)
            if not taken:
                return None
            request = self._request(taken[0])
            if request is not None:
                return request
        return None

    def _request(self, message: Received) -> R | None:
        self._key = message.lookup_id
        if too_late(self._core, message.packet):
            # Unlocked, so that the queue manager's own expiry removes it with all that follows from it.
            self._release()
            self._core.ledger.expire()
            return None
        place = depart(self._core, self._key)
        try:
            request = self._context.encode(message.packet, self._url, place)
        except (Nonconforming, PacketFault, ValueError) as error:
            fields = about_packet(message.packet, self._queue.name, self._address)
            text = f"message {self._key} for {self._queue.name}: {error}"
            self._context.refused("cannot be sent", text, fields)
            self.rejected()
            return None
        report = self._context.report
        if report is not None and is_traced(message.packet):
            report(message.packet, self._address)
        return request

    def accepted(self) -> None:
        """Remove the message that was taken: the receiver has accepted it (200)."""
        answered(self._core, self._key, self._context.owner, self._context.keeper)

    def rejected(self) -> None:
        """Reject the message that was taken: the receiver will never accept it (400)."""
        give_up(self._core, self._key, MessageClass.NACK_BAD_DST_Q)

    def returned(self) -> None:
        """Unlock the message that was taken, so that it is sent again."""
        self._release()

    def _release(self) -> None:
        self._core.release(array("Q", (self._key,)), self._context.owner)

    def transmitted(self, now: float) -> None:
        """Start the Stream Receipt Wait Timer if a message waits for a stream receipt."""
        self._context.sequences.transmitted(self._core, now)

    def stop_waiting(self) -> None:
        """Stop the Stream Receipt Wait Timer."""
        self._context.sequences.stop(self._core)

    def scheduled(self, wait: float) -> None:
        """Record when the next attempt is due, for operators; `wait` is in seconds."""
        self._queue.next_attempt = self._context.unix_time() + math.ceil(wait)

    def progress(self, progress: Progress, address: str, detail: str) -> None:
        """Record a change of the connection in the state and the ConnectionHistory of the queue."""
        queue = self._queue
        queue.next_attempt = 0
        if progress is Progress.CLEANED_UP:
            queue.set_state(OutgoingState.DISCONNECTED)
            return
        status, state, error = _STATUS[progress]
        queue.set_state(state)
        if address:
            self._address = address
            queue.next_hops = (address,)
        queue.note(status, self._context.unix_time(), error, (address,) if address else (), detail)

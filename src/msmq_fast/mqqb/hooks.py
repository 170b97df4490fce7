"""Hooks that the receive pipeline of MS-MQQB 3.1.5.8 calls for special messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from msmq_fast._native.framing import ParsedMessage
from msmq_fast.mqqb.reasons import CloseReason, Refusal
from msmq_fast.protocol.classes import MessageClass

if TYPE_CHECKING:
    from msmq_fast._native.receive import Receiver
    from msmq_fast.mqqb.destination import Destination
    from msmq_fast.packet.acks import FinalAck, OrderAck
    from msmq_fast.qm.outgoing.resending import Messenger


class Protection(Protocol):
    """Signatures and encryption of messages that arrive (3.1.5.8.3)."""

    @property
    def opened(self) -> int:
        """Session keys that a private key was used for since the start: each takes long."""

    def open(self, message: ParsedMessage, target: Destination) -> bytes | Refusal:
        """The packet to be kept: decrypted, its sender verified, SecurityHeader.Flags.AS set by us; or why
        the message is refused. Asked for messages that are encrypted, signed, or have a
        MultiQueueFormatHeader, where a signature may be; and for all messages to a queue that demands it.
        """


class Sequences(Protocol):
    """The transactional sequences that were sent from here (3.1.5.6, 3.1.5.7).

    Acknowledgments are told inside a unit of work; `now` in monotonic seconds.
    """

    def next_deadline(self) -> float | None:
        """When `expire` is to be called."""

    def expire(self, now: float) -> None:
        """Run the resend timers that are due (3.1.6.5)."""

    def order_ack(self, ack: OrderAck, now: float, messenger: Messenger) -> None:
        """The destination keeps everything up to a number."""

    def final_ack(self, ack: FinalAck, now: float, messenger: Messenger) -> None:
        """Reports the final state of one message at its destination."""


Refuse = Callable[["Receiver", Refusal], CloseReason | None]
"""Drops the current message, with all that follows from it, or leaves it undecided: `Pipeline.refuse`."""


class Forward(Protocol):
    """Messages for other queue managers."""

    @property
    def active(self) -> bool:
        """Whether any are passed on. Otherwise they end the session."""

    def __call__(self, receiver: Receiver, message: ParsedMessage, refuse: Refuse) -> CloseReason | None:
        """Store a message: `Receiver.deliver` into an outgoing queue, or `drop`, or `refuse`.

        A CloseReason leaves it undecided and ends the session (AMB-21).
        """


Trace = Callable[[ParsedMessage, "Destination"], None]
"""A message with BaseHeader.Flags.TR was put into a local queue (3.1.5.8.9)."""

TraceSent = Callable[[ParsedMessage, str], None]
"""A message with BaseHeader.Flags.TR was written to the session with an address (3.1.7.1.7)."""


MustWait = Callable[[bytes, MessageClass], bool]
"""Whether there is no room now for what a message would leave behind if it were refused for this reason:
then it stays undecided, and the session ends as it does when there is no room for the message itself
(QB-284)."""


Brought = Callable[[bytes, str], None]
"""A message that asks for an acknowledgment came: GUID of its source on the wire, address of the peer."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of other parts. Without a hook its kind of message is refused, without a report."""

    forward: Forward | None = None
    protection: Protection | None = None
    trace: Trace | None = None
    trace_sent: TraceSent | None = None
    sequences: Sequences | None = None
    must_wait: MustWait | None = None
    brought: Brought | None = None

    @property
    def keys_opened(self) -> int:
        """Session keys that a private key was used for since the start."""
        return 0 if self.protection is None else self.protection.opened

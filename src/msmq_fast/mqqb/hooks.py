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
    """Signatures and encryption of arriving messages (3.1.5.8.3)."""

    @property
    def opened(self) -> int:
        """Number of session keys that were decrypted with a private key since the start.

        Each decryption takes long.
        """

    def open(self, message: ParsedMessage, target: Destination) -> bytes | Refusal:
        """Decrypt a message and verify its sender.

        Returns the packet to store, with SecurityHeader.Flags.AS set by this queue manager; or the reason for
        the refusal. Called for messages that are encrypted, signed, or have a MultiQueueFormatHeader, which
        can contain a signature; and for all messages to a queue that demands protection.
        """


class Sequences(Protocol):
    """The transactional sequences that this queue manager sends (3.1.5.6, 3.1.5.7).

    The acknowledgment methods are called inside a unit of work; `now` is in monotonic seconds.
    """

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never."""

    def expire(self, now: float) -> None:
        """Run the resend timers that are due (3.1.6.5)."""

    def order_ack(self, ack: OrderAck, now: float, messenger: Messenger) -> None:
        """Apply an OrderAck: the destination has all messages of a sequence up to a number."""

    def final_ack(self, ack: FinalAck, now: float, messenger: Messenger) -> None:
        """Apply a FinalAck: the final state of one message at its destination."""


Refuse = Callable[["Receiver", Refusal], CloseReason | None]
"""Drops the current message with all side effects, or leaves it undecided: `Pipeline.refuse`."""


class Forward(Protocol):
    """Forwards messages for other queue managers."""

    @property
    def active(self) -> bool:
        """Whether messages for other queue managers are forwarded. Otherwise they end the session."""

    def __call__(self, receiver: Receiver, message: ParsedMessage, refuse: Refuse) -> CloseReason | None:
        """Store the current message of `receiver` in an outgoing queue, or call `refuse` for it.

        Returns None if one of the two was possible. Otherwise returns a CloseReason: the message stays
        undecided, and the session must end (AMB-21).
        """


Trace = Callable[[ParsedMessage, "Destination"], None]
"""Reports a message with BaseHeader.Flags.TR that was put into a local queue: called with the message and the
destination (3.1.5.8.9).
"""

TraceSent = Callable[[ParsedMessage, str], None]
"""Reports a message with BaseHeader.Flags.TR that was sent: called with the message and the address of the
peer (3.1.7.1.7).
"""


MustWait = Callable[[bytes, MessageClass], bool]
"""Whether a refused message must stay with its sender, because there is no room here now for its dead letter.

The message then stays undecided, and the session ends as it does when there is no room for the message itself
(QB-284).
"""


Brought = Callable[[bytes, str], None]
"""Remembers which peer delivers the messages of a source: called for each arriving message that requests an
acknowledgment, with the GUID of its source as on the wire, and the address of the peer that delivered it.
"""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks that other parts of the queue manager provide; None if the part is absent.

    Without `forward`, a message for another queue manager ends the session. Without `protection`, encrypted
    messages, and all messages to a queue that demands protection, are refused. Without one of the other
    hooks, the step of the pipeline that calls it is omitted.
    """

    forward: Forward | None = None
    protection: Protection | None = None
    trace: Trace | None = None
    trace_sent: TraceSent | None = None
    sequences: Sequences | None = None
    must_wait: MustWait | None = None
    brought: Brought | None = None

    @property
    def keys_opened(self) -> int:
        """Number of session keys that were decrypted with a private key since the start."""
        return 0 if self.protection is None else self.protection.opened

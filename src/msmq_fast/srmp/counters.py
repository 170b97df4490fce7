"""Counts the outcomes of messages that arrive by SRMP, for metrics, logs and the event feed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final
from uuid import UUID

from msmq_fast._native.ledger import Ledger
from msmq_fast._native.queue import QueueCore
from msmq_fast.logfields import Fields
from msmq_fast.protocol.text import printable
from msmq_fast.srmp.classify import Kind
from msmq_fast.srmp.model import NO_IDENTIFIER, Envelope
from msmq_fast.srmp.reasons import Reason
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import EventKind

__all__ = ["Counters", "OnRefusal", "described"]

_MOST_NAME: Final = 256  # characters of the name of a queue in a log line

OnRefusal = Callable[[Reason, str, Fields], None]
"""Called with (reason, description, fields of the log line) for a message that was not accepted."""


class Counters:
    """Counts messages by outcome. `on_refusal(reason, description, fields)` is called for every message that
    was not accepted, except duplicates; the fields are those of its log line. `on_duplicate(source, ordinal,
    destination)` is called for a duplicate.
    """

    __slots__ = (
        "_ledger",
        "_on_duplicate",
        "forwarded",
        "not_taken",
        "on_refusal",
        "peer",
        "receipts",
        "stored",
    )

    def __init__(
        self,
        ledger: Ledger,
        on_refusal: OnRefusal | None = None,
        on_duplicate: Callable[[UUID, int, str], None] | None = None,
    ) -> None:
        self._ledger = ledger
        self.on_refusal = on_refusal
        self._on_duplicate = on_duplicate
        self.stored = 0
        self.forwarded = 0
        self.receipts: Counter[Kind] = Counter()
        """Number of receipts that arrived, by kind."""
        self.not_taken: Counter[Reason] = Counter()
        self.peer = ""
        """Address from which the message comes that is being decided on."""

    def count(self, reason: Reason, description: str, envelope: Envelope | None = None) -> None:
        """Count a message that was not accepted; `description` is for people. `envelope` is None if the
        message has no valid one.
        """
        self.not_taken[reason] += 1
        if self.on_refusal is None or reason is Reason.DUPLICATE:
            return
        fields = {"peer": self.peer}
        if envelope is not None:
            fields["queue"] = printable(envelope.to or envelope.multicast or "")[:_MOST_NAME]
            source, ordinal = envelope.identifier
            if (source, ordinal) != NO_IDENTIFIER:
                fields["message_id"] = f"{{{source}}}\\{ordinal}"
        self.on_refusal(reason, description, fields)

    def refuse(self, reason: Reason, description: str, envelope: Envelope | None = None) -> Completion[int]:
        """Count a message that was not accepted, and return the HTTP status with which it is answered."""
        self.count(reason, description, envelope)
        return Completion.of(int(reason.status))

    def turn_away(
        self, reason: Reason, envelope: Envelope, size: int, queue: QueueCore | None = None
    ) -> Completion[int]:
        """Count a message that has a valid envelope and was not accepted, and write an event to the feed if
        `tell` requires one. Returns the HTTP status with which the message is answered.
        """
        self.count(reason, described(envelope), envelope)
        self.tell(reason, envelope, size, queue)
        return Completion.of(int(reason.status))

    def tell(self, reason: Reason, envelope: Envelope, size: int, queue: QueueCore | None = None) -> None:
        """Write an event to the feed for a duplicate, or for a message that will never be accepted.

        No event is written if the sender will send the message again, because there was no room for the
        message, or an earlier message of its stream is missing. `size` is in octets; `queue` is the local
        destination queue.
        """
        if reason is Reason.DUPLICATE:
            kind, message_class = EventKind.DUPLICATE, 0
        elif reason.message_class is not None:
            kind, message_class = EventKind.NACKED, int(reason.message_class)
        else:
            return
        source, ordinal = envelope.identifier
        if reason is Reason.DUPLICATE and self._on_duplicate is not None:
            self._on_duplicate(source, ordinal, envelope.to)
        part = envelope.stream
        self._ledger.turned_away(
            kind,
            0 if queue is None else queue.ordinal,
            source.bytes_le,
            ordinal,
            size,
            message_class or envelope.message_class,
            message_class,
            0 if part is None else part.sequence,
            0 if part is None else part.current,
        )


def described(envelope: Envelope) -> str:
    """Return a description of a message for logs."""
    return f"{envelope.id} to {envelope.to}"

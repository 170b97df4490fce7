"""The log of messages that did not go their way: what expired, became a dead letter, arrived twice or waits
for a peer; and which programs read a queue.

The lines are in the log `msmq_fast.messages`. Each has the fields `what`, `reason` and, as far as they are
known, `message_id`, `queue` and `peer`. A message that goes its way has no line. Peers and programs can cause
these events at will, so the number of lines a second is bounded; each line says how many were left out before
it (`suppressed`). Refused messages are in the log `msmq_fast.refusals`, acts of operators in
`msmq_fast.audit`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import UUID

from msmq_fast._native.queuebase import Received
from msmq_fast._native.seek import seek
from msmq_fast.packet.message import Message
from msmq_fast.protocol.classes import name_of
from msmq_fast.protocol.text import printable
from msmq_fast.qm.feed.callers import FeedCaller
from msmq_fast.qm.outgoing.stalls import failure_of, stall_of
from msmq_fast.qm.queues.outgoing import ConnectionEvent, ConnectionStatus, OutgoingQueue
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.queues.stall import Stall

__all__ = ["LineLimit", "MessageLog", "identifier_text"]

_log = logging.getLogger("msmq_fast.messages")

_MOST_NAME: Final = 512  # characters of a name of a queue
_MOST_READERS: Final = 10_000  # (queue, caller) pairs that are remembered
_SOURCE, _ORDINAL = slice(16, 32), slice(56, 60)  # of the UserHeader in a packet (MS-MQMQ 2.2.20.1)


def identifier_text(source: bytes, ordinal: int) -> str:
    """Return a message identifier as people write it; `source` is the GUID as on the wire."""
    return f"{{{UUID(bytes_le=source)}}}\\{ordinal}"


class LineLimit:
    """Limits the lines of a log to a number each second."""

    def __init__(self, monotonic: Callable[[], float], lines_per_second: int) -> None:
        self._monotonic = monotonic
        self._limit = lines_per_second
        self._second = -1
        self._lines = 0
        self._left_out = 0

    def set_rate(self, lines_per_second: int) -> None:
        """Set the maximum number of lines per second."""
        self._limit = lines_per_second

    def admit(self) -> int | None:
        """Return how many lines were left out before this one; None if this one is left out, too."""
        second = int(self._monotonic())
        if second != self._second:
            self._second, self._lines = second, 0
        if self._lines >= self._limit:
            self._left_out += 1
            return None
        self._lines += 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class MessageLog:
    """Writes the log. `by_ordinal` returns the queue with an ordinal."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        lines_per_second: int,
        by_ordinal: Callable[[int], Queue | None],
    ) -> None:
        self.limit = LineLimit(monotonic, lines_per_second)
        self._by_ordinal = by_ordinal
        self._readers: dict[tuple[int, FeedCaller], None] = {}  # the oldest first

    # ---- messages

    def expired(self, messages: Sequence[tuple[int, bytes, int]], more: int) -> None:
        """Log messages that expired: (ordinal of the queue, GUID of the source, ordinal of the identifier)
        each. `more` others expired with them.
        """
        for ordinal, source, number in messages:
            queue = self._by_ordinal(ordinal)
            outgoing = isinstance(queue, OutgoingQueue)
            self._line(
                logging.WARNING,
                "message",
                "expired",
                "its time to reach the queue passed" if outgoing else "no program received it in time",
                message_id=identifier_text(source, number),
                queue="" if queue is None else queue.name,
                peer=", ".join(queue.next_hops) if isinstance(queue, OutgoingQueue) else "",
                more=str(more) if more else "",
            )

    def dead_letter(self, message: Message, reason: int, kept_in: str) -> None:
        """Log a message that failed and is kept in the dead-letter queue `kept_in`."""
        self._line(
            logging.WARNING,
            "dead letter",
            name_of(reason),
            f"it is in {kept_in}",
            message_id=identifier_text(message.source_machine.bytes_le, message.message_id),
            queue=str(message.destination or ""),
        )

    def duplicate(self, message_id: str, about: Callable[[], Mapping[str, str]]) -> None:
        """Log a message that arrived again and was dropped: normal after a lost connection. `about` returns
        further fields, such as `queue` and `peer`; it is called only if the line is written.
        """
        left_out = self.limit.admit()
        if left_out is not None:
            fields = {"message_id": message_id, **about()}
            text = "it arrived before, and this copy was dropped"
            self._write(logging.INFO, "message", "duplicate", text, left_out, fields)

    # ---- outgoing queues

    def connection(self, queue: OutgoingQueue, event: ConnectionEvent) -> None:
        """Log that a queue with messages cannot be sent: once for each cause, until a session opens. Queues
        for answers, which peers cause, have no line.
        """
        if event.status is ConnectionStatus.ESTABLISHED:
            if queue.reported:
                queue.reported.clear()
                peer = ", ".join(event.addresses)
                self._line(logging.INFO, "outgoing queue", "sends again", "", queue=queue.name, peer=peer)
        elif event.status.is_failure and queue.messages and not queue.answers_only:
            self._stalled(queue, failure_of(event))

    def paused(self, queue: OutgoingQueue) -> None:
        """Log that a queue was paused, if messages wait in it."""
        self._stalled(queue, stall_of(queue))

    def _stalled(self, queue: OutgoingQueue, stall: Stall) -> None:
        if not stall.cause or stall.cause in queue.reported:
            return
        queue.reported.add(stall.cause)
        self._line(
            logging.WARNING,
            "outgoing queue",
            stall.cause.value,
            stall.reason,
            message_id=_first(queue),
            queue=queue.name,
            peer=", ".join(queue.next_hops),
            messages=str(queue.messages),
        )

    # ---- readers

    def reader(self, queue: Queue, caller: FeedCaller | None) -> None:
        """Log that a program opened a queue to receive from it: once for each program and queue since the
        start.
        """
        if caller is None or (queue.ordinal, caller) in self._readers:
            return
        while len(self._readers) >= _MOST_READERS:
            del self._readers[next(iter(self._readers))]
        self._readers[(queue.ordinal, caller)] = None
        self._line(
            logging.INFO,
            "queue",
            "read",
            "a program receives its messages",
            queue=queue.name,
            user=caller.user or caller.sid,
            program=caller.program,
            peer=caller.address,
        )

    def _line(self, level: int, what: str, reason: str, detail: str, **further: str) -> None:
        left_out = self.limit.admit()
        if left_out is not None:
            self._write(level, what, reason, detail, left_out, further)

    def _write(
        self, level: int, what: str, reason: str, detail: str, left_out: int, further: Mapping[str, str]
    ) -> None:
        known = {name: printable(value)[:_MOST_NAME] for name, value in further.items() if value}
        parts = [detail] if detail else []
        parts += [f"{name.replace('_', ' ')} {value}" for name, value in known.items()]
        fields = {"what": what, "reason": reason, "detail": detail, "suppressed": left_out} | known
        text = f" ({', '.join(parts)})" if parts else ""
        _log.log(level, "%s: %s%s", what, reason, text, extra={"fields": fields})


def _first(queue: OutgoingQueue) -> str:
    """Return the identifier of the first message that waits; "" if its packet is not in memory."""
    found: list[Received] = []
    key = seek(queue.core, 0)
    if key is not None and queue.core.head_in_memory():
        queue.core.peek(key, lambda message, _: None if message is None else found.append(message))
    return _of(found[0].packet) if found else ""


def _of(packet: bytes) -> str:
    return identifier_text(packet[_SOURCE], int.from_bytes(packet[_ORDINAL], "little"))

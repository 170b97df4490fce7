"""Stores messages that arrive, one unit of work each ([MC-MQSRM] 3.1.5.1.6.2, 3.1.5.1.11, 3.1.5.1.12; A-30,
A-31).

One unit of work stores a message, its identifier or its place in its stream, and the effect of a receipt on
our own messages: all of these or none. The answer is sent when the unit is durable, for an express message at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msmq_fast._native.history import NEW, PENDING, DuplicateHistory
from msmq_fast._native.instream import InStream
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.ledgerbase import EnqueueResult
from msmq_fast._native.queue import TAKEN, QueueCore
from msmq_fast.packet.properties import is_traced
from msmq_fast.srmp.counters import Counters
from msmq_fast.srmp.model import NO_IDENTIFIER, Envelope, StreamPart
from msmq_fast.srmp.reasons import Reason, Status
from msmq_fast.srmp.streams import IncomingStreams, Verdict
from msmq_fast.store.completion import Completion

__all__ = ["Intake", "identifier_of", "refusal"]

_REFUSED: Final[dict[int, Reason]] = {
    EnqueueResult.QUEUE_QUOTA: Reason.QUEUE_QUOTA,
    EnqueueResult.EXPIRED: Reason.EXPIRED,
    EnqueueResult.QUEUE_GONE: Reason.UNKNOWN_QUEUE,
}


_LIFETIME: Final = 48
_SENT_TIME: Final = 52
"""Offset of UserHeader.SentTime."""
_SHARE: Final = b"SRMP"
"""The name under which HTTP uses the duplicate history: all of HTTP gets the share of one MS-MQQB address."""


class Intake:
    """Puts messages into local queues and detects duplicates."""

    def __init__(
        self,
        ledger: Ledger,
        history: DuplicateHistory,
        streams: IncomingStreams,
        counters: Counters,
        report: Callable[[bytes], None] | None = None,
    ) -> None:
        """`report` is called with each traced message that was stored."""
        self._ledger = ledger
        self._writer = ledger.writer
        self._history = history
        self._streams = streams
        self._counters = counters
        self._report = report
        self._origin = history.origin(_SHARE)

    def insert(
        self,
        places: Sequence[tuple[QueueCore, bytes]],
        envelope: Envelope,
        effect: Callable[[], None] | None = None,
    ) -> Completion[int]:
        """Store a message in one queue, or in all queues of a multicast group, unless it is a duplicate.
        `effect` runs in the same unit of work. Returns the HTTP status with which the request is answered.
        """
        history, now = self._history, self._ledger.now_s
        identifier = identifier_of(envelope)
        fingerprint = lifetime = 0
        if identifier is not None:
            fingerprint = history.fingerprint(_as_sent(places[0][1], envelope))
            lifetime = int.from_bytes(places[0][1][_LIFETIME : _LIFETIME + 4], "little")
            known = history.check(identifier, now, fingerprint, lifetime)
            if known != NEW:
                self._counters.count(Reason.DUPLICATE, "")
                for core, packet in places:
                    self._counters.tell(Reason.DUPLICATE, envelope, len(packet), core)
                return (
                    self.when_kept(lambda: history.check(identifier, now, fingerprint) != NEW)
                    if known == PENDING
                    else _ok()
                )
        completion: Completion[int] = Completion()
        results: list[int] = []
        with self._writer.unit() as writer:
            for core, packet in places:
                (result,), _ = core.enqueue_packets([packet], None, 0 if results else fingerprint)
                results.append(result)
            taken = [result for result in results if result in TAKEN]
            kept = EnqueueResult.ENQUEUED_PENDING in taken
            if kept or (taken and effect is not None):
                writer.when_durable(_answers(completion))
            if taken and effect is not None:
                effect()
            # After everything that may raise: a message that was not stored has not been seen.
            if taken and identifier is not None:
                history.add(identifier, now, writer if kept else None, fingerprint, self._origin, lifetime)
        stored = EnqueueResult.ENQUEUED_PENDING in taken or bool(taken and effect is not None)
        answer = completion if stored else _ok()
        for (core, packet), result in zip(places, results, strict=True):
            if result in TAKEN:
                self.trace(packet)
            else:
                refused = self._counters.turn_away(refusal(result), envelope, len(packet), core)
                answer = answer if taken else refused
        self._counters.stored += bool(taken)
        return answer

    def take(
        self, core: QueueCore, packet: bytes, envelope: Envelope, part: StreamPart, peer: str
    ) -> Completion[int]:
        """Store a message of a stream if it is the next one, and advance the stream (A-31). `peer` is the
        address that sent the message. Returns the HTTP status with which the message is answered.
        """
        streams = self._streams
        verdict, stream = streams.judge(part, core.ordinal, envelope.to)
        if verdict is Verdict.DUPLICATE:
            self._counters.turn_away(Reason.DUPLICATE, envelope, len(packet), core)
            if stream is not None:
                self._moved(stream, peer)
            if stream is None or not stream.unsettled:
                return _ok()
            return self.when_kept(lambda: stream.durable_number >= part.current)
        if verdict is Verdict.OUT_OF_ORDER:
            return self._counters.turn_away(Reason.OUT_OF_ORDER, envelope, len(packet), core)
        if stream is None:
            return self._counters.turn_away(Reason.TOO_MANY_STREAMS, envelope, len(packet), core)
        completion: Completion[int] = Completion()
        with self._writer.unit() as writer:
            (result,), _ = core.enqueue_packets([packet])
            if result in TAKEN:
                priority = 0 if envelope.msmq is None else envelope.msmq.priority
                streams.accept(stream, part, core.ordinal, envelope.to, priority, peer)
                writer.when_durable(_answers(completion))
        if result not in TAKEN:
            return self._counters.turn_away(refusal(result), envelope, len(packet), core)
        self._counters.stored += 1
        self.trace(packet)
        return completion

    def _moved(self, stream: InStream, peer: str) -> None:
        with self._writer.unit():
            self._streams.moved(stream, peer)

    def trace(self, packet: bytes) -> None:
        """Report a message that was put into a queue if its sender asked for tracing (MS-MQDMPR 3.1.1.12)."""
        if self._report is not None and is_traced(packet):
            self._report(packet)

    def unit(self, effect: Callable[[], None]) -> Completion[int]:
        """Run `effect` in a unit of work of its own. Return the HTTP status with which the request is
        answered: the completion is resolved when the unit is durable.
        """
        completion: Completion[int] = Completion()
        with self._writer.unit() as writer:
            effect()
            writer.when_durable(_answers(completion))
        return completion

    def when_kept(self, kept: Callable[[], bool]) -> Completion[int]:
        """Return the HTTP status with which a duplicate is answered while its first copy is not durable yet.

        The duplicate gets the answer of the first copy; `kept` returns whether the first copy was stored.
        """
        completion: Completion[int] = Completion()

        def ended(status: int) -> None:
            completion.resolve(Status.OK if not status and kept() else Status.LATER)

        with self._writer.unit() as writer:
            writer.when_durable(ended)
        return completion


def _answers(completion: Completion[int]) -> Callable[[int], object]:
    return lambda status: completion.resolve(Status.LATER if status else Status.OK)


def _ok() -> Completion[int]:
    return Completion.of(int(Status.OK))


def refusal(result: int) -> Reason:
    """Return the reason why a queue did not accept a message; `result` is an EnqueueResult."""
    return _REFUSED.get(result, Reason.MACHINE_QUOTA)


def _as_sent(packet: bytes, envelope: Envelope) -> bytes:
    """Return the packet in a form that is the same for all copies of a message.

    If the envelope has no sentAt, SentTime of the packet is the arrival time of the copy; it is set to zero.
    """
    if envelope.sent_at is not None:
        return packet
    return packet[:_SENT_TIME] + bytes(4) + packet[_SENT_TIME + 4 :]


def identifier_of(envelope: Envelope) -> bytes | None:
    """Return the identifier for the duplicate history; None if the message is never a duplicate (SR-177)."""
    source, ordinal = found = envelope.identifier
    if found == NO_IDENTIFIER:
        return None
    return source.bytes_le + ordinal.to_bytes(4, "little")

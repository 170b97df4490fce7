"""Incoming streams: delivery exactly once and in order, with acknowledgments ([MC-MQSRM] 3.1.1.3.2, 3.1.2.3,
3.1.5.1.6.3, 3.1.6.3).

Native code (`InStreams`) stores the progress of a stream, in the unit of work that stores the message. A
separate record holds the other data that receipts need (`Terms`). The whole streamId identifies a stream
(A-15). For each sender and queue the greatest streamId is remembered, so that an older stream never begins
again (A-16).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any
from uuid import UUID

from msmq_fast._native.instream import AHEAD, NEXT, InStream, InStreams
from msmq_fast._native.ledger import Ledger
from msmq_fast.protocol.text import printable
from msmq_fast.qm.deadlines import Deadlines
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.outgoing.latestonly import LatestOnly, Place
from msmq_fast.qm.queues.incoming import IncomingTransfer
from msmq_fast.srmp.model import StreamPart
from msmq_fast.store import decode
from msmq_fast.store.paging import Scan, scan_pages
from msmq_fast.store.records import cold
from msmq_fast.store.schema import Table

__all__ = ["STREAM_PREFIX", "TERMS_PREFIX", "IncomingStreams", "StreamSettings", "Terms", "Verdict"]

STREAM_PREFIX = b"S"
"""Key prefix of the records of `InStreams` in SEQUENCE."""
TERMS_PREFIX = b"T"
"""Key prefix of the records for receipts: the GUID of the sender and the number of the stream follow."""

_STREAM, _GREATEST = 1, 2  # the meaning of an InStream: a stream; the greatest stream of a sender to a queue
_MAX_CLOSED = 4096  # streams that a greater one followed: repetitions of their messages are known for a while
_ROUNDING = 0.001  # seconds: two clocks are looked at
_GUID, _NUMBER = 16, 8  # bytes


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """When streams are acknowledged and deleted; all durations are in seconds."""

    coalescing: float = 0.5  # the pause after which a stream is acknowledged (SR-128)
    coalescing_max: float = 10.0  # a stream that does not pause is acknowledged that often
    lifetime: float = 90 * 86_400.0  # seconds after which an idle stream is deleted
    cleanup: float = 3_600.0  # how often that is looked after


class Verdict(Enum):
    """What to do with a message of a stream, given the messages of the stream that have arrived."""

    ACCEPT = "next"
    DUPLICATE = "duplicate"
    OUT_OF_ORDER = "out of order"
    FULL = "too many streams"


@dataclass(slots=True)
class Terms:
    """The data that receipts for a stream need, most of it from the first message of the stream."""

    receipts_to: str
    destination: str
    """URL of the queue, as the sender wrote it."""
    priority: int = 3
    acknowledged: int = 0
    """The highest number for which a receipt was sent (LastAcknowledgedStreamMessage)."""
    peer: str = ""
    """The address that sent the latest message of the stream."""

    def record(self) -> dict[str, Any]:
        """Return the record to store."""
        return {
            "to": self.receipts_to,
            "for": self.destination,
            "p": self.priority,
            "n": self.acknowledged,
            "a": self.peer,
        }

    @classmethod
    def of(cls, record: dict[str, Any]) -> Terms:
        """Read a stored record. Raises KeyError, TypeError or ValueError if it is damaged."""
        known = str(record["to"]), str(record["for"]), int(record["p"]), int(record["n"])
        return cls(*known, str(record.get("a", "")))


Acknowledge = Callable[[UUID, int, int, Terms], "Place | None"]
"""Sends a stream receipt in the current unit. Arguments: the sender of the stream, the number of the stream,
the last ordinal, and the terms. Returns None if the receipt was not accepted.
"""


class IncomingStreams:
    """All incoming streams. Times are monotonic seconds, as `monotonic` returns them."""

    def __init__(
        self,
        ledger: Ledger,
        monotonic: Callable[[], float],
        settings: StreamSettings | None = None,
        limit: int = 100_000,
        faults: Faults | None = None,
    ) -> None:
        self.streams = InStreams(ledger, limit, STREAM_PREFIX)
        self.receipts = 0
        """Stream receipts that were made since the start."""
        self._ledger = ledger
        self._monotonic = monotonic
        self._settings = settings or StreamSettings()
        self._terms: dict[bytes, Terms] = {}
        self._closed: OrderedDict[InStream, None] = OrderedDict()
        self._faults = faults or Faults()
        self._armed: Deadlines[InStream] = Deadlines()
        self._latest_only: LatestOnly[InStream] = LatestOnly()
        self._cleanup = monotonic() + self._settings.cleanup

    def __len__(self) -> int:
        return sum(1 for stream in self.streams if stream.dest_type == _STREAM and stream.number)

    # ---- the gate

    def judge(self, part: StreamPart, queue: int, destination: str) -> tuple[Verdict, InStream | None]:
        """Returns (verdict, stream) for a message of a stream to the queue with the ordinal `queue` (SR-162).

        `destination` is the URL to which the message was sent: a sender has a stream for each URL, and
        several URLs may lead to one queue. If the verdict is ACCEPT, the stream is not None: call `accept`
        in the unit of work that stores the message. Whatever the verdict, the sender gets a receipt with the
        progress of the stream (A-17).
        """
        source, name = part.sender.bytes_le, part.sequence.to_bytes(_NUMBER)
        stream = self.streams.get(source, _STREAM, name)
        if stream is None or not stream.number:
            if not (part.start and part.current == 1):
                return Verdict.OUT_OF_ORDER, None
            greatest = self.streams.get(source, _GREATEST, _stream_key(queue, destination))
            if greatest is not None and greatest.identifier >= part.sequence:
                return Verdict.DUPLICATE, None
            stream = self.streams.stream(source, _STREAM, name)
            return (Verdict.FULL, None) if stream is None else (Verdict.ACCEPT, stream)
        order = self.streams.consider(stream, part.sequence, part.current, _previous(part))
        if order == NEXT:
            return Verdict.ACCEPT, stream
        return (Verdict.OUT_OF_ORDER if order == AHEAD else Verdict.DUPLICATE), stream

    def accept(
        self, stream: InStream, part: StreamPart, queue: int, destination: str, priority: int, peer: str = ""
    ) -> None:
        """Advance the stream after a queue has accepted the message. Call this inside the unit of work that
        stores the message. `destination` is the URL to which the message was sent, `peer` the address that
        sent it.
        """
        if part.start and part.receipts_to is not None:
            self._keep(stream, Terms(part.receipts_to, destination, priority, peer=peer))
        else:
            self.moved(stream, peer)
        if stream.queue != queue or part.start:
            self._follow(stream, part.sequence, queue, destination)
        self.streams.take(stream, part.sequence, part.current, queue)

    def moved(self, stream: InStream, peer: str) -> None:
        """Store the current address of a stream's sender, for receipts. Call this inside a unit of work."""
        terms = self._terms.get(_key(stream))
        if terms is not None and terms.peer != peer:
            before = terms.peer
            self._ledger.writer.on_roll_back(lambda: setattr(terms, "peer", before))
            terms.peer = peer
            self._write(stream, terms)

    def _follow(self, stream: InStream, sequence: int, queue: int, destination: str) -> None:
        """Remember that a stream has the greatest streamId of its sender for a URL, and that the sender has
        closed the stream that had the greatest streamId before.
        """
        greatest = self.streams.stream(stream.source, _GREATEST, _stream_key(queue, destination))
        if greatest is None or greatest.identifier >= sequence:
            return
        before = self.streams.get(stream.source, _STREAM, greatest.identifier.to_bytes(_NUMBER))
        if before is not None and before is not stream:
            self._ledger.writer.on_roll_back(lambda: self._closed.pop(before, None))
            self._closed[before] = None
        self.streams.take(greatest, sequence, 1, queue)
        while len(self._closed) > _MAX_CLOSED:
            old = next(iter(self._closed))
            if old.armed or not self._forget(old):
                break
            del self._closed[old]

    def _keep(self, stream: InStream, terms: Terms) -> None:
        key = _key(stream)
        before = self._terms.get(key)
        self._ledger.writer.on_roll_back(lambda: self._restore(key, before))
        self._terms[key] = terms
        self._write(stream, terms)

    def _restore(self, key: bytes, terms: Terms | None) -> None:
        if terms is None:
            self._terms.pop(key, None)
        else:
            self._terms[key] = terms

    def _write(self, stream: InStream, terms: Terms) -> None:
        key = TERMS_PREFIX + _key(stream)
        self._ledger.writer.put_record(Table.SEQUENCE, key, cold(terms.record()))

    # ---- receipts

    def next_deadline(self) -> float:
        """Return the time at which to call `expire`: now if messages have arrived in streams whose timer has
        not been started yet.
        """
        if self.streams.ack_due:
            return self._monotonic()
        armed = self._armed.next_deadline()
        return self._cleanup if armed is None else min(armed, self._cleanup)

    def _take_ack_due(self, now: float) -> None:
        """Start the timers of streams in which messages have arrived."""
        for stream in self.streams.take_ack_due():
            if stream.dest_type != _STREAM:
                stream.armed = False
                continue
            stream.acknowledged_at = now - self._silence(stream)  # when the oldest one arrived
            self._armed.set(stream, stream.acknowledged_at + self._settings.coalescing)

    def _silence(self, stream: InStream) -> float:
        """Return the seconds since the latest message of a stream, clamped to the range from 0 to the setting
        `coalescing`, in case the wall clock was set meanwhile.
        """
        silent = (self._ledger.now_us - stream.heard_us) / 1e6
        return min(max(silent, 0.0), self._settings.coalescing)

    def expire(self, now: float, acknowledge: Acknowledge) -> None:
        """Acknowledge, by calling `acknowledge`, the streams in which no message has arrived for the time
        `coalescing`, or whose oldest unacknowledged message has waited for `coalescing_max` (SR-164).
        """
        settings = self._settings
        self._take_ack_due(now)
        for stream in self._armed.take(now):
            left = settings.coalescing - self._silence(stream)
            latest = stream.acknowledged_at + settings.coalescing_max
            if left > _ROUNDING and now < latest:
                self._armed.set(stream, min(now + left, latest))
                continue
            stream.armed = False
            try:
                self._fire(stream, acknowledge)
            except Exception as error:
                self._faults.note("a receipt", error)  # the sender repeats, and is answered then
        if now >= self._cleanup:
            self._cleanup = now + settings.cleanup
            self._age()
            self._latest_only.tidy()

    def _fire(self, stream: InStream, acknowledge: Acknowledge) -> None:
        """Send one receipt for all durable messages of a stream (A-18, SR-118)."""
        number, terms = stream.durable_number, self._terms.get(_key(stream))
        if not number or terms is None:
            return
        with self._ledger.writer.unit() as writer:
            place = acknowledge(UUID(bytes_le=stream.source), stream.durable_identifier, number, terms)
            if place is None:
                return
            self._latest_only.put(stream, place)
            if terms.acknowledged != number:
                before = terms.acknowledged
                writer.on_roll_back(lambda: setattr(terms, "acknowledged", before))
                terms.acknowledged = number
                self._write(stream, terms)
        self.receipts += 1

    def terms(self, sender: bytes, sequence: int, queue: int, destination: str) -> Terms | None:
        """Return the data that receipts for a stream need; None if this data is not known.

        A sender has one URL for receipts, so the data of its latest stream to the queue is also used for
        streams that were forgotten. `sender` is the GUID as on the wire.
        """
        found = self._terms.get(sender + sequence.to_bytes(_NUMBER))
        return found or self._latest(sender, queue, destination)

    def _latest(self, sender: bytes, queue: int, destination: str) -> Terms | None:
        greatest = self.streams.get(sender, _GREATEST, _stream_key(queue, destination))
        return None if greatest is None else self._terms.get(sender + greatest.identifier.to_bytes(_NUMBER))

    # ---- management, ageing, recovery

    def transfers(self) -> list[IncomingTransfer]:
        """Return the IncomingTransactionalTransferInfo of every known stream (SR-165)."""
        return [
            self._transfer(each) for each in self.streams if each.dest_type == _STREAM and each.durable_number
        ]

    def _transfer(self, stream: InStream) -> IncomingTransfer:
        terms = self._terms.get(_key(stream))
        return IncomingTransfer(
            stream.queue,
            "" if terms is None else f"DIRECT={printable(terms.destination)}",
            UUID(bytes_le=stream.source),
            stream.durable_identifier,
            stream.durable_number,
            stream.accessed,
            stream.rejects,
        )

    def _age(self) -> None:
        before = max(0, self._ledger.now_s - int(self._settings.lifetime))
        for stream in [each for each in self.streams if each.accessed < before and not each.armed]:
            if stream.dest_type != _STREAM:
                self._drop(stream)
            elif self._forget(stream):
                self._closed.pop(stream, None)

    def _forget(self, stream: InStream) -> bool:
        """Forget a stream. Also forget the data for its receipts (`Terms`), unless a later stream names
        another URL for receipts.

        Returns False if the stream cannot be forgotten now.
        """
        if not self._drop(stream):
            return False
        key = _key(stream)
        terms = self._terms.get(key)
        latest = None if terms is None else self._latest(stream.source, stream.queue, terms.destination)
        if terms is not None and (
            latest is terms or latest is None or latest.receipts_to == terms.receipts_to
        ):
            del self._terms[key]
            self._ledger.writer.delete_record(Table.SEQUENCE, TERMS_PREFIX + key)
        return True

    def _drop(self, stream: InStream) -> bool:
        with self._ledger.writer.unit():
            return self.streams.drop(stream)

    def load(self, scan: Scan, report_corrupt: Callable[[str, str], None]) -> None:
        """Read the stored streams (A-19). Streams with unacknowledged messages will be acknowledged.

        `scan` reads stored records (see `Tables.scan`); `report_corrupt(kind, text)` is called for each
        damaged record.
        """
        for key, value in _rows(scan, STREAM_PREFIX):
            try:
                self.streams.load(key, value)
            except ValueError as error:
                report_corrupt("stream", f"the record of the stream {key.hex()} is damaged: {error}")
        for key, value in _rows(scan, TERMS_PREFIX):
            try:
                if len(key) != 1 + _GUID + _NUMBER:
                    raise ValueError("the key has the wrong size")
                self._terms[key[1:]] = Terms.of(decode.cold(value))
            except (ValueError, KeyError, TypeError) as error:
                report_corrupt("stream", f"the terms of the stream {key.hex()} are damaged: {error!r}")
        for stream in self.streams:
            if stream.dest_type == _STREAM:
                self._resume(stream)

    def _resume(self, stream: InStream) -> None:
        terms = self._terms.get(_key(stream))
        if terms is None:
            return
        if terms.acknowledged < stream.durable_number:
            self.streams.note_ack_due(stream)
        greatest = self.streams.get(stream.source, _GREATEST, _stream_key(stream.queue, terms.destination))
        if greatest is not None and greatest.identifier > stream.identifier:
            self._closed[stream] = None


def _previous(part: StreamPart) -> int:
    """Return the number of the message before this one in the stream; it may be absent in `part` (A-12)."""
    return part.current - 1 if part.previous is None else min(part.previous, part.current - 1)


def _stream_key(queue: int, destination: str) -> bytes:
    """Return a key for the pair of a queue and the URL by which a sender addresses it.

    The case of the URL makes no difference, since senders compare URLs without regard to case.
    """
    return queue.to_bytes(4) + blake2b(destination.casefold().encode(), digest_size=16).digest()


def _key(stream: InStream) -> bytes:
    return stream.source + stream.name


def _rows(scan: Scan, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    return scan_pages(scan, Table.SEQUENCE, prefix, bytes((prefix[0] + 1,)))

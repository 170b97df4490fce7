"""The account of a run: what programs sent and were told, what they read; nothing of it comes from a server.

Each message says in its body which stream it belongs to and which number it has there.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any

from msmq_fast.protocol.properties import Journal

_BODY = struct.Struct("<4sIII")
_MAGIC = b"SIM1"

EXPIRED = "time to reach queue passed"
EXPECTED = ("duplicate", "queue quota", "out of order", EXPIRED)
MEMORY = 1_700.0
"""Seconds for which a computer must know that it took a message: the half hour of MS-MQQB 3.1.6.7, less what
a clock is set by and the time until a program sees the message."""

Key = tuple[int, int]  # (stream, number)


class Wrong(AssertionError):
    """An invariant does not hold."""


class Kind(Enum):
    EXPRESS = "express"
    RECOVERABLE = "recoverable"
    TRANSACTIONAL = "transactional"


class Fate(Enum):
    """What a sender knows about a message."""

    OFFERED = "offered"  # nothing yet, or never since its computer crashed
    KEPT = "kept"
    REFUSED = "refused"  # also: its transaction was aborted


@dataclass
class Stream:
    """What one program sends to one queue."""

    number: int
    kind: Kind
    source: str
    target: str
    queue: str
    journal: Journal = Journal.NONE
    reach: int | None = None  # seconds in which a message must reach its queue
    receive: int | None = None  # seconds in which it must be received
    counted: bool = True  # False: its queue is purged now and then
    fates: dict[int, Fate] = field(default_factory=dict)
    offered: dict[int, float] = field(default_factory=dict)
    units: dict[int, int] = field(default_factory=dict)  # number -> transaction
    identifiers: dict[int, str] = field(default_factory=dict)
    last: int = 0

    @property
    def mortal(self) -> bool:
        """Whether its messages may expire."""
        return self.reach is not None or self.receive is not None

    @property
    def where(self) -> str:
        return f"{self.target}/{self.queue}"

    @property
    def name(self) -> str:
        return f"{self.kind.value} stream {self.number} from {self.source} to {self.queue} on {self.target}"


def body(stream: int, number: int, size: int) -> bytes:
    """The body of a message; `size` bytes of ballast."""
    return _BODY.pack(_MAGIC, stream, number, size) + bytes([number & 0xFF]) * size


def key_of(content: bytes) -> Key:
    """Raises Wrong for a body that nobody sent."""
    if len(content) < _BODY.size:
        raise Wrong(f"a body that nobody sent: {content[:40]!r}")
    magic, stream, number, size = _BODY.unpack_from(content)
    if magic != _MAGIC or content[_BODY.size :] != bytes([number & 0xFF]) * size:
        raise Wrong(f"message {number} of stream {stream} arrived changed")
    return stream, number


class Account:
    """`crashes`: by computer, when each lost what it had not synced. `tell` hears of every entry."""

    def __init__(
        self, crashes: dict[str, list[float]], tell: Callable[[str, str], None] = lambda who, what: None
    ) -> None:
        self._tell = tell
        self.streams: dict[int, Stream] = {}
        self.crashes = crashes
        self.routers: list[str] = []
        self.reads: Counter[Key] = Counter()  # that are certain
        self.maybe: Counter[Key] = Counter()  # whose reader crashed before it knew
        # LookupIdentifiers in the queue, and when a program saw the message there first
        self.places: dict[Key, dict[int, float]] = defaultdict(dict)
        self.identifiers: dict[Key, set[str]] = defaultdict(set)
        self.slack: Counter[str] = (
            Counter()
        )  # by "computer/queue": reads that may have taken something unseen
        self.duplicates: Counter[str] = Counter()  # by kind
        self.lost_express = 0
        self.repeated = 0  # arrivals that were known for duplicates
        self.full = 0  # messages for which a queue had no room
        self.journaling: set[str] = set()  # "computer/queue" that keep copies of what is read
        self.copies: Counter[Key] = Counter()  # in the journals of those
        self.sent: Counter[Key] = Counter()  # in the journals of the senders' computers
        self.dead: Counter[Key] = Counter()  # in dead-letter queues
        self.expired = 0
        self.refused: dict[str, str] = {}  # message identifier -> why its target did not take it
        self._units = 0
        self.unit_fates: dict[int, Fate] = {}

    # -- sending

    def stream(self, kind: Kind, source: str, target: str, queue: str, **more: Any) -> Stream:
        stream = Stream(len(self.streams) + 1, kind, source, target, queue, **more)
        self.streams[stream.number] = stream
        return stream

    def offer(self, stream: Stream, count: int, now: float, unit: int = 0) -> list[int]:
        """The numbers of the next messages, which are about to be handed to the server; those of a
        transaction must not be seen before its commit begins.
        """
        numbers = list(range(stream.last + 1, stream.last + 1 + count))
        stream.last += count
        for number in numbers:
            stream.fates[number] = Fate.REFUSED if unit else Fate.OFFERED
            stream.offered[number] = now
            if unit:
                stream.units[number] = unit
        return numbers

    def settle(self, stream: Stream, numbers: Iterable[int], fate: Fate) -> None:
        numbers = list(numbers)
        self._tell(stream.source, f"sent {stream.number}:{numbers}: {fate.value}")
        for number in numbers:
            stream.fates[number] = fate

    def name(self, stream: Stream, number: int, identifier: str) -> None:
        """A sender is told the identifier of its message."""
        stream.identifiers[number] = identifier

    def unit(self) -> int:
        """A transaction begins."""
        self._units += 1
        self.unit_fates[self._units] = Fate.REFUSED
        return self._units

    def close(self, unit: int, members: list[tuple[Stream, int]], fate: Fate) -> None:
        """A transaction commits, has committed, or was aborted."""
        self.unit_fates[unit] = fate
        if members:
            texts = ", ".join(f"{stream.number}:{number}" for stream, number in members)
            self._tell(members[0][0].source, f"transaction {unit} of {texts}: {fate.value}")
        for stream, number in members:
            stream.fates[number] = fate

    def refuse(self, identifier: str, reason: str) -> None:
        """A computer says that it does not take a message. For a duplicate that says nothing of the first."""
        if reason not in EXPECTED:
            raise Wrong(f"message {identifier} was refused: {reason}")
        if reason == "duplicate":
            self.repeated += 1
        else:
            self.refused[identifier] = reason

    # -- reading

    def seen(self, where: str, content: bytes, lookup_id: int, identifier: str, now: float) -> Key:
        """A program got a message, perhaps only to give it back."""
        key = key_of(content)
        stream = self.streams.get(key[0])
        if stream is None or key[1] not in stream.fates:
            raise Wrong(f"{where}: message {key} was never sent")
        if stream.where != where:
            raise Wrong(f"{stream.name}: message {key[1]} is in {where}")
        if stream.fates[key[1]] is Fate.REFUSED:
            raise Wrong(f"{stream.name}: message {key[1]} was refused or aborted, and is there")
        self._tell(where, f"sees {key[0]}:{key[1]} at {lookup_id:#x}, {identifier}")
        known = self.identifiers[key]
        known.add(identifier)
        if len(known) > 1:
            raise Wrong(f"{stream.name}: message {key[1]} has several identifiers: {known}")
        places = self.places[key]
        if lookup_id in places:
            if self.reads[key] >= len(places):
                raise Wrong(f"{stream.name}: message {key[1]} was read and is there again, {identifier}")
            return key
        if places and stream.kind is Kind.TRANSACTIONAL:
            raise Wrong(
                f"{stream.name}: message {key[1]} was at {next(iter(places)):#x}, is at {lookup_id:#x}"
            )
        if places:
            self.duplicates[stream.kind.value] += 1
            if not self._excused(stream, key, now):
                raise Wrong(f"{stream.name}: message {key[1]} arrived again, {identifier}")
        places[lookup_id] = now
        return key

    def _excused(self, stream: Stream, key: Key, now: float) -> bool:
        """A computer that crashes forgets which express messages it has taken in; any computer forgets in the
        end what nobody repeats (MS-MQQB 3.1.6.7).
        """
        if now - max(self.places[key].values()) > MEMORY:
            return True
        return stream.kind is Kind.EXPRESS and self._crashed(stream.target, stream.offered[key[1]])

    def read(self, key: Key) -> None:
        """A message was taken for good."""
        self._tell(self.streams[key[0]].target, f"has read {key[0]}:{key[1]}")
        self.reads[key] += 1
        if self.reads[key] > 1 and self.streams[key[0]].kind is Kind.TRANSACTIONAL:
            raise Wrong(f"{self.streams[key[0]].name}: message {key[1]} was received twice")

    def doubt(self, key: Key) -> None:
        """The reader crashed before it knew whether it has taken the message."""
        self._tell(self.streams[key[0]].target, f"may have read {key[0]}:{key[1]}")
        self.maybe[key] += 1

    def _crashed(self, computer: str, since: float) -> bool:
        return any(moment >= since for moment in self.crashes[computer])

    # -- the end

    def copied(self, computer: str, queue: str, content: bytes) -> None:
        """A message was found in a journal or a dead-letter queue when all was over."""
        key = key_of(content)
        stream = self.streams[key[0]]
        self._tell(computer, f"{queue} has {key[0]}:{key[1]}")
        if queue == "journal":
            self.sent[key] += 1
            if stream.source != computer or not stream.journal & Journal.JOURNAL:
                raise Wrong(f"{stream.name}: message {key[1]} is in the journal of {computer}")
        elif queue.startswith("dead"):
            self.dead[key] += 1
            if not stream.journal & Journal.DEADLETTER:
                raise Wrong(f"{stream.name}: message {key[1]} is in {queue} of {computer}")
        else:
            self.copies[key] += 1
            if stream.where != f"{computer}/{queue}":
                raise Wrong(f"{stream.name}: message {key[1]} is in the journal of {queue} of {computer}")

    def _check_copies(self) -> None:
        """What was taken in and read is in the journals once."""
        for stream in self.streams.values():
            if stream.kind is Kind.EXPRESS or not stream.counted:
                continue
            for number in stream.fates:
                key = (stream.number, number)
                if stream.where in self.journaling:
                    if self.reads[key] and not self.reads[key] <= self.copies[key] <= len(self.places[key]):
                        raise Wrong(f"{stream.name}: {self.copies[key]} journal copies of message {number}")
                    if self.copies[key] and not self.reads[key]:
                        self.maybe[key] += 1  # whoever took it was not told
                if stream.journal & Journal.JOURNAL:
                    self._check_sent(stream, number)

    def _check_sent(self, stream: Stream, number: int) -> None:
        key = (stream.number, number)
        wanted = self._arrived(stream, number)
        refused = stream.identifiers.get(number) in self.refused
        if stream.source == stream.target:
            wanted = False  # copies that are made on arrival are given up while the disk is full
        if self.sent[key] > 1 or (wanted and not self.sent[key] and not stream.mortal and not refused):
            raise Wrong(f"{stream.name}: {self.sent[key]} copies of message {number} in the sender's journal")

    def check(self) -> None:
        """Everything was read that is there. Raises Wrong."""
        missing: Counter[str] = Counter()
        self.full = self.lost_express = self.expired = 0
        self._check_copies()
        for stream in self.streams.values():
            if not stream.counted:
                continue
            gone = [
                number
                for number, fate in stream.fates.items()
                if fate is Fate.KEPT and not self._arrived(stream, number)
            ]
            if stream.mortal:
                dead = [number for number in gone if self.dead[stream.number, number]]
                self.expired += len(dead)
                gone = [number for number in gone if not self.dead[stream.number, number]]
            else:
                full = [n for n in gone if self.refused.get(stream.identifiers.get(n, "")) == "queue quota"]
                self.full += len(full)
                gone = [number for number in gone if number not in full]
            if stream.kind is Kind.EXPRESS:
                self._check_express(stream, gone)
            elif gone:
                missing[stream.where] += len(gone)
                if stream.where in self.journaling or missing[stream.where] > self.slack[stream.where]:
                    raise Wrong(f"{stream.name}: {len(gone)} messages were kept and are lost: {gone[:10]}")
            if stream.kind is Kind.TRANSACTIONAL:
                self._check_order(stream)
        self._check_units()

    def _arrived(self, stream: Stream, number: int) -> bool:
        key = (stream.number, number)
        return bool(self.reads[key] or self.maybe[key])

    def _check_express(self, stream: Stream, gone: list[int]) -> None:
        for number in gone:
            since = stream.offered[number]
            if not any(self._crashed(each, since) for each in (stream.source, stream.target, *self.routers)):
                raise Wrong(f"{stream.name}: message {number} is lost, and nobody crashed since")
            self.lost_express += 1

    def _check_order(self, stream: Stream) -> None:
        places = [
            (number, next(iter(self.places[stream.number, number])))
            for number in sorted(stream.fates)
            if self.places.get((stream.number, number))
        ]
        for (first, place), (second, later) in pairwise(places):
            if later <= place:
                raise Wrong(f"{stream.name}: message {second} stands before {first}: {later:#x}, {place:#x}")

    def _check_units(self) -> None:
        """Transactions whose end their program did not hear of: all or nothing arrived."""
        parts: dict[int, list[tuple[Stream, int]]] = defaultdict(list)
        for stream in self.streams.values():
            if not stream.counted or stream.mortal:
                continue
            for number, unit in stream.units.items():
                if self.unit_fates[unit] is Fate.OFFERED:
                    parts[unit].append((stream, number))
        for unit, members in parts.items():
            there = [self._arrived(stream, number) for stream, number in members]
            if any(there) and not all(there) and not any(self.slack[stream.where] for stream, _ in members):
                raise Wrong(
                    f"half of transaction {unit} arrived: "
                    + ", ".join(f"{s.number}:{n} {t}" for (s, n), t in zip(members, there, strict=True))
                )

    def summary(self) -> str:
        """One line."""
        sent = Counter(
            s.kind.value for s in self.streams.values() for f in s.fates.values() if f is Fate.KEPT
        )
        parts = [f"{kind} {count}" for kind, count in sent.items()]
        if self.lost_express:
            parts.append(f"express lost in crashes {self.lost_express}")
        if self.expired:
            parts.append(f"expired {self.expired}")
        for name, copies in (("journaled", self.sent), ("target journals", self.copies)):
            if copies:
                parts.append(f"{name} {copies.total()}")
        if self.full:
            parts.append(f"no room for {self.full}")
        if self.repeated:
            parts.append(f"duplicates dropped {self.repeated}")
        if self.duplicates:
            parts.append(f"duplicates {dict(self.duplicates)}")
        return ", ".join(parts)

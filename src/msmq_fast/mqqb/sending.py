"""What one session sends: the outgoing queues that share it, picked by priority, and what is in
flight (3.1.7.1)."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Protocol

from msmq_fast._native.outsequence import OutSequence
from msmq_fast._native.queue import Ledger, Received
from msmq_fast._native.window import SendWindow

SHARE = 16
"""Messages that one of several queues with equal priority sends before the next has its turn."""


Protect = Callable[[int, bytes], bytes | None]
"""Encrypts the message with a lookup id before it is transmitted; None: it cannot, and has removed it."""


class Source(Protocol):
    """An outgoing queue as a session sees it."""

    @property
    def protect(self) -> Protect | None:
        """Called for messages with a privacy level; None: they leave as they are."""

    @property
    def direct(self) -> bool:
        """Whether the destination is a direct format name."""

    @property
    def base_priority(self) -> int:
        """Added to the priority of each message."""

    @property
    def sequence(self) -> OutSequence | None:
        """The transactional sequence of what was sent here; None: it has none."""

    def head(self) -> tuple[int, int]:
        """(priority, number) of the messages that go first; (-1, 0) when there is nothing to send."""

    def take(self, owner: int, limit: int) -> list[Received]:
        """Lock up to `limit` messages for session `owner`, in queue order."""

    def acknowledged(self, owner: int, lookup_ids: array[int]) -> None:
        """The peer keeps these messages: they are removed."""

    def released(self, owner: int, lookup_ids: array[int]) -> None:
        """These messages were not acknowledged when their session ended: they are to be sent again."""

    def expired(self, owner: int, lookup_ids: array[int]) -> None:
        """TimeToReachQueue of these messages passed before they could be sent: they are removed."""

    def transmitted(self, now: float) -> None:
        """Messages of its sequence are under way."""

    def ended(self, owner: int, *, idle: bool) -> None:
        """Session `owner` is over. What no OrderAck covers is to be sent again: now, or, if the session was
        idle, when its time comes."""


class Outbox:
    """The sending half of one session; `owner` is the number by which the queues know it."""

    def __init__(self, owner: int, window: SendWindow, ledger: Ledger) -> None:
        self._owner = owner
        self._window = window
        self._ledger = ledger
        self._sources: dict[Source, None] = {}  # in the order of their turns
        self._served: dict[Source, None] = {}  # those that were taken away too

    @property
    def sources(self) -> tuple[Source, ...]:
        """The queues that send on this session."""
        return tuple(self._sources)

    @property
    def direct(self) -> bool:
        """Whether a queue with a direct format name sends here."""
        return any(source.direct for source in self._sources)

    def attach(self, source: Source) -> None:
        """Add a queue; adding it twice changes nothing."""
        self._sources.setdefault(source)
        self._served.setdefault(source)

    def detach(self, source: Source) -> None:
        """Take nothing more from a queue."""
        self._sources.pop(source, None)

    def fill(self, now: float) -> list[bytes]:
        """The packets that the window and the queues allow now, in the order of sending."""
        packets: list[bytes] = []
        if not self._sources:
            return packets
        room = self._window.room
        while room and self._sources:
            picked = self._pick(room)
            if picked is None:
                break
            source, limit = picked
            taken = source.take(self._owner, limit)
            if not taken:
                break
            sequence = source.sequence
            protect = source.protect
            expired = self._window.transmit(source, taken, self._ledger.now_s, packets, sequence, protect)
            if expired:
                source.expired(self._owner, expired)
            if sequence is not None and sequence.sent:
                source.transmitted(now)
            room = self._window.room
        return packets

    def _pick(self, room: int) -> tuple[Source, int] | None:
        """The source with the highest priority, which then moves behind its equals, and how much
        it may send."""
        if len(self._sources) == 1:
            source = next(iter(self._sources))
            return (source, room) if source.head()[1] else None
        best: Source | None = None
        best_priority, available, rivals = -1, 0, 0
        for source in self._sources:
            priority, number = source.head()
            if not number:
                continue
            rivals += 1
            if best is None or priority + source.base_priority > best_priority:
                best, best_priority, available = source, priority + source.base_priority, number
        if best is None:
            return None
        if rivals == 1:
            return best, room
        del self._sources[best]
        self._sources[best] = None
        return best, min(room, available, SHARE)

    def settle_removed(self) -> None:
        """Pass on what the peer has acknowledged."""
        for source, lookup_ids in self._window.take_removed():
            source.acknowledged(self._owner, lookup_ids)

    def abandon(self, *, idle: bool = False) -> None:
        """The session has ended: acknowledged messages go, the others wait for another session."""
        released = self._window.abandon()
        self.settle_removed()
        for source, lookup_ids in released:
            source.released(self._owner, lookup_ids)
        for source in self._served:
            source.ended(self._owner, idle=idle)
        self._sources.clear()
        self._served.clear()

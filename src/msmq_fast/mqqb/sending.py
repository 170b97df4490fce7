"""The output of one session (3.1.7.1): the outgoing queues that share it, picked by priority, and the
messages in flight.
"""

from __future__ import annotations

from msmq_fast._native.ledger import Ledger
from msmq_fast._native.window import SendWindow
from msmq_fast.mqqb.channel import OutgoingChannel

TAKE_BYTES = 1 << 20
"""Maximum number of bytes of packets that are taken from a queue at a time."""
SHARE = 16
"""How many messages one of several queues of equal priority sends before the next has its turn."""


class Outbox:
    """The sending half of one session. It locks messages in the queues under the number `owner`."""

    def __init__(self, owner: int, window: SendWindow, ledger: Ledger) -> None:
        self._owner = owner
        self._window = window
        self._ledger = ledger
        self._channels: dict[OutgoingChannel, None] = {}  # in the order of their turns
        self._served: dict[OutgoingChannel, None] = {}  # those that were taken away too

    @property
    def channels(self) -> tuple[OutgoingChannel, ...]:
        """The queues that send on this session."""
        return tuple(self._channels)

    @property
    def direct(self) -> bool:
        """Whether a queue with a direct format name sends on this session."""
        return any(channel.direct for channel in self._channels)

    def attach(self, channel: OutgoingChannel) -> None:
        """Add a queue; adding it twice has no effect."""
        self._channels.setdefault(channel)
        self._served.setdefault(channel)

    def detach(self, channel: OutgoingChannel) -> None:
        """Take no more messages from a queue."""
        self._channels.pop(channel, None)

    def fill(self, now: float) -> list[bytes]:
        """Takes messages from the queues as far as the window allows; returns their packets in the order of
        sending.
        """
        packets: list[bytes] = []
        if not self._channels:
            return packets
        room = self._window.room
        while room and self._channels:
            picked = self._pick(room)
            if picked is None:
                break
            channel, limit = picked
            taken = channel.core.take(limit, TAKE_BYTES, self._owner)
            if not taken:
                break
            sequence = channel.sequence
            protect = channel.protect
            expired = self._window.transmit(channel, taken, self._ledger.now_s, packets, sequence, protect)
            if expired:
                channel.expired(self._owner, expired)
            if sequence is not None and sequence.sent:
                channel.transmitted(now)
            room = self._window.room
        return packets

    def _pick(self, room: int) -> tuple[OutgoingChannel, int] | None:
        """Pick the channel with the highest priority, and move it behind the others of this priority.

        Returns (the channel, how many messages it may send); None if no channel has messages.
        """
        if len(self._channels) == 1:
            channel = next(iter(self._channels))
            return (channel, room) if channel.head()[1] else None
        best: OutgoingChannel | None = None
        best_priority, available, rivals = -1, 0, 0
        for channel in self._channels:
            priority, number = channel.head()
            if not number:
                continue
            rivals += 1
            if best is None or priority + channel.base_priority > best_priority:
                best, best_priority, available = channel, priority + channel.base_priority, number
        if best is None:
            return None
        if rivals == 1:
            return best, room
        del self._channels[best]
        self._channels[best] = None
        return best, min(room, available, SHARE)

    def settle_removed(self) -> None:
        """Report to the queues which messages the peer has acknowledged."""
        for channel, lookup_ids in self._window.take_removed():
            channel.acknowledged(self._owner, lookup_ids)

    def abandon(self, *, idle: bool = False) -> None:
        """Remove the acknowledged messages of a session that has ended; the other messages wait for another
        session. `idle`: whether the session ended because it was idle.
        """
        released = self._window.abandon()
        self.settle_removed()
        for channel, lookup_ids in released:
            channel.released(self._owner, lookup_ids)
        for channel in self._served:
            channel.ended(self._owner, idle=idle)
        self._channels.clear()
        self._served.clear()

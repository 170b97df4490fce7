"""Outgoing queues with MULTICAST names: their messages become APDUs of PGM sources (MC-MQSRM 3.1.7.9, 4.11).

Receivers send no acknowledgments, so a message is removed from the queue when its last fragment was sent for
the first time (A-76).
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from typing import Final

from msmq_fast._native.outbound import give_up
from msmq_fast._native.queuebase import Received
from msmq_fast.logfields import Fields, about_packet
from msmq_fast.packet.properties import is_traced
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import PacketFault
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.srmp.model import Nonconforming
from msmq_fast.srmp.pgm.model import Datagram
from msmq_fast.srmp.pgm.source import ApduTooLarge, Source
from msmq_fast.srmp.sending import Report, too_late

__all__ = ["Feed"]

_AT_A_TIME: Final = 64

MakeSource = Callable[[Callable[[int], None]], Source]


class Feed:
    """One outgoing queue and the PGM sources of its current session.

    There is one source for each network interface, and every source sends every message. Times are monotonic
    seconds.
    """

    def __init__(
        self,
        manager: QueueManager,
        queue: OutgoingQueue,
        owner: int,
        encode: Callable[[bytes, str], bytes],
        refused: Callable[[str, str, Fields], None],
        room: int,
        report: Report | None = None,
    ) -> None:
        """- `owner` is the number under which messages stay locked until all sources have sent them.
        - `encode(packet, group)` builds the APDU of a message to the group `address:port`.
        - `refused(reason, description, log fields)` is called for each message that cannot be sent.
        - `room` limits the octets that wait in a source.
        - `report` is called for each traced message that is sent.
        """
        self.queue = queue
        self.sources: list[Source] = []
        self.used = 0.0
        """When the latest message was taken from the queue, in monotonic seconds."""
        self._manager = manager
        self._core = queue.core
        self._owner = owner
        self._encode = encode
        self._refused = refused
        self._room = room
        self._report = report
        self._under_way: deque[int] = deque()  # lookup identifiers, in the order of sending
        self._sent: list[int] = []  # of each source, how many APDUs have left
        self._settled = 0  # how many have left all of them

    @property
    def group(self) -> str:
        """The multicast group, as `address:port`."""
        return self.queue.destination.text

    @property
    def under_way(self) -> int:
        """The number of messages that were passed to the sources and not yet sent by all of them."""
        return len(self._under_way)

    def begin(self, makers: list[MakeSource]) -> None:
        """Begin a session; each function in `makers` makes one source of it. Call only while no message is
        under way.
        """
        self._sent = [0] * len(makers)
        self._settled = 0
        self.sources = [make(self._left(index)) for index, make in enumerate(makers)]

    def _left(self, index: int) -> Callable[[int], None]:
        def left(handle: int) -> None:
            self._sent[index] = handle

        return left

    def waits(self) -> bool:
        """Whether the queue holds a message that may be sent."""
        return (
            self.queue.may_send
            and self._manager.outgoing_queues.connection_active
            and self._core.head_in_memory()
        )

    def pump(self, now: float) -> None:
        """Pass messages to the sources as far as they have room."""
        source = max(self.sources, key=_backlog)
        while source.backlog < self._room and self.waits():
            taken = self._core.take(_AT_A_TIME, self._room - source.backlog, self._owner)
            if not taken:
                return
            self.used = now
            for message in taken:
                self._give(message)

    def _give(self, message: Received) -> None:
        if too_late(self._core, message.packet):
            # Unlocked, so that the queue manager's own expiry removes it with all that follows from it.
            self._core.release(array("Q", (message.lookup_id,)), self._owner)
            self._core.ledger.expire()
            return
        try:
            apdu = self._encode(message.packet, self.group)
            for source in self.sources:
                source.send(apdu)
        except ApduTooLarge as error:
            self._give_up(message, "too large for multicast", error)
        except (Nonconforming, PacketFault, ValueError) as error:
            self._give_up(message, "cannot be sent", error)
        else:
            self._under_way.append(message.lookup_id)
            if self._report is not None and is_traced(message.packet):
                self._report(message.packet, self.group.partition(":")[0])

    def _give_up(self, message: Received, reason: str, error: Exception) -> None:
        fields = about_packet(message.packet, self.queue.name, self.group)
        self._refused(reason, f"message {message.lookup_id} for {self.queue.name}: {error}", fields)
        give_up(self._core, message.lookup_id, MessageClass.NACK_BAD_DST_Q)

    def packets(self, now: float) -> list[list[Datagram]]:
        """Return a list of datagrams for each source: those that it may send now.

        Then call `settle` to remove the messages that were sent.
        """
        return [source.packets(now) for source in self.sources]

    def settle(self) -> None:
        """Remove the messages that all sources have sent, with a copy in the journal for each message that
        asks for it.
        """
        count = min(self._sent, default=0) - self._settled
        if count > 0:
            self._settled += count
            self._core.acked(array("Q", [self._under_way.popleft() for _ in range(count)]), self._owner)

    def end(self, now: float) -> list[Source]:
        """End the session and return its sources.

        The sources answer NAKs for a while. But if there are messages that not all sources have sent, the
        sources end with RST and answer no NAKs; these messages become available in the queue again.
        """
        ended, self.sources = self.sources, []
        for source in ended:
            source.close(now, rst=bool(self._under_way))
        self._core.release(array("Q", self._under_way), self._owner)
        self._under_way.clear()
        return ended


def _backlog(source: Source) -> int:
    return source.backlog

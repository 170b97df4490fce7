"""The outgoing queues of the queue manager as the transfer needs them (MC-MQSRM 3.1.7.2)."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from msmq_fast._native.queue import Received, answered, depart, give_up, may_continue
from msmq_fast._native.receive import head
from msmq_fast.packet.classes import MessageClass
from msmq_fast.packet.errors import PacketFault
from msmq_fast.packet.properties import is_traced
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.outgoing.resending import OutgoingSequences
from msmq_fast.qm.queues.outgoing import ConnectionStatus, OutgoingQueue, OutgoingState
from msmq_fast.srmp.endpoint import Endpoint, Progress
from msmq_fast.srmp.returnpath import split
from msmq_fast.srmp.sending import Report, too_late, url_of
from msmq_fast.srmp.transfer import Outgoing
from msmq_fast.srmp.urls import Url
from msmq_fast.srmp.values import Nonconforming

__all__ = ["Encode", "Place", "Sender"]

R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")

_TAKE: Final = 1 << 26  # bytes; one message is taken at a time

Place = tuple[int, int, int]
"""Identifier, number and previous number of a message in its stream; zeros if it has none."""

_STATUS: Final = {
    Progress.IN_PROCESS: (ConnectionStatus.IN_PROCESS, OutgoingState.WAITING, 0),
    Progress.ESTABLISHED: (ConnectionStatus.ESTABLISHED, OutgoingState.CONNECTED, 0),
    Progress.DNS_FAILURE: (ConnectionStatus.DNS_FAILURE, OutgoingState.INACTIVE, 0x80072AF9),
    Progress.CONNECT_FAILURE: (ConnectionStatus.SOCKET_CONNECT_FAILURE, OutgoingState.INACTIVE, 0x8007274C),
    Progress.REFUSED: (ConnectionStatus.CONNECTION_REFUSED, OutgoingState.INACTIVE, 0x8007274D),
    Progress.CERTIFICATE_FAILURE: (
        ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE,
        OutgoingState.INACTIVE,
        0x80090325,
    ),
    Progress.CREATE_FAILURE: (ConnectionStatus.SOCKET_CREATE_FAILURE, OutgoingState.INACTIVE, 0x80072728),
    Progress.SEND_FAILURE: (ConnectionStatus.SOCKET_SEND_FAILURE, OutgoingState.INACTIVE, 0x80072746),
    Progress.NO_ANSWER: (ConnectionStatus.CONNECTION_NOT_READY, OutgoingState.INACTIVE, 0x8007274C),
    Progress.ANSWERED_BADLY: (ConnectionStatus.UNKNOWN_FAILURE, OutgoingState.INACTIVE, 0xC00E0001),
}
"""Status, state, and the HRESULT of a ConnectionHistory entry."""


class Encode(Protocol[R_co]):
    """Makes a request of a message."""

    def __call__(self, packet: bytes, url: Url, place: Place) -> R_co:
        """Raises Nonconforming: the message cannot be said in SRMP."""


class Sender:
    """What all outgoing queues share."""

    def __init__(
        self,
        manager: QueueManager,
        sequences: OutgoingSequences,
        connect_to: Callable[[Url], Url],
        unix_time: Callable[[], int],
        refused: Callable[[str, str], None],
        report: Report | None = None,
    ) -> None:
        """`connect_to`: whose host is dialled for a URL; `refused(reason, description)` hears of messages
        that are given up, `report` of traced ones that leave.
        """
        self.manager = manager
        self.sequences = sequences
        self.connect_to = connect_to
        self.unix_time = unix_time
        self.refused = refused
        self.report = report
        self.owner = manager.ledger.new_owner()  # of what is under way: it does not expire meanwhile
        self.keeper = manager.ledger.new_owner(transfer=True)  # of what waits for a stream receipt

    def source(self, queue: OutgoingQueue, encode: Encode[S]) -> Outgoing[S]:
        """One outgoing queue for `Transfer`. Raises ValueError: its name leads nowhere."""
        return _Source(self, queue, encode)


class _Source(Outgoing[S]):
    def __init__(self, sender: Sender, queue: OutgoingQueue, encode: Encode[S]) -> None:
        self._sender = sender
        self._queue = queue
        self._core = queue.core
        self._encode = encode
        self._url = url_of(queue)
        self._only = split(queue.destination.text)[1]  # receipts go to the computer that asked for them
        self._key = 0  # of the message that is under way
        self._address = ""  # of the other side of the connection

    def endpoint(self) -> Endpoint:
        url = self._sender.connect_to(self._url)
        only = self._only if url is self._url else None  # an administrator leads it elsewhere
        return Endpoint(url.scheme, url.host, url.port, only)

    def waits(self) -> bool:
        return (
            self._queue.may_send
            and self._sender.manager.outgoing_queues.connection_active
            and head(self._core)[1] > 0
            and self._core.head_in_memory()
        )

    def may_continue(self, settled: Callable[[int], None]) -> bool:
        sequence = self._core.sequence
        if sequence is None:
            return True

        def kept(status: int) -> None:
            if not status:
                sequence.unsure = False
            settled(status)

        return may_continue(self._core, kept)

    def take(self) -> S | None:
        while self.waits():
            taken = self._core.take(1, _TAKE, self._sender.owner)
            if not taken:
                return None
            request = self._request(taken[0])
            if request is not None:
                return request
        return None

    def _request(self, message: Received) -> S | None:
        self._key = message.lookup_id
        if too_late(self._core, message.packet):
            # Unlocked, so that the queue manager's own expiry removes it with all that follows from it.
            self._release()
            self._core.ledger.expire()
            return None
        place = depart(self._core, self._key)
        try:
            request = self._encode(message.packet, self._url, place)
        except (Nonconforming, PacketFault, ValueError) as error:
            self._sender.refused("cannot be sent", f"message {self._key} for {self._queue.name}: {error}")
            self.rejected()
            return None
        report = self._sender.report
        if report is not None and is_traced(message.packet):
            report(message.packet, self._address)
        return request

    def accepted(self) -> None:
        answered(self._core, self._key, self._sender.owner, self._sender.keeper)

    def rejected(self) -> None:
        give_up(self._core, self._key, MessageClass.NACK_BAD_DST_Q)

    def returned(self) -> None:
        self._release()

    def _release(self) -> None:
        self._core.release(array("Q", (self._key,)), self._sender.owner)

    def transmitted(self, now: float) -> None:
        self._sender.sequences.transmitted(self._core, now)

    def stop_waiting(self) -> None:
        self._sender.sequences.stop(self._core)

    def progress(self, progress: Progress, address: str, detail: str) -> None:
        queue = self._queue
        if progress is Progress.CLEANED_UP:
            queue.set_state(OutgoingState.DISCONNECTED)
            return
        status, state, error = _STATUS[progress]
        queue.set_state(state)
        if address:
            self._address = address
            queue.next_hops = (address,)
        queue.note(status, self._sender.unix_time(), error, (address,) if address else (), detail)

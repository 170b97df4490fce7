"""The queues of the queue manager as sessions need them: destinations for what arrives, sources
for what leaves."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from msmq_fast._native.queue import Received
from msmq_fast._native.receive import head
from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.receive import Destination, Resolver
from msmq_fast.mqqb.transfer import Progress, Target
from msmq_fast.packet.names import NameKind
from msmq_fast.qm.outgoing import ConnectionStatus, OutgoingQueue, OutgoingState
from msmq_fast.qm.queue import Privacy, Queue, QueueKind

TAKE_BYTES = 1 << 20
"""Bytes of packets handed to a session at a time."""

_STATUS = {
    Progress.IN_PROCESS: (ConnectionStatus.IN_PROCESS, OutgoingState.WAITING),
    Progress.ANSWERED: (ConnectionStatus.ESTABLISH_PACKET_RECEIVED, OutgoingState.WAITING),
    Progress.ESTABLISHED: (ConnectionStatus.ESTABLISHED, OutgoingState.CONNECTED),
    Progress.DNS_FAILURE: (ConnectionStatus.DNS_FAILURE, OutgoingState.NEED_VALIDATION),
    Progress.ROUTE_FAILURE: (ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE, OutgoingState.NEED_VALIDATION),
    Progress.PING_FAILURE: (ConnectionStatus.PING_FAILURE, OutgoingState.WAITING),
    Progress.CONNECT_FAILURE: (ConnectionStatus.SOCKET_CONNECT_FAILURE, OutgoingState.WAITING),
    Progress.REFUSED: (ConnectionStatus.CONNECTION_REFUSED, OutgoingState.DISCONNECTED),
}


def destinations(
    find_field: Callable[[int, bytes], Queue | None], open_to_everybody: Callable[[Queue], bool]
) -> Resolver:
    """A resolver over `qm.lookup.Directory.find_field`; nobody may send to the queue manager's own
    system queues. `open_to_everybody` tells the queues to which every sender may send."""

    def resolve(dest_type: int, name: bytes) -> Destination | None:
        queue = find_field(dest_type, name)
        if queue is None or queue.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE):
            return None
        properties = queue.properties
        return Destination(
            queue.core,
            transactional=properties.transactional,
            authenticated=properties.authenticated,
            encrypted_only=properties.privacy is Privacy.BODY,
            everybody=open_to_everybody(queue),
            security=queue.security,
            name=queue.name,
        )

    return resolve


class OutgoingSource:
    """One outgoing queue; equal sources are one (there is one per queue)."""

    def __init__(self, queue: OutgoingQueue, unix_time: Callable[[], int]) -> None:
        self.queue = queue
        self._unix_time = unix_time
        name = queue.destination
        self.direct = name.kind is NameKind.DIRECT
        if name.direct is not None:
            self.target = Target(name.direct.address.casefold())
        else:
            self.target = self._located()

    def _located(self) -> Target:
        host, manager = self.queue.locate(self.queue.destination)
        return Target(host.casefold(), NULL_GUID if manager is None else manager)

    def relocate(self) -> bool:
        """Look anew for a host that was not known; whether `target` changed."""
        before, self.target = self.target, self._located()
        return self.target != before

    @property
    def base_priority(self) -> int:
        """Added to the priority of each message."""
        return self.queue.properties.base_priority

    def head(self) -> tuple[int, int]:
        """(priority, number) of the messages that go first; (-1, 0) on hold, stalled or when there is
        nothing to send."""
        return head(self.queue.core) if self.queue.may_send and not self.queue.stalled else (-1, 0)

    def take(self, owner: int, limit: int) -> list[Received]:
        """Lock messages for a session."""
        return self.queue.core.take(limit, TAKE_BYTES, owner)

    def acknowledged(self, owner: int, lookup_ids: array[int]) -> None:
        """The peer keeps these messages."""
        self.queue.core.acked(lookup_ids, owner)

    def released(self, owner: int, lookup_ids: array[int]) -> None:
        """These messages are to be sent again."""
        self.queue.core.release(lookup_ids, owner)

    def expired(self, owner: int, lookup_ids: array[int]) -> None:
        """Unlocked, so that the queue manager's own expiry removes them with all that follows from it."""
        self.queue.core.release(lookup_ids, owner)
        self.queue.core.ledger.expire()

    def progress(self, progress: Progress, address: str, detail: str) -> None:
        """Keep the state (ST-4) and the ConnectionHistory."""
        if progress is Progress.DISCONNECTED:
            self.queue.set_state(OutgoingState.DISCONNECTED)
            return
        if progress not in _STATUS:
            return
        status, state = _STATUS[progress]
        self.queue.set_state(state)
        if address:
            self.queue.next_hops = (address,)
        self.queue.note(status, self._unix_time(), 0, (address,) if address else ())

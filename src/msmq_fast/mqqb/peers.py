"""Who is at the other end: open sessions by queue-manager GUID, and refusal of a GUID that lives twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING
from uuid import UUID

from msmq_fast.mqqb.reasons import CloseReason

if TYPE_CHECKING:
    from msmq_fast.mqqb.session import Session

LIVE_SECONDS = 120.0
"""A session that was silent for longer does not prove that its peer still lives at its old address."""


def same_family(first: str, second: str) -> bool:
    """Whether two textual IP addresses are both IPv4 or both IPv6."""
    return ip_address(first).version == ip_address(second).version


class Peers:
    """The sessions whose peer has named its GUID.

    A restored or copied store may bring two machines to life under one GUID; messages and
    acknowledgments of one would be taken for those of the other. So a peer that presents our own
    GUID is refused, and so is one whose GUID has a live session with another address of the same
    family (a dual-stack host may well use both families). `several_addresses` lets the second one in:
    it cannot be told from a host with two networks.
    """

    def __init__(self, own: UUID, *, several_addresses: bool = False) -> None:
        self.own = own
        self._several_addresses = several_addresses
        self._sessions: dict[UUID, list[Session]] = {}
        self._addresses: dict[str, Counter[UUID]] = {}

    def __iter__(self) -> Iterator[Session]:
        for sessions in self._sessions.values():
            yield from sessions

    def of_guid(self, guid: UUID) -> list[Session]:
        """Sessions with this peer, oldest first."""
        return list(self._sessions.get(guid, ()))

    def at(self, address: str) -> list[Session]:
        """Sessions with peers at this address."""
        found = (session for guid in self._addresses.get(address, ()) for session in self._sessions[guid])
        return [session for session in found if session.peer_address == address]

    def others_at(self, address: str, guid: UUID) -> bool:
        """Whether a queue manager with another GUID has a session from an address."""
        return any(other != guid for other in self._addresses.get(address, ()))

    def admit(self, session: Session, guid: UUID, now: float) -> CloseReason | None:
        """Register the peer of a session, or say why it is refused. Sessions it outlived are closed."""
        if guid == self.own:
            return CloseReason.OWN_GUID
        for other in () if self._several_addresses else self.of_guid(guid):
            if other.peer_address == session.peer_address or not same_family(
                other.peer_address, session.peer_address
            ):
                continue
            if now - other.heard_at <= LIVE_SECONDS:
                return CloseReason.CLONED_GUID
            other.close(CloseReason.SUPERSEDED, now)
        self._sessions.setdefault(guid, []).append(session)
        self._addresses.setdefault(session.peer_address, Counter())[guid] += 1
        return None

    def remove(self, session: Session) -> None:
        """A session has ended; unknown ones are ignored."""
        guid = session.peer_guid
        sessions = self._sessions.get(guid, [])
        if session in sessions:
            sessions.remove(session)
            if not sessions:
                del self._sessions[guid]
            here = self._addresses[session.peer_address]
            here[guid] -= 1
            if not here[guid]:
                del here[guid]
            if not here:
                del self._addresses[session.peer_address]

"""Finds links by everything that an event can name: hops, number, session, and the peers that they lead to.

An event of a session or an address touches only the links of that peer, however many other links exist: links
for answers to invented destinations must not slow down the sessions of other peers.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from uuid import UUID

from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.hops import Target
from msmq_fast.mqqb.link import Link
from msmq_fast.mqqb.peersession import PeerSession

__all__ = ["LinkTable"]


class LinkTable:
    """The links of a queue manager.

    `leading_to` finds links by the GUID of a hop, by the host of a hop without a GUID, and by resolved
    addresses. Use `bind` and `locate` to change the session and the addresses of a link.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._by_hops: dict[tuple[Target, ...], Link] = {}
        self._by_number: dict[int, Link] = {}
        self._by_session: dict[PeerSession, dict[Link, None]] = {}
        self._by_peer: dict[UUID | str, dict[Link, None]] = {}

    def __len__(self) -> int:
        return len(self._by_hops)

    def all(self) -> tuple[Link, ...]:
        """Returns all links, oldest first."""
        return tuple(self._by_hops.values())

    def find(self, hops: tuple[Target, ...]) -> Link | None:
        """Returns the link with the hops `hops`; None if there is none."""
        return self._by_hops.get(hops)

    def numbered(self, number: int) -> Link | None:
        """Returns the link with this number; None if it was removed."""
        return self._by_number.get(number)

    def of_session(self, session: PeerSession) -> list[Link]:
        """Returns the links that a session serves, or will serve once it is open."""
        return list(self._by_session.get(session, ()))

    def leading_to(self, *peers: UUID | str) -> list[Link]:
        """Returns the links that lead to one of these GUIDs, hosts or addresses."""
        found: dict[Link, None] = {}
        for peer in peers:
            found |= self._by_peer.get(peer, {})
        return list(found)

    def add(self, hops: tuple[Target, ...]) -> Link:
        """Create and return a link."""
        link = Link(next(self._numbers), hops)
        self._by_hops[hops] = link
        self._by_number[link.number] = link
        for hop in hops:
            self._index(_peer_of(hop), link)
        return link

    def remove(self, link: Link) -> None:
        """Remove a link; its number is never reused."""
        if self._by_hops.get(link.hops) is not link:
            return
        self.bind(link, None)
        self.locate(link, ())
        for hop in link.hops:
            self._drop(_peer_of(hop), link)
        del self._by_hops[link.hops]
        del self._by_number[link.number]

    def bind(self, link: Link, session: PeerSession | None) -> None:
        """Set the session that serves a link; None for no session."""
        if link.session is not None:
            served = self._by_session.get(link.session, {})
            served.pop(link, None)
            if not served:
                self._by_session.pop(link.session, None)
        link.session = session
        if session is not None:
            self._by_session.setdefault(session, {})[link] = None

    def locate(self, link: Link, addresses: Iterable[str]) -> None:
        """Set the addresses of the hop that a link is trying."""
        kept = {_peer_of(hop) for hop in link.hops}
        for address in link.addresses:
            if address not in kept:
                self._drop(address, link)
        link.addresses = list(dict.fromkeys(addresses))
        for address in link.addresses:
            self._index(address, link)

    def _index(self, peer: UUID | str, link: Link) -> None:
        if peer:
            self._by_peer.setdefault(peer, {})[link] = None

    def _drop(self, peer: UUID | str, link: Link) -> None:
        links = self._by_peer.get(peer, {})
        links.pop(link, None)
        if not links:
            self._by_peer.pop(peer, None)


def _peer_of(hop: Target) -> UUID | str:
    return hop.host if hop.guid == NULL_GUID else hop.guid

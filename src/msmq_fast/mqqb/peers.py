"""Sessions by the GUID of their peer, and which of them are trusted to be with that queue manager.

A peer can present any GUID: MS-MQQB does not authenticate queue managers. So each GUID has a *home*, the
address at which its queue manager is assumed to be. A session from the home *speaks for* the queue manager:

1. The first address that has a session under a GUID becomes its home (one for each address family).
2. A session under this GUID from another address is accepted as well. It cannot displace the sessions of the
   home or count as one of them: messages addressed by the GUID are not sent on it, and its acknowledgments of
   messages that were sent to the home do not count.
3. Then both addresses are asked by ping which queue manager is there. The home moves if it does not answer
   with the GUID and either the other address does, or no session of the home has received anything recently.
   Otherwise both are asked again later.
4. Addresses that the configuration pins to a GUID are its permanent homes, and no others are accepted.
5. The number of homes is limited, in all and for each address group. Homes without a session are forgotten
   first.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import islice
from uuid import UUID

from msmq_fast.mqqb.peersession import PeerSession
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.qm.deadlines import Deadlines
from msmq_fast.qm.faults import for_each
from msmq_fast.security.addresses import address_group

LIVE_SECONDS = 120.0
"""Seconds of silence after which a session no longer proves that its peer is alive at its home."""
ASK_AGAIN = 30.0
"""Seconds between two rounds of pings about one contested GUID."""
MOST_HOMES = 65_536
HOMES_OF_GROUP = 4_096
"""Maximum number of GUIDs whose home is in one address group, so that invented ones do not displace
others.
"""
_LOOKS = 64
"""Maximum number of homes that are searched for one without a session."""
_TURN = 100
"""Maximum number of contested GUIDs that one turn of the loop asks about."""

Ask = Callable[[str, Callable[[UUID | None, float], None], float], None]
"""Asks an address which queue manager is there: (address, done, now).

`done(guid, now)` is called once; `guid` is None if there is no answer.
"""
IsRouter = Callable[[str, UUID | None], bool]
"""Returns whether a peer is a router, which delivers messages of others: (address, guid).

`guid` is None for a session that does not speak for its queue manager.
"""

_Home = tuple[UUID, int]  # GUID, address family
_Claim = tuple[UUID, int, str]  # GUID, address family, the address that is not its home


@dataclass(slots=True)
class _Answers:
    """The answers received so far to the two pings about a GUID that peers at two addresses present.

    `waiting` is the number of pings without an answer. `home`: the address at which the queue manager is
    assumed to be has answered with the GUID. `other`: the other address has answered with the GUID.
    """

    waiting: int = 2
    home: bool = False
    other: bool = False


class Peers:
    """The sessions whose peer has named its GUID.

    A peer that presents our own GUID is refused: a restored or copied store may run on two machines under one
    GUID.

    - `several_addresses`: all addresses of a GUID are trusted, which suits hosts with several networks.
    - `pinned`: the configured addresses of GUIDs.
    - `on_contest(guid, home, other)` is called for a session from another address than the home, the assumed
      address of the queue manager, while the home is alive: its peer is an impostor, or runs a copied store.
    - `is_router` returns whether a peer is a router.
    """

    def __init__(
        self,
        own: UUID,
        *,
        several_addresses: bool = False,
        pinned: Mapping[UUID, frozenset[str]] | None = None,
        on_contest: Callable[[UUID, str, str], None] = lambda _guid, _home, _other: None,
        is_router: IsRouter = lambda _address, _manager: False,
    ) -> None:
        self.own = own
        self.is_router = is_router
        self._several_addresses = several_addresses
        self._pinned = pinned or {}
        self._on_contest = on_contest
        self._sessions: dict[UUID, list[PeerSession]] = {}
        self._addresses: dict[str, Counter[UUID]] = {}
        self._homes: OrderedDict[_Home, str] = OrderedDict()
        self._homes_in: dict[str, OrderedDict[_Home, None]] = {}  # by address group
        self._answers: dict[_Claim, _Answers] = {}
        self._questions: Deadlines[_Claim] = Deadlines()

    def __iter__(self) -> Iterator[PeerSession]:
        for sessions in self._sessions.values():
            yield from sessions

    def of_guid(self, guid: UUID) -> list[PeerSession]:
        """Returns the sessions whose peer has presented this GUID, oldest first."""
        return list(self._sessions.get(guid, ()))

    def at(self, address: str) -> list[PeerSession]:
        """Returns the sessions with peers at this address."""
        found = (session for guid in self._addresses.get(address, ()) for session in self._sessions[guid])
        return [session for session in found if session.peer_address == address]

    def guids_at(self, address: str) -> Collection[UUID]:
        """Returns the GUIDs of the queue managers that have sessions from an address."""
        return self._addresses.get(address, Counter()).keys()

    def last_address(self, guid: UUID) -> str:
        """Returns the assumed address of a queue manager, even without a session; empty if it is not
        known.
        """
        pins = self._pinned.get(guid)
        if pins:
            return min(pins)
        return self._homes.get((guid, 4)) or self._homes.get((guid, 6)) or ""

    def set_pinned(self, pinned: Mapping[UUID, frozenset[str]]) -> None:
        """Replace the configured addresses of GUIDs.

        Sessions from other addresses stay open, but are no longer trusted to be with the queue manager.
        """
        self._pinned = pinned

    # ---- which address is the home of a GUID

    def holds(self, session: PeerSession) -> bool:
        """Whether a session is trusted to be with the queue manager whose GUID its peer has presented."""
        guid = session.peer_guid
        pins = self._pinned.get(guid)
        if pins is not None:  # a session that is older than the pins may come from elsewhere
            return session.peer_address in pins
        if self._several_addresses:
            return True
        return self._homes.get((guid, _family(session.peer_address))) == session.peer_address

    def is_home(self, guid: UUID, address: str) -> bool:
        """Whether an address is the home of a queue manager: an address at which it is assumed to be."""
        pins = self._pinned.get(guid)
        if pins is not None:
            return address in pins
        return self._homes.get((guid, _family(address))) == address

    def vouches(self, source: bytes, address: str) -> bool:
        """Whether messages of the queue manager with the GUID `source` may come from `address`: the queue
        manager is assumed to be there, or a router is there. `source` has the 16 bytes of the GUID as on the
        wire.
        """
        return self.is_home(UUID(bytes_le=source), address) or self.is_router(address, None)

    def addresses_of(self, session: PeerSession) -> frozenset[str]:
        """Returns the addresses for which the acknowledgments of a session count.

        These are the address of its peer, and all addresses to which the GUID of the peer is pinned; with
        `several_addresses`, also all other known addresses of the GUID.
        """
        guid = session.peer_guid
        others: frozenset[str] = self._pinned.get(guid, frozenset())
        if self._several_addresses:
            others |= {each.peer_address for each in self._sessions.get(guid, ())}
            others |= {self._homes[key] for key in ((guid, 4), (guid, 6)) if key in self._homes}
        return others | {session.peer_address}

    # ---- sessions that come and go

    def admit(self, session: PeerSession, guid: UUID, now: float) -> CloseReason | None:
        """Register a session under the GUID of its peer; returns the reason for a refusal, otherwise None."""
        if guid == self.own:
            return CloseReason.OWN_GUID
        pins = self._pinned.get(guid)
        if pins is not None and session.peer_address not in pins:
            return CloseReason.PINNED_GUID
        self._sessions.setdefault(guid, []).append(session)
        self._addresses.setdefault(session.peer_address, Counter())[guid] += 1
        if pins is None:
            self._claim(guid, session.peer_address, now)
        return None

    def remove(self, session: PeerSession) -> None:
        """Remove a session that has ended; a session that is not registered is ignored.

        The assumed address of its queue manager stays known.
        """
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

    def _claim(self, guid: UUID, address: str, now: float) -> None:
        key = (guid, _family(address))
        home = self._homes.get(key)
        if home is None:
            home = address
        self._settle(key, home)
        if home != address and not self._several_addresses:
            if self._lives(guid, home, now):
                self._on_contest(guid, home, address)
            claim = (*key, address)
            if claim not in self._answers:
                self._questions.set(claim, now)

    def _settle(self, key: _Home, address: str) -> None:
        """Make an address the home of a GUID (the address at which its queue manager is assumed to be), and
        note that this home was used last.

        At a limit of homes, another home is forgotten: the oldest without a session, if one is found.
        """
        self._forget(key)
        for homes, most in (
            (self._homes_in.get(address_group(address), {}), HOMES_OF_GROUP),
            (self._homes, MOST_HOMES),
        ):
            if len(homes) >= most:
                empty = (each for each in islice(homes, _LOOKS) if each[0] not in self._sessions)
                self._forget(next(empty, None) or next(iter(homes)))
        self._homes[key] = address
        self._homes_in.setdefault(address_group(address), OrderedDict())[key] = None

    def _forget(self, key: _Home) -> None:
        address = self._homes.pop(key, None)
        if address is not None:
            group = address_group(address)
            del self._homes_in[group][key]
            if not self._homes_in[group]:
                del self._homes_in[group]

    def _lives(self, guid: UUID, address: str, now: float) -> bool:
        """Whether a session under this GUID from this address has received something recently."""
        return any(
            session.peer_address == address and now - session.heard_at <= LIVE_SECONDS
            for session in self._sessions.get(guid, ())
        )

    # ---- contested GUIDs

    def _question(self, claim: _Claim, now: float, ask: Ask | None) -> None:
        guid, family, address = claim
        answers = self._answers[claim] = _Answers()
        if ask is None:
            self._decide(claim, now)
            return

        def answered(found: UUID | None, now: float, *, home: bool) -> None:
            answers.waiting -= 1
            if home:
                answers.home = found == guid
            else:
                answers.other = found == guid
            if not answers.waiting:
                self._decide(claim, now)

        ask(self._homes[guid, family], lambda found, now: answered(found, now, home=True), now)
        ask(address, lambda found, now: answered(found, now, home=False), now)

    def _decide(self, claim: _Claim, now: float) -> None:
        guid, family, address = claim
        answers = self._answers.pop(claim)
        home = self._homes.get((guid, family))
        if guid not in self.guids_at(address) or home == address:
            return
        if home is not None and (answers.home or (not answers.other and self._lives(guid, home, now))):
            self._questions.set(claim, now + ASK_AGAIN)
            return
        self._settle((guid, family), address)
        for session in self.of_guid(guid):
            if session.peer_address != home:
                continue
            if now - session.heard_at > LIVE_SECONDS:
                session.close(CloseReason.SUPERSEDED, now)
            else:
                self._questions.set((guid, family, session.peer_address), now + ASK_AGAIN)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never."""
        return self._questions.next_deadline()

    def expire(self, now: float, ask: Ask | None = None) -> None:
        """Ping, with `ask`, both addresses of each contested GUID whose next pings are due: its home (the
        address at which its queue manager is assumed to be) and the other address.

        For a GUID that stays contested, the pings are repeated later. Without `ask`, nothing is pinged: only
        sessions show whether a home is alive.
        """
        for_each(self._questions.take(now, _TURN), lambda claim: self._ask_about(claim, now, ask))

    def _ask_about(self, claim: _Claim, now: float, ask: Ask | None) -> None:
        guid, family, address = claim
        contested = self._homes.get((guid, family)) not in (None, address)
        if contested and guid in self.guids_at(address):
            self._question(claim, now, ask)


def _family(address: str) -> int:
    return ip_address(address).version

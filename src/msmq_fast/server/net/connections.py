"""The connections of the server over all its ports: their limits, and which ones are closed to make room for
others.

1. A pool is a number of descriptors for one kind of connections: from other computers, from programs, to the
   admin port, and those that this server opens itself. A pool cannot use the descriptors of another pool, so
   unauthenticated peers that fill their pool do not lock out the command line.
2. A share is the part of a pool that one port may use. A pool and a share each have a limit on all
   connections and a limit on the connections of one address group (`security/addresses.py`).
3. If a limit is reached, a new connection replaces an idle one: the connection that has been idle longest in
   the address group, the share or the pool to which the limit applies. In a share, a new connection of a
   group cannot replace one of a group that has fewer connections. If no connection is idle, and the peers of
   the share lose nothing when they must connect again (`resumes`), a busy connection of the group with the
   most connections is closed to make room for a group that has fewer. A few addresses that keep all their
   connections busy therefore cannot lock out others. Otherwise the new connection is refused.
4. A connection is idle until its peer has finished the handshake, and later while it has no request in
   progress (over MS-MQQB and RPC: once it has had none for a minute). Peers that never finished a request are
   closed first. The activity of a connection is checked only when room is needed, so that it costs nothing
   while data flows.
5. A peer that has sent no byte at all within `first_byte` seconds after it was accepted is closed.

Each connection has a number, under which operators see it and close it (`server/sessions.py`).

To add a port: make a share, and let the protocol object of each connection call `Slot.follow` when the
connection is open and `Slot.leave` when it is lost.
"""

from __future__ import annotations

import contextlib
import math
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from itertools import chain, count, islice
from typing import Any, Final

from msmq_fast.logfields import Refuse
from msmq_fast.security.addresses import address_group
from msmq_fast.server.runtime.descriptors import ConnectionLimits, ConnectionScale

__all__ = ["ConnectionTable", "Pool", "Share", "Slot", "Standing"]

_LOOKS: Final = 32
"""Maximum number of connections whose activity is checked to make room for one: bounds the work in a
flood.
"""

_ENDING: Final = 32
"""Maximum number of connections that were closed to make room but whose descriptors are still open."""
_CONGESTION: Final = 5.0
"""Seconds within which the event loop must close the descriptors of connections closed to make room."""

_UNLIMITED: Final = 1 << 62


class Standing(Enum):
    """The activity of a connection."""

    SILENT = auto()
    """Nothing has arrived yet."""
    IDLE = auto()
    """The connection may be closed to make room: it is in its handshake, or between two requests."""
    BUSY = auto()
    """The connection may not be closed now."""
    SETTLED = auto()
    """The connection is never closed to make room."""


class Slot:
    """The entry of one connection in the table. The connection holds a descriptor from `Share.enter` to
    `leave`.
    """

    __slots__ = (
        "_close", "_connection", "_describe", "_ending", "_standing", "address", "crowded", "group", "number",
        "share", "since",
    )  # fmt: skip

    def __init__(
        self,
        share: Share,
        address: str,
        group: str,
        connection: socket.socket | None,
        *,
        crowded: bool = False,
    ) -> None:
        self.share = share
        self.address = address
        self.group = group
        self.number = next(share.pool.numbers)
        """The number of the connection. No other connection of the server ever gets it."""
        self.since = share.pool.monotonic()
        """When the connection was accepted or its opening began."""
        self.crowded = crowded
        """Whether the connection exceeds the limits: the port must then tell the peer so, and close the
        connection.
        """
        self._connection = connection
        self._ending = False
        self._standing: Callable[[], Standing] | None = None
        self._close: Callable[[], None] | None = None
        self._describe: Callable[[], Mapping[str, Any]] | None = None

    def follow(
        self,
        standing: Callable[[], Standing] | None,
        close: Callable[[], None],
        describe: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        """Attach the open connection: `standing` returns its activity (None for one that this server opened,
        which is SETTLED), `close` closes it at once, `describe` returns the fields of SessionInfo that its
        protocol knows. They are called only when room is needed, or when an operator asks.
        """
        self._standing, self._close, self._describe = standing, close, describe

    @property
    def followed(self) -> bool:
        """Whether the connection is open: neither being connected nor in the TLS handshake."""
        return self._close is not None

    def described(self) -> Mapping[str, Any]:
        """Return the fields of SessionInfo that the protocol of the connection knows."""
        return {} if self._describe is None else self._describe()

    @property
    def standing(self) -> Standing:
        """The activity of the connection: IDLE during the TLS handshake, SETTLED if this server opened it."""
        if self._standing is not None:
            return self._standing()
        return Standing.SETTLED if self._connection is None else Standing.IDLE

    def used(self) -> None:
        """Record that the connection has just become idle: all other idle connections are closed before
        it.
        """
        self.share.used(self)

    def leave(self) -> None:
        """Free the slot, because the connection has ended. A second call has no effect."""
        self._standing = self._close = self._connection = self._describe = None
        self.share.leave(self)
        if self._ending:
            self._ending = False
            self.share.pool.closed()

    def end(self) -> None:
        """Close the connection. The slot is free at once, the descriptor in a later iteration of the event
        loop.
        """
        close, connection = self._close, self._connection
        self.leave()
        if close is not None or connection is not None:
            self._ending = True
            self.share.pool.ends()
        if close is not None:
            close()
        elif connection is not None:
            # The event loop reads the end of the stream and tells the protocol, or ends the TLS handshake.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Order:
    """Slots in the order in which their connections are closed to make room: first those whose peer has never
    finished a request, oldest first; then the others, least recently used first.
    """

    __slots__ = ("_strangers", "_useful")

    def __init__(self) -> None:
        self._strangers: dict[Slot, None] = {}
        self._useful: dict[Slot, None] = {}

    def __len__(self) -> int:
        return len(self._strangers) + len(self._useful)

    def __contains__(self, slot: object) -> bool:
        return slot in self._strangers or slot in self._useful

    def first(self, count: int = 1) -> list[Slot]:
        """Return the first `count` slots, or all if there are fewer."""
        return list(islice(chain(self._strangers, self._useful), count))

    def add(self, slot: Slot) -> None:
        self._strangers[slot] = None

    def used(self, slot: Slot) -> None:
        self.discard(slot)
        self._useful[slot] = None

    def discard(self, slot: Slot) -> None:
        if self._strangers.pop(slot, slot) is slot:
            self._useful.pop(slot, None)


class Share:
    """The connections of one port. `what` names their kind in refusals, such as "session"."""

    def __init__(
        self,
        pool: Pool,
        what: str,
        limit: int | None,
        per_address: int,
        margin: int = 0,
        allowed: Callable[[str], bool] | None = None,
        *,
        resumes: bool = False,
    ) -> None:
        """`limit`: maximum number of connections; None for the limit of the pool. `per_address`: maximum for
        one address group. `margin`: number of connections that are accepted beyond the limits, so that the
        port can tell these peers that there are too many. `allowed`: tests whether an address may connect;
        None allows all. `resumes`: whether nothing is lost if a busy connection is closed, because the peer
        reconnects and continues.
        """
        self.pool = pool
        self._allowed = allowed
        self.what = what
        self._wanted = (limit, per_address, margin)
        self._limit = self._per_address = self._margin = 0
        self.rescale()
        self._resumes = resumes
        self._order = _Order()  # without those that have settled
        self._groups: dict[str, _Order] = {}
        self._count = 0
        self._counts: Counter[str] = Counter()
        self._crowd: Counter[str] = Counter()  # those in the margin, which are in neither of the two

    def resize(self, limit: int | None, per_address: int = _UNLIMITED) -> None:
        """Replace the limits; the arguments are those of `Pool.share`. Open connections are kept."""
        self._wanted = (limit, per_address, self._wanted[2])
        self.rescale()

    def rescale(self) -> None:
        """Recompute the limits after a change of the pool's limit or scale, or of the limits of the share."""
        limit, per_address, margin = self._wanted
        self._limit = self.pool.limit if limit is None else self.pool.scaled(limit)
        self._per_address = self.pool.scaled(per_address)
        self._margin = self.pool.scaled(margin)

    def __len__(self) -> int:
        return self._count + self._crowd.total()

    def enter(self, address: str, connection: socket.socket | None = None) -> Slot | None:
        """Return a slot for a connection from `address`; None if the connection is refused: the caller then
        closes it.
        """
        if self._allowed is not None and not self._allowed(address):
            self.pool.refuse(self.what, "address not allowed", address, peer=address)
            return None
        group = address_group(address)
        reason = self._make_room(group) or self.pool.make_room(group)
        if reason is not None:
            self.pool.refuse(self.what, reason, address, peer=address)
            return None
        crowded = self._count >= self._limit or self._counts[group] >= self._per_address
        slot = Slot(self, address, group, connection, crowded=crowded)
        if crowded:
            self._crowd[group] += 1
        else:
            self._order.add(slot)
            self._groups.setdefault(group, _Order()).add(slot)
            self._count += 1
            self._counts[group] += 1
        self.pool.entered(slot)
        return slot

    def expel(self) -> None:
        """Close the connections of addresses that may no longer connect."""
        for slot in self.pool.of_share(self):
            if self._allowed is not None and not self._allowed(slot.address):
                self.pool.refuse(self.what, "address not allowed", slot.address, peer=slot.address)
                slot.end()

    def _make_room(self, group: str) -> str | None:
        """Make room for a connection of an address group in this share. Return None, or the reason why that
        is not possible.
        """
        if self._counts[group] >= self._per_address and not self.evict(group):
            full = self._crowd[group] >= self._margin
            return "too many connections from one address" if full else None
        if self._count >= self._limit and not (
            self.evict(least=self._counts[group]) or self.evict(group) or self.share_out(group)
        ):
            return "too many connections" if self._crowd.total() >= self._margin else None
        return None

    def evict(self, group: str | None = None, least: int = 0) -> bool:
        """Close the connection that has been idle longest: among those of `group` if given, else among those
        of all groups with at least `least` connections. Only the first few candidates are checked. Return
        False if none of them is idle.
        """
        order = self._order if group is None else self._groups.get(group, _Order())
        for slot in order.first(_LOOKS):
            standing = slot.standing
            if standing is Standing.SETTLED:
                self._settle(slot)
            elif standing is Standing.BUSY:
                self.used(slot)
            elif self._counts[slot.group] >= least:
                self._end(slot)
                return True
        return False

    def share_out(self, group: str) -> bool:
        """Close a busy connection of the group with the most connections, to make room for `group`, which has
        fewer. Return False if no connection may be closed.
        """
        if not self._resumes or not self._groups:
            return False
        most = max(self._groups, key=self._counts.__getitem__)
        if self._counts[most] <= self._counts[group] + 1:
            return False
        self._end(self._groups[most].first()[0])
        return True

    def _end(self, slot: Slot) -> None:
        self.pool.evicted += 1
        self.pool.refuse(self.what, "made room for another connection", slot.address, peer=slot.address)
        slot.end()

    def _settle(self, slot: Slot) -> None:
        self._order.discard(slot)
        members = self._groups.get(slot.group)
        if members is not None:
            members.discard(slot)
            if not members:
                del self._groups[slot.group]

    def used(self, slot: Slot) -> None:
        """Move this connection to the end of the order in which connections are closed to make room."""
        if slot in self._order:
            self._order.used(slot)
            self._groups[slot.group].used(slot)

    def leave(self, slot: Slot) -> None:
        """Free the slot of a connection that has ended: see Slot.leave."""
        if not self.pool.left(slot):
            return
        self._settle(slot)
        counts = self._crowd if slot.crowded else self._counts
        self._count -= not slot.crowded
        counts[slot.group] -= 1
        if not counts[slot.group]:
            del counts[slot.group]


class Pool:
    """The connections of one kind, such as those from other computers. Times are monotonic seconds."""

    def __init__(
        self,
        limit: int,
        per_address: int,
        refuse: Refuse,
        monotonic: Callable[[], float],
        first_byte: float = float("inf"),
        *,
        scale: float = 1.0,
        numbers: Iterator[int] | None = None,
    ) -> None:
        """`scale`, from 0 to 1, is the fraction of `limit` and of the limits of shares that the descriptors
        of the process allow. `numbers` yields the numbers of connections, which the pools of one server
        share.
        """
        self.numbers = count(1) if numbers is None else numbers
        self._scale = scale
        self.limit = self.scaled(limit)
        self._per_address = self.scaled(per_address)
        self.refuse = refuse
        self.evicted = 0
        """Number of connections that were closed to make room."""
        self._ending = 0  # connections that are not in the table any more, but still open
        self._ending_since = 0.0
        self.monotonic = monotonic
        self._first_byte = first_byte
        self._shares: list[Share] = []
        self._slots: set[Slot] = set()
        self._counts: Counter[str] = Counter()
        self._young: deque[tuple[float, Slot]] = deque()  # by the time at which they must have said something

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots)

    def share(
        self,
        what: str,
        limit: int | None = None,
        per_address: int = _UNLIMITED,
        margin: int = 0,
        allowed: Callable[[str], bool] | None = None,
        *,
        resumes: bool = False,
    ) -> Share:
        """Return a share of the pool for one port. The limits are those of the configuration, before scaling;
        a `limit` of None means the limit of the pool. The other arguments are those of Share.
        """
        share = Share(self, what, limit, per_address, margin, allowed, resumes=resumes)
        self._shares.append(share)
        return share

    def scaled(self, number: int) -> int:
        """Return a limit multiplied by the scale of the pool."""
        return number if self._scale == 1.0 else math.ceil(number * self._scale)

    def resize(self, limit: int, per_address: int, scale: float) -> None:
        """Replace the limits and the scale; the limits are those of the configuration, before scaling. Open
        connections are kept.
        """
        self._scale = scale
        self.limit = self.scaled(limit)
        self._per_address = self.scaled(per_address)
        for share in self._shares:
            share.rescale()

    def of_share(self, share: Share) -> list[Slot]:
        """Return the open connections of a share."""
        return [slot for slot in self._slots if slot.share is share]

    @property
    def shares(self) -> Iterator[Share]:
        """Yield all shares of the pool."""
        return iter(self._shares)

    def make_room(self, group: str) -> str | None:
        """Make room in this pool for one more connection of an address group. Return None, or the reason why
        that is not possible.
        """
        if self._counts[group] >= self._per_address and not self._evict(group):
            return "too many connections from one address over all ports"
        if len(self._slots) >= self.limit and not (
            self._evict(None) or any(share.share_out(group) for share in self._shares)
        ):
            return "too many connections over all ports"
        return None

    def _evict(self, group: str | None) -> bool:
        """Close the connection that has been idle longest, on the port with the most connections, to make
        room. `group`: only a connection of this address group. Return False if none is idle.
        """
        return any(share.evict(group) for share in sorted(self._shares, key=len, reverse=True))

    def entered(self, slot: Slot) -> None:
        """Record a new connection of a share."""
        self._slots.add(slot)
        self._counts[slot.group] += 1
        if self._first_byte < float("inf"):
            self._young.append((self.monotonic() + self._first_byte, slot))

    def left(self, slot: Slot) -> bool:
        """Record that a connection has ended. Return False if that was already recorded."""
        if slot not in self._slots:
            return False
        self._slots.discard(slot)
        self._counts[slot.group] -= 1
        if not self._counts[slot.group]:
            del self._counts[slot.group]
        while self._young and self._young[0][1] not in self._slots:
            self._young.popleft()
        return True

    # ------------------------------------------------------------------- connections that have made room

    def ends(self) -> None:
        """Record that a connection was closed to make room, but its descriptor is still open."""
        if not self._ending:
            self._ending_since = self.monotonic()
        self._ending += 1

    def closed(self) -> None:
        """Record that the descriptor of a connection that was closed to make room is now closed."""
        self._ending = max(0, self._ending - 1)

    @property
    def congested(self) -> bool:
        """Whether no more connections may be accepted in this iteration of the event loop, because too many
        descriptors of closed connections are still open.
        """
        if self._ending < _ENDING:
            return False
        if self.monotonic() - self._ending_since > _CONGESTION:
            self._ending = 0  # a count that does not fall must not close the port
        return self._ending > 0

    # ---------------------------------------------------------------------------------- silent connections

    def set_first_byte(self, seconds: float) -> None:
        """Replace the time limit for the first byte. The new limit also applies to connections that have sent
        no byte yet.
        """
        change = seconds - self._first_byte
        self._first_byte = seconds
        self._young = deque((due + change, slot) for due, slot in self._young)

    def next_deadline(self) -> float | None:
        """The time at which `expire` is due; None if no deadline is set."""
        return self._young[0][0] if self._young else None

    def expire(self, now: float) -> None:
        """Close the connections whose first byte has not arrived in time."""
        while self._young and self._young[0][0] <= now:
            _, slot = self._young.popleft()
            if slot in self._slots and slot.standing is Standing.SILENT:
                self.refuse(slot.share.what, "no byte received in time", slot.address, peer=slot.address)
                slot.end()


class ConnectionTable:
    """The connections of one server, in one pool for each kind."""

    def __init__(
        self,
        limits: ConnectionLimits,
        scale: ConnectionScale,
        first_byte: float,
        refuse: Refuse,
        monotonic: Callable[[], float],
    ) -> None:
        """`limits` are those of the configuration; `scale`, from 0 to 1, is the fraction of them that the
        descriptors of the process allow. `first_byte` is in seconds.
        """
        self.limits = limits
        numbers = count(1)
        self.network = Pool(
            limits.network,
            limits.network_per_address,
            refuse,
            monotonic,
            first_byte,
            scale=scale.network,
            numbers=numbers,
        )
        """Connections of other computers and of programs over TCP."""
        self.admin = Pool(
            limits.admin, limits.admin, refuse, monotonic, first_byte, scale=scale.admin, numbers=numbers
        )
        self.programs = Pool(
            limits.programs, limits.programs, refuse, monotonic, scale=scale.programs, numbers=numbers
        )
        """Connections of programs of this machine over the Unix socket."""
        self.outgoing = Pool(
            limits.outgoing, limits.outgoing, refuse, monotonic, scale=scale.outgoing, numbers=numbers
        )
        """Connections that this server opens."""

    def resize(self, limits: ConnectionLimits, scale: ConnectionScale, first_byte: float) -> None:
        """Replace the limits. Open connections are kept, even those beyond the limits."""
        self.network.set_first_byte(first_byte)
        self.admin.set_first_byte(first_byte)
        self.limits = limits
        self.network.resize(limits.network, limits.network_per_address, scale.network)
        self.admin.resize(limits.admin, limits.admin, scale.admin)
        self.programs.resize(limits.programs, limits.programs, scale.programs)
        self.outgoing.resize(limits.outgoing, limits.outgoing, scale.outgoing)

    def __iter__(self) -> Iterator[Pool]:
        return iter((self.network, self.admin, self.programs, self.outgoing))

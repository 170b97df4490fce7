"""The next hops of a message: static routes, and the sites and routing links of the directory (MS-MQBR 3.1.3,
3.1.5).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.hops import Target

REFRESH_SECONDS = 3_600.0
"""QueueManager Query Timer (MS-MQBR 3.1.2.1)."""
ANY = "*"
"""The destination of the default static route, which applies if no other one matches."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The data of a queue manager that routing needs; `host` is empty if the directory does not name it."""

    guid: UUID
    host: str = ""
    sites: frozenset[UUID] = frozenset()
    out_routers: tuple[UUID, ...] = ()
    in_routers: tuple[UUID, ...] = ()
    router: bool = False
    foreign: bool = False

    def shares_site(self, other: Machine) -> bool:
        """Whether both machines can communicate directly.

        A machine without a site counts as in the site of every other: networks that define no sites need no
        routing.
        """
        return not self.sites or not other.sites or not self.sites.isdisjoint(other.sites)


@dataclass(frozen=True, slots=True)
class SiteLink:
    """A RoutingLink: its two sites, its ActualCost, and the site gates of both ends."""

    first: UUID
    second: UUID
    cost: int
    gates: tuple[UUID, ...] = ()


class Enterprise(Protocol):
    """Gives the data of the directory that routing needs (GetDirectoryData, MS-MQBR 3.1.5.9); omits the data
    that is not available now.
    """

    def machine(self, guid: UUID) -> Machine | None:
        """Returns the queue manager with this identifier; None if it is not available."""

    def machines(self) -> Iterable[Machine]:
        """Returns all queue managers."""

    def sites(self) -> Iterable[UUID]:
        """Returns all sites."""

    def links(self) -> Iterable[SiteLink]:
        """Returns all routing links."""


def routing_table(own: Iterable[UUID], sites: Iterable[UUID], links: Iterable[SiteLink]) -> dict[UUID, UUID]:
    """Returns the RoutingTable: for each site that can be reached from the sites `own`, the first site on a
    path of least cost.

    Dijkstra's algorithm over an undirected graph (MS-MQBR 3.1.3.1). Links of sites that do not exist are
    ignored. Among paths of equal cost, the order of the sites' identifiers decides.
    """
    neighbours: dict[UUID, list[tuple[UUID, int]]] = {site: [] for site in sites}
    for link in links:
        if link.first in neighbours and link.second in neighbours:
            neighbours[link.first].append((link.second, link.cost))
            neighbours[link.second].append((link.first, link.cost))
    starts = [site for site in own if site in neighbours]
    table: dict[UUID, UUID] = {}
    settled = set(starts)
    edge = [(cost, near, near) for start in starts for near, cost in neighbours[start]]
    heapq.heapify(edge)
    while edge:
        cost, site, first = heapq.heappop(edge)
        if site in settled:
            continue
        settled.add(site)
        table[site] = first
        for near, more in neighbours[site]:
            if near not in settled:
                heapq.heappush(edge, (cost + more, near, first))
    return table


class Router:
    """Finds the next hops from the queue manager `own`.

    `static` maps a queue manager's GUID, or a case-folded host name, to its next hops; it takes precedence
    over the directory. `refresh` reads sites and links; the owner calls it at the start, when the directory
    has changed, and when `next_deadline` (monotonic seconds) has passed.
    """

    def __init__(
        self,
        own: UUID,
        enterprise: Enterprise,
        now: float,
        *,
        static: Mapping[UUID | str, tuple[Target, ...]] | None = None,
        interval: float = REFRESH_SECONDS,
    ) -> None:
        self._own = own
        self._enterprise = enterprise
        self._static = dict(static or {})
        self._interval = interval
        self._table: dict[UUID, UUID] = {}
        self._gates: dict[UUID, set[UUID]] = {}
        self._due = now + interval

    @property
    def table(self) -> Mapping[UUID, UUID]:
        """The RoutingTable, DestinationSiteID -> NextHopSiteID; empty unless this queue manager is a site
        gate.
        """
        return self._table

    def set_static(self, static: Mapping[UUID | str, tuple[Target, ...]]) -> None:
        """Replace the static routes."""
        self._static = dict(static)

    def refresh(self, now: float) -> bool:
        """Read sites and links from the directory (MS-MQBR 3.1.6.1); returns whether routes changed."""
        self._due = now + self._interval
        before = self._table, self._gates
        links = list(self._enterprise.links())
        self._gates = {}
        for link in links:
            for site in (link.first, link.second):
                self._gates.setdefault(site, set()).update(link.gates)
        source = self._enterprise.machine(self._own)
        gate = source is not None and self._is_gate(source)
        own = source.sites if source is not None else ()
        self._table = routing_table(sorted(own), self._enterprise.sites(), links) if gate else {}
        return before != (self._table, self._gates)

    def next_deadline(self) -> float:
        """Monotonic seconds at which the directory is read again."""
        return self._due

    def expire(self, now: float) -> bool:
        """Call `refresh` if its time has come; returns whether routes have changed."""
        return now >= self._due and self.refresh(now)

    # ------------------------------------------------------------------------------------------- next hops

    def hops(self, host: str, destination: UUID | None) -> tuple[Target, ...]:
        """Returns the next hops of messages for a queue manager, in the order in which they are tried.

        `host` is the host of that queue manager, empty if unknown; `destination` is its GUID, None if only
        the host is known. A hop without a host cannot be dialled, but is used if the queue manager with its
        GUID connects to us.
        """
        static = self._static_route(host, destination)
        if static is not None:
            return static
        here = Target(host.casefold(), destination or NULL_GUID)
        if destination is None or self._enterprise.machine(destination) is None:
            return (here,)
        found = [self._target(guid) for guid in self.next_hops(destination)]
        usable = tuple(target for target in found if target.host)
        return usable or (Target("", destination),)

    def _static_route(self, host: str, destination: UUID | None) -> tuple[Target, ...] | None:
        for key in (destination, host.casefold() or None, ANY):
            if key is not None and key in self._static:
                return tuple(self._located(target) for target in self._static[key])
        return None

    def _located(self, target: Target) -> Target:
        return target if target.host else self._target(target.guid)

    def _target(self, guid: UUID) -> Target:
        machine = self._enterprise.machine(guid)
        return Target("" if machine is None else machine.host.casefold(), guid)

    def next_hops(self, destination: UUID) -> tuple[UUID, ...]:
        """GetNextHops (3.1.5.1): returns the GUIDs of the next hops; empty if no route is found."""
        source, receiver = self._enterprise.machine(self._own), self._enterprise.machine(destination)
        if source is None or receiver is None:
            return ()
        if receiver.foreign and source.sites & receiver.sites:
            return (self._own,)  # a connector: its programs do the rest
        if source.router:
            found = self._from_router(source, receiver)
        elif source.out_routers:
            found = source.out_routers
        elif source.shares_site(receiver):
            found = self._entrance(receiver)
        else:
            found = self._routing_servers(source)
        return tuple(guid for guid in dict.fromkeys(found) if guid != self._own)

    def _from_router(self, source: Machine, receiver: Machine) -> tuple[UUID, ...]:
        """GetNextHopsForRouter, GetNextHopsForSiteGate (3.1.5.2, 3.1.5.3): the next hops of a router."""
        if source.guid in receiver.in_routers:
            return (receiver.guid,)
        if source.shares_site(receiver):
            return self._entrance(receiver)
        if not self._is_gate(source):
            return self._site_gates(source.sites)
        next_sites = {self._table[site] for site in receiver.sites if site in self._table}
        return self._site_gates(next_sites)

    def _entrance(self, receiver: Machine) -> tuple[UUID, ...]:
        return receiver.in_routers or (receiver.guid,)

    def _routing_servers(self, source: Machine) -> tuple[UUID, ...]:
        """GetRoutingServer (3.1.5.5): returns not one but all routing servers of the sites of `source`, so
        that another one can be used if one is down.
        """
        found = [m.guid for m in self._enterprise.machines() if m.router and m.sites & source.sites]
        return self._spread(found)

    def _site_gates(self, sites: Iterable[UUID]) -> tuple[UUID, ...]:
        """Returns the gates of the sites: GetSiteGate, GetSiteGateForSite (3.1.5.6, 3.1.5.7).

        A routing link names the gates of both of its ends together. So the gates of a site are those of its
        links' gates that belong to the site.
        """
        found = []
        for site in sites:
            for guid in self._gates.get(site, ()):
                machine = self._enterprise.machine(guid)
                if machine is not None and site in machine.sites:
                    found.append(guid)
        return self._spread(found)

    def _spread(self, guids: Iterable[UUID]) -> tuple[UUID, ...]:
        """Returns the GUIDs in an order that is constant here but differs between queue managers, so that the
        machines with these GUIDs share the load.
        """
        return tuple(sorted(set(guids), key=lambda guid: guid.int ^ self._own.int))

    def _is_gate(self, machine: Machine) -> bool:
        """IsSiteGate (3.1.5.8): whether a machine is a gate of one of its sites."""
        return machine.router and any(machine.guid in self._gates.get(site, ()) for site in machine.sites)

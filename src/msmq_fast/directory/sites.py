"""The cached topology of the directory, and the timers that refresh it (3.1.6.1, 3.1.6.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from msmq_fast.directory.events import DirectoryEvents
from msmq_fast.directory.filters import equals
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.store.completion import Completion
from msmq_fast.timing import earliest

SITES_SECONDS = 12 * 3600.0  # the Directory Sites Update Timer
GATES_SECONDS = 3600.0  # the Directory Site Gates Update Timer


@dataclass(frozen=True, slots=True)
class Intervals:
    """The seconds between two refreshes of the sites and of the site gates."""

    sites: float = SITES_SECONDS
    gates: float = GATES_SECONDS


class Topology:
    """The cached sites of the queue manager (SiteCollection), and the site gates of each site
    (SiteGateCollection).

    The gates of a site are the SiteGates of the routing links that end at the site.
    """

    def __init__(
        self, events: DirectoryEvents, monotonic: Callable[[], float], intervals: Intervals | None = None
    ) -> None:
        self.sites: dict[UUID, DirectoryObject] = {}
        self.gates: dict[UUID, dict[UUID, DirectoryObject]] = {}  # by site
        self._events = events
        self._monotonic = monotonic
        self._intervals = intervals or Intervals()
        self._sites_due: float | None = None
        self._gates_due: float | None = None

    def start(self, site_identifiers: Iterable[UUID]) -> None:
        """Read the sites of the queue manager and their gates, and start both timers."""
        for identifier in site_identifiers:
            self._read_site(identifier)
        self._find_gates()
        self._arm()

    def _arm(self) -> None:
        now = self._monotonic()
        self._sites_due = now + self._intervals.sites
        self._gates_due = now + self._intervals.gates

    def next_deadline(self) -> float | None:
        """Return the time, in monotonic seconds, at which the first timer is due; None if no timer is
        running.
        """
        return earliest(self._sites_due, self._gates_due)

    def expire(self, now: float) -> None:
        """Handle the timers that are due, and restart them."""
        if self._sites_due is not None and now >= self._sites_due:
            self._sites_due = now + self._intervals.sites
            self.update_sites()
        if self._gates_due is not None and now >= self._gates_due:
            self._gates_due = now + self._intervals.gates
            self.update_gates()

    def update_sites(self) -> None:
        """Read the sites again (Directory Sites Update). A site that cannot be read keeps its old values."""
        for identifier in list(self.sites):
            self._read_site(identifier)

    def update_gates(self) -> None:
        """Read the gates again (Directory Site Gates Update). A gate that cannot be read keeps its earlier
        values.
        """
        self._find_gates()

    def _read_site(self, identifier: UUID) -> None:
        def answered(answer: Completion[DirectoryObject]) -> None:
            if answer.exception() is None:
                self.sites[identifier] = answer.result()

        self._events.read(ObjectType.SITE, (equals(IDENTIFIER, identifier),)).add_done_callback(answered)

    def _find_gates(self) -> None:
        def answered(answer: Completion[list[DirectoryObject]]) -> None:
            if answer.exception() is None:
                self._take_links(answer.result())

        self._events.all(ObjectType.ROUTING_LINK).add_done_callback(answered)

    def _take_links(self, links: list[DirectoryObject]) -> None:
        wanted: dict[UUID, set[UUID]] = {site: set() for site in self.sites}
        for link in links:
            for end in ("Site1Identifier", "Site2Identifier"):
                if link.get(end) in wanted:
                    wanted[link[end]].update(link.get("SiteGateIdentifierList") or ())
        for site, identifiers in wanted.items():
            known = self.gates.get(site, {})
            self.gates[site] = {gate: item for gate, item in known.items() if gate in identifiers}
            for identifier in identifiers:
                self._read_gate(site, identifier)

    def _read_gate(self, site: UUID, identifier: UUID) -> None:
        def answered(answer: Completion[DirectoryObject]) -> None:
            if answer.exception() is None and site in self.gates:
                self.gates[site][identifier] = answer.result()

        conditions = (equals(IDENTIFIER, identifier),)
        self._events.read(ObjectType.QUEUE_MANAGER, conditions).add_done_callback(answered)

"""The directory data that routing uses: queue managers, sites and routing links (MS-MQBR 3.1.5.9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from msmq_fast.directory.events import DirectoryEvents
from msmq_fast.directory.filters import equals
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.mqqb.routing import Machine, SiteLink


class DirectoryEnterprise:
    """Implements `routing.Enterprise`.

    `own` returns the directory object of this queue manager without a request to the directory. Data that the
    directory does not return at once is missing until routes are looked up again.
    """

    def __init__(self, events: Callable[[], DirectoryEvents], own: Callable[[], DirectoryObject]) -> None:
        self._events = events
        self._own = own

    def machine(self, guid: UUID) -> Machine | None:
        """Returns the queue manager with this identifier; None if it is not available."""
        own = self._own()
        if guid == own.identifier:
            return _machine(own)
        answer = self._events().read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, guid),))
        if not answer.done or answer.exception() is not None:
            return None
        return _machine(answer.result())

    def machines(self) -> Iterable[Machine]:
        """Returns all queue managers."""
        return [_machine(item) for item in self._all(ObjectType.QUEUE_MANAGER)]

    def sites(self) -> Iterable[UUID]:
        """Returns all sites."""
        return [site.identifier for site in self._all(ObjectType.SITE) if site.identifier is not None]

    def links(self) -> Iterable[SiteLink]:
        """Returns all routing links."""
        return [
            SiteLink(
                link["Site1Identifier"],
                link["Site2Identifier"],
                link["ActualCost"],
                tuple(link.get("SiteGateIdentifierList") or ()),
            )
            for link in self._all(ObjectType.ROUTING_LINK)
        ]

    def _all(self, kind: ObjectType) -> list[DirectoryObject]:
        answer = self._events().all(kind)
        return answer.result() if answer.done and answer.exception() is None else []


def _machine(item: DirectoryObject) -> Machine:
    guid = item.identifier
    assert guid is not None  # noqa: S101 - of every object that a directory returns
    return Machine(
        guid,
        str(item.get("QualifiedComputerName") or item.get("ComputerName") or ""),
        frozenset(item.get("SiteIdentifierList") or ()),
        tuple(item.get("OutRoutingServerIdentifierList") or ()),
        tuple(item.get("InRoutingServerIdentifierList") or ()),
        bool(item.get("RoutingServer")),
        bool(item.get("ForeignSystem")),
    )

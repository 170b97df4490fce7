"""Connector queues: messages for systems other than MSMQ wait in them for a connector program (X-74)."""

from __future__ import annotations

from typing import Any, Protocol
from uuid import UUID

from msmq_fast._native.ledger import Ledger
from msmq_fast.directory.filters import Filter, equals
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.packet.names import FormatName, NameKind, QueuePart, Scope, Suffix
from msmq_fast.protocol.errors import QueueNotFound
from msmq_fast.qm.queues.changes import QueueChanges
from msmq_fast.qm.queues.queue import NOBODY, Queue, QueueKind, QueueProperties, QueueState, Role
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.services import Services
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.store.completion import Completion


class Directory(Protocol):
    """The part of the directory that connector queues use."""

    def queue_manager(self) -> DirectoryObject:
        """Returns the directory object of this queue manager."""

    def read(self, kind: ObjectType, conditions: Filter = ()) -> Completion[DirectoryObject]:
        """Read the directory object that matches the conditions."""


def connector_name(site: UUID, *, transactional: bool) -> FormatName:
    """Returns the name of one of the two connector queues of a foreign site (MS-MQMQ 2.1.6)."""
    suffix = Suffix.XACTONLY if transactional else Suffix.NONE
    return FormatName(NameKind.CONNECTOR, site, suffix=suffix)


def connector_key(name: FormatName) -> str:
    """Returns the key of a connector queue in the registry; no path name has this key."""
    return QueuePart(Scope.SYSTEM, str(name)).key


class ConnectorQueue(Queue):
    """A queue with messages for the foreign systems of one site. Each site has two: one for transactional
    messages, one for others.

    A message that is received from this queue has not reached its destination yet. So the queue manager does
    not acknowledge it; the connector program does that.
    """

    def __init__(
        self, ledger: Ledger, ordinal: int, guid: UUID, site: UUID, *, transactional: bool, created: int = 0
    ) -> None:
        self.destination = connector_name(site, transactional=transactional)
        properties = QueueProperties(label=str(self.destination), transactional=transactional)
        part = QueuePart(Scope.SYSTEM, str(self.destination))
        super().__init__(ledger, ordinal, guid, part, "", QueueKind.CONNECTOR, properties, created=created)
        self.core.role = Role.OUTGOING
        self.site = site

    @property
    def name(self) -> str:
        """The format name, CONNECTOR=…"""
        return str(self.destination)

    def format_name(self, manager: UUID) -> FormatName:
        """Returns the name with which programs on this computer open the queue; `manager` does not matter."""
        return self.destination

    def record(self) -> dict[str, Any]:
        """Returns the stored record of the queue."""
        return {
            "kind": int(self.kind),
            "guid": self.guid.bytes_le,
            "site": self.site.bytes_le,
            "transactional": self.properties.transactional,
            "created": self.created,
            "state": int(self.state),
            "purged_to": self.purged_to,
        }

    @classmethod
    def load_connector(cls, ledger: Ledger, ordinal: int, record: dict[str, Any]) -> ConnectorQueue:
        """Create the queue from a stored record."""
        queue = cls(
            ledger,
            ordinal,
            UUID(bytes_le=record["guid"]),
            UUID(bytes_le=record["site"]),
            transactional=bool(record["transactional"]),
            created=record["created"],
        )
        queue.state = QueueState(record["state"])
        queue.purged_to = record["purged_to"]
        return queue


class Connectors:
    """The connector queues of one queue manager; each is created when it is first used."""

    def __init__(
        self, services: Services, registry: QueueRegistry, changes: QueueChanges, directory: Directory
    ) -> None:
        self._services = services
        self._registry = registry
        self._changes = changes
        self._directory = directory

    def named(self, name: FormatName) -> ConnectorQueue:
        """Returns the queue of a CONNECTOR= name, creating it if needed.

        Raises QUEUE_NOT_FOUND unless `name` contains a foreign site to which this computer belongs.
        """
        site = name.guid
        if site is None or site not in self._own_sites() or not self._site(site, "ForeignSite"):
            raise QueueNotFound(f"this computer is not a connector for {name}")
        return self.queue(site, transactional=name.suffix is Suffix.XACTONLY)

    def site_of(self, manager: UUID | None) -> UUID | None:
        """Returns the foreign site to which messages for the queue manager `manager` go, if this computer is
        a connector for that site; else None.
        """
        if manager is None:
            return None
        answer = self._directory.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, manager),))
        if not answer.done or answer.exception() is not None or not answer.result().get("ForeignSystem"):
            return None
        common = self._own_sites() & set(answer.result().get("SiteIdentifierList") or ())
        return min(common, default=None)

    def queue(self, site: UUID, *, transactional: bool) -> ConnectorQueue:
        """Returns one of the two queues of a site, creating it if needed."""
        descriptor = self._descriptor(site)
        found = self._registry.by_key(connector_key(connector_name(site, transactional=transactional)))
        if not isinstance(found, ConnectorQueue):
            found = ConnectorQueue(
                self._services.ledger,
                self._registry.new_ordinal(),
                self._services.new_guid(),
                site,
                transactional=transactional,
                created=self._services.ledger.now_s,
            )
            self._changes.write_new(found)
            self._registry.add(found)
        found.security = descriptor
        return found

    def _own_sites(self) -> set[UUID]:
        return set(self._directory.queue_manager().get("SiteIdentifierList") or ())

    def _read_site(self, site: UUID) -> DirectoryObject | None:
        answer = self._directory.read(ObjectType.SITE, (equals(IDENTIFIER, site),))
        return answer.result() if answer.done and answer.exception() is None else None

    def _site(self, site: UUID, attribute: str) -> Any:
        found = self._read_site(site)
        return None if found is None else found.get(attribute)

    def _descriptor(self, site: UUID) -> SecurityDescriptor:
        """Returns the security descriptor that the directory has for the connector queues of a site. If there
        is none, only administrators may open the queues.
        """
        data = self._site(site, "Security")
        try:
            return SecurityDescriptor.from_bytes(data) if data else NOBODY
        except SecurityDataError:
            return NOBODY

"""The queue manager as a client of its directory: keeps the directory objects of the queue manager and its
queues, and resolves public names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from msmq_fast.directory.embedded import DirectoryEnvironment, EmbeddedDirectory
from msmq_fast.directory.events import DirectoryEvents
from msmq_fast.directory.filters import Condition, Filter, equals
from msmq_fast.directory.names import expand_format_name
from msmq_fast.directory.notices import Notice
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.provider import DirectoryProvider, Join
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, for_applications
from msmq_fast.directory.sites import Intervals, Topology
from msmq_fast.directory.startup import default_enterprise, introduce, publish
from msmq_fast.directory.workgroup import WorkgroupDirectory
from msmq_fast.packet.names import FormatName, NameKind, PathName, QueuePart
from msmq_fast.protocol.errors import NoDirectory, QueueNotFound, UnsupportedFormatNameOperation
from msmq_fast.qm.queues.changes import QueueChanges
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueProperties
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.services import Services
from msmq_fast.qm.settings import DirectoryMode
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import Sid, sid
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion
from msmq_fast.timing import earliest

_log = logging.getLogger(__name__)

T = TypeVar("T")

# Attributes of a Queue object and the queue properties that they set.
_PROPERTIES = {
    "Label": "label",
    "Type": "type",
    "Journaling": "journaling",
    "Quota": "quota_kb",
    "JournalQuota": "journal_quota_kb",
    "Authentication": "authenticated",
    "PrivacyLevel": "privacy",
    "Transactional": "transactional",
    "MulticastAddress": "multicast_address",
    "BasePriority": "base_priority",
}
_FLAGS = ("ForeignSystem", "DirectoryServer", "RoutingServer", "SupportingServer", "Clustered")
_ENTERPRISE_SCOPE = 1


Announce = Callable[[UUID, Notice], None]
"""Sends the notice of a changed directory object to the queue manager that owns the object, given by its
GUID.
"""


class DirectoryClient:
    """Keeps the directory objects of this queue manager and its queues, and resolves public names. Implements
    `LocalObjects`, with which the directory finds and changes local queues, and `Timed`.

    `rearranged` is emitted when routes must be looked up again, `users_changed` when cached data about users
    is out of date.
    """

    def __init__(
        self,
        services: Services,
        registry: QueueRegistry,
        changes: QueueChanges,
        announce: Announce,
        provider: DirectoryProvider | None = None,
    ) -> None:
        self._services = services
        self._registry = registry
        self._changes = changes
        self._announce = announce
        settings = services.settings
        self._own = provider is None  # the directory is this queue manager's own
        if provider is not None:
            chosen = provider
        elif settings.directory is DirectoryMode.WORKGROUP:
            chosen = WorkgroupDirectory(self)
        else:
            around = DirectoryEnvironment(
                now_s=lambda: services.ledger.now_s,
                random_bytes=services.random_bytes,
                domain=settings.domain,
                server=settings.computer_name,
                report_corrupt=lambda line: services.report_corrupt("directory", line),
            )
            chosen = EmbeddedDirectory(services.store, around)
        self._learned: Mapping[
            str, Any
        ] = {}  # the attributes of the own QueueManager object in the directory
        self._unregistered = False  # the directory went away during the start
        self.enterprise = default_enterprise()
        self.rearranged: Signal[[]] = Signal()
        self.users_changed: Signal[[]] = Signal()
        self._use(chosen)

    def _use(self, provider: DirectoryProvider) -> None:
        settings = self._services.settings
        intervals = Intervals(settings.sites_interval, settings.gates_interval)
        self.events = DirectoryEvents(provider, self, self._services.monotonic, self._announce)
        self.events.topology_changed.connect(self.rearranged)
        self.events.reconnected.connect(self._introduce_again)
        self.events.users_changed.connect(self.users_changed)
        self.topology = Topology(self.events, self._services.monotonic, intervals)

    # ---- lifecycle

    def start(self) -> None:
        """Register the queue manager in the directory. If that fails, logs the error; the queue manager then
        runs as in a workgroup until the next start.
        """
        if not self.events.integrated:
            return
        site = self._services.settings.site
        started = self.events.provider.start()
        done = started.then(lambda _: introduce(self.events, self, provisioning=self._own, site=site))
        done.add_done_callback(self._introduced)

    def _introduce_again(self) -> None:
        """Register the queue manager, if the directory went away while that was done."""
        if self._unregistered:
            self._unregistered = False
            site = self._services.settings.site
            done = introduce(self.events, self, provisioning=self._own, site=site)
            done.add_done_callback(self._introduced)

    def close(self) -> None:
        """Stop using the directory."""
        self.events.provider.close()

    def _introduced(self, done: Completion[DirectoryObject]) -> None:
        error, settings = done.exception(), self._services.settings
        if error is None:
            self.enterprise = done.result()
            publish(self.events, [self.queue_object(queue) for queue in self._public()])
            if self._own:
                self._drop_objects_without_queue()
            for queue in self._public():
                self._read_paths(queue)
            self._start_topology()
            return
        absent = _result(error) is DirectoryOperationResult.NOT_CONNECTED
        if absent and self.events.provider.keeps_copy:  # the copy is of use meanwhile
            self._unregistered = True
            return
        if not absent:
            advice = "; run msmq-fast domain join" if settings.directory is DirectoryMode.DOMAIN else ""
            _log.error("the directory does not know this queue manager: %s%s", error, advice)
        _log.warning("no directory: running as in a workgroup until the next start")
        self.close()
        self._use(WorkgroupDirectory(self))

    def _start_topology(self) -> None:
        """Start to read the site topology regularly, unless the directory is this queue manager's own and has
        no sites.
        """
        sites = self.queue_manager().get("SiteIdentifierList") or ()
        if sites or not self._own:
            self.topology.start(sites)

    def _drop_objects_without_queue(self) -> None:
        """Delete directory objects of local queues that do not exist. A crash can leave such objects in a
        directory that is this queue manager's own.
        """
        for item in self.events.all(ObjectType.QUEUE).result():
            if self.is_own_path(item["Pathname"]) and self.own_queue(item) is None:
                self.events.delete(item)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""
        provider = self.events.provider
        return earliest(self.events.online.due, self.topology.next_deadline(), provider.next_deadline())

    def expire(self, now: float) -> None:
        """Call `expire(now)` of the directory events, the topology and the provider; an exception of one does
        not affect the others.
        """
        for timed in (self.events, self.topology, self.events.provider):
            try:
                timed.expire(now)
            except Exception as error:
                self._services.faults.note("deadline of the directory", error)

    # ---- LocalObjects

    @property
    def guid(self) -> UUID:
        return self._services.guid

    def is_local(self, computer: str) -> bool:
        return self._registry.is_local(computer)

    def queue_manager(self) -> DirectoryObject:
        settings = self._services.settings
        defaults: dict[str, Any] = dict.fromkeys(_FLAGS, False)
        defaults |= {"QueueManagerVersion": "", "OperatingSystemType": 0}
        own = {
            IDENTIFIER: self.guid,
            "ComputerName": settings.computer_name,
            "QualifiedComputerName": settings.qualified_name,
            "QueueManagerQuota": settings.quota_kb,
            "JournalQuota": settings.journal_quota_kb,
        }
        if settings.routing_server:
            own["RoutingServer"] = True
        return DirectoryObject(ObjectType.QUEUE_MANAGER, defaults | dict(self._learned) | own)

    @property
    def machine_sid(self) -> Sid | None:
        """The objectSid of this computer's account; None if no directory provides it (DM-045)."""
        text = self._learned.get("MachineSid")
        return sid(text) if text and self.events.integrated else None

    def queues(self) -> Iterable[DirectoryObject]:
        kinds = (QueueKind.PUBLIC, QueueKind.PRIVATE)
        return [self.queue_object(queue) for queue in self._registry.local() if queue.kind in kinds]

    def private_path(self, number: int) -> str | None:
        queue = self._registry.by_number(number)
        return None if queue is None else queue.name

    def refresh_queue_manager(self, item: DirectoryObject) -> None:
        self._learned = dict(item.values)
        self.rearranged()

    def refresh_queue(self, item: DirectoryObject) -> None:
        queue = self.own_queue(item)
        if queue is None:
            return
        self._note_paths(queue, item)
        given = properties_of(item)
        changed = {name: value for name, value in given.items() if getattr(queue.properties, name) != value}
        changed.pop("transactional", None)
        security = security_of(item)
        if changed or (security is not None and security != queue.security):
            self._changes.apply(queue, changed, security)

    # ---- own queues

    def _public(self) -> list[Queue]:
        return [queue for queue in self._registry.local() if queue.kind is QueueKind.PUBLIC]

    def own_queue(self, item: DirectoryObject) -> Queue | None:
        """Returns the local public queue of a directory object; None if there is none."""
        identifier = item.identifier
        return None if identifier is None else self._registry.by_guid(identifier)

    def queue_object(self, queue: Queue) -> DirectoryObject:
        """Returns the directory object of a local queue."""
        assert queue.part is not None  # noqa: S101 - of every queue that is not outgoing
        values = self._described(queue.part, queue.properties, queue.security) | {
            IDENTIFIER: queue.guid,
            "CreateTime": queue.created,
            "ModifyTime": queue.modified,
        }
        if queue.private_number:
            values["PrivateQueueNumber"] = queue.private_number
        return DirectoryObject(ObjectType.QUEUE, values)

    def _described(
        self, part: QueuePart, properties: QueueProperties, security: SecurityDescriptor
    ) -> dict[str, Any]:
        settings = self._services.settings
        values: dict[str, Any] = {
            "Pathname": str(PathName(settings.computer_name, part)),
            "QualifiedPathname": str(PathName(settings.qualified_name, part)),
            "Scope": _ENTERPRISE_SCOPE,
        }
        values |= {attribute: getattr(properties, name) for attribute, name in _PROPERTIES.items()}
        return values | {"PrivacyLevel": int(properties.privacy), "Security": security.encoded}

    def create_queue(
        self,
        part: QueuePart,
        properties: QueueProperties,
        security: SecurityDescriptor,
        guid: UUID | None,
        join: Callable[[UUID], Queue],
    ) -> Completion[Queue]:
        """Create the directory object of a public queue. `join` is called in the same unit to create the
        queue (DM-060, DU-10).
        """
        made: list[Queue] = []
        values = self._described(part, properties, security)
        if guid is not None:
            values[IDENTIFIER] = guid
        wanted = DirectoryObject(ObjectType.QUEUE, values)

        def joined(identifier: UUID) -> None:
            made[:] = [join(identifier)]  # nothing can raise between the two

        done = self.events.create(wanted, join=joined)

        def ended(done: Completion[UUID]) -> None:
            for queue in made:
                if done.exception() is None:
                    self._read_paths(queue)
                else:
                    self._changes.undo(queue)

        done.add_done_callback(ended)
        return for_applications(done).then(lambda _: Completion.of(made[0]))

    def _read_paths(self, queue: Queue) -> None:
        """Read a queue's FullPath and DirectoryPath from the directory, which derives them from the queue
        name.
        """
        answer = self.events.read(ObjectType.QUEUE, (equals(IDENTIFIER, queue.guid),))

        def note(answer: Completion[DirectoryObject]) -> None:
            if answer.exception() is None:
                self._note_paths(queue, answer.result())

        answer.add_done_callback(note)

    def _note_paths(self, queue: Queue, item: DirectoryObject) -> None:
        queue.full_path = item.get("FullPath") or ""
        queue.directory_path = item.get("DirectoryPath") or ""

    def delete_queue(self, queue: Queue, join: Callable[[], Completion[None]]) -> Completion[None]:
        """Delete the directory object of a public queue. `join` is called in the same unit to delete the
        queue (DM-067, DU-09).

        If the directory does not know the queue, or the computer has left the directory, only `join` is
        called.
        """
        if not self.events.integrated:
            return join()
        ended: Completion[None] = Completion()

        def settle(done: Completion[None]) -> None:
            error = done.exception()
            if error is None:
                ended.resolve(None)
            elif _result(error) is DirectoryOperationResult.OBJECT_NOT_FOUND:
                join().add_done_callback(settle)
            else:
                ended.fail(error)

        self.events.delete(self.queue_object(queue), join=lambda _: join()).add_done_callback(settle)
        return for_applications(ended)

    def write_queue(
        self,
        queue: Queue,
        changed: QueueProperties,
        security: SecurityDescriptor,
        join: Callable[[], Completion[None]],
    ) -> Completion[None]:
        """Write the properties of a public queue to the directory. `join` is called in the same unit to
        change the queue (DU-17).
        """
        if not self.events.integrated:
            return join()
        assert queue.part is not None  # noqa: S101 - of every queue that is not outgoing
        values = self._described(queue.part, changed, security) | {IDENTIFIER: queue.guid}
        wanted = DirectoryObject(ObjectType.QUEUE, values)
        return for_applications(self.events.write(wanted, (*_PROPERTIES, "Security"), join=lambda _: join()))

    # ---- objects

    def create(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[UUID]:
        """Create a directory object that does not belong to a local queue."""
        return self.events.create(item, attributes, join=join)

    def write(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[None]:
        """Change a directory object that does not belong to a local queue."""
        done = self.events.write(item, attributes, join=join)
        if item.kind is ObjectType.QUEUE_MANAGER and item.identifier == self.guid:
            return done.then(lambda _: self._reread())
        return done

    def _reread(self) -> Completion[None]:
        """Read this queue manager's own directory object again, after an administrator changed it, and apply
        the change.
        """
        own = self.events.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, self.guid),))

        def take(item: DirectoryObject) -> Completion[None]:
            self.refresh_queue_manager(item)
            self._start_topology()
            return Completion.of(None)

        return own.then(take)

    def read(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        *,
        force: bool = False,
    ) -> Completion[DirectoryObject]:
        """Read the directory object that matches the conditions."""
        return self.events.read(kind, conditions, attributes, force=force)

    def is_own_path(self, path: object) -> bool:
        """Whether a path names a queue of this computer."""
        return isinstance(path, str) and self.is_local(path.partition("\\")[0])

    # ---- names

    def expand(self, text: str) -> str:
        """Expand Format Name: replace distribution lists by their members. Raises ILLEGAL_FORMATNAME; NO_DS
        if the directory does not answer immediately.
        """
        return self._at_once(expand_format_name(text, self.events))

    def base_priority(self, name: FormatName) -> int:
        """Returns the BasePriority of a public queue; 0 if the directory does not have the queue."""
        found = self._read_public(name)
        return 0 if found is None else int(found.get("BasePriority") or 0)

    def check_remote(self, name: FormatName) -> None:
        """Check that a public queue belongs to another computer (DM-078).

        Raises UNSUPPORTED_FORMATNAME_OPERATION if the directory does not have the queue; QUEUE_NOT_FOUND if
        the directory says that the queue is on this computer.
        """
        found = self._read_public(name)
        if found is None:
            raise UnsupportedFormatNameOperation(f"the directory has no queue {name}")
        if self.is_own_path(found.get("Pathname")):
            raise QueueNotFound(f"there is no queue {name}")

    def _read_public(self, name: FormatName) -> DirectoryObject | None:
        assert name.guid is not None  # noqa: S101 - of every public format name
        found = self.events.read(ObjectType.QUEUE, (equals(IDENTIFIER, name.guid),))
        return found.result() if found.done and found.exception() is None else None

    def locate(self, name: FormatName, manager: UUID | None = None) -> tuple[str, UUID | None]:
        """Get Destination Info (MS-MQQB 3.1.7.4) for a name that is not direct: returns (host, GUID of the
        queue manager).

        The host is "" if it is unknown. The queue manager is that of the computer in the queue's path
        (AMB-55), or `manager` if the directory does not have the queue.
        """
        if name.kind is NameKind.PUBLIC:
            found = self._read_public(name)
            if found is not None:
                computer = str(found["Pathname"]).partition("\\")[0]
                return self._locate_machine(equals("ComputerName", computer), computer, None)
        elif name.guid is not None:
            manager = name.guid
        return (
            ("", None) if manager is None else self._locate_machine(equals(IDENTIFIER, manager), "", manager)
        )

    def _locate_machine(
        self, condition: Condition, computer: str, manager: UUID | None
    ) -> tuple[str, UUID | None]:
        answer = self.events.read(ObjectType.QUEUE_MANAGER, (condition,))
        if not answer.done or answer.exception() is not None:
            return computer, manager
        machine = answer.result()
        return str(machine.get("QualifiedComputerName") or machine["ComputerName"]), machine.identifier

    def _at_once(self, done: Completion[T]) -> T:
        if not done.done:
            raise NoDirectory("the directory has not answered yet")
        return done.result()


def security_of(item: DirectoryObject) -> SecurityDescriptor | None:
    """Returns the security descriptor of a directory object of type Queue; None if it has no readable
    descriptor (X-43).
    """
    data = item.get("Security")
    if not data:
        return None
    try:
        return SecurityDescriptor.from_bytes(data)
    except SecurityDataError as error:
        _log.error("the directory has an unreadable descriptor for a queue: %s", error)
        return None


def properties_of(item: DirectoryObject) -> dict[str, Any]:
    """Returns the queue properties that a directory object of type Queue sets: name → value."""
    return {own: item.get(name) for name, own in _PROPERTIES.items() if item.get(name) is not None}


def _result(error: Exception | None) -> DirectoryOperationResult | None:
    return error.result if isinstance(error, DirectoryError) else None

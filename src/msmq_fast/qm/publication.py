"""The queue manager and its directory: own objects as it shows them, and where public names lead."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from msmq_fast.directory.embedded import EmbeddedDirectory, Surroundings
from msmq_fast.directory.enumerations import failed
from msmq_fast.directory.events import DirectoryEvents
from msmq_fast.directory.filters import Condition, Filter, equals
from msmq_fast.directory.names import expand_format_name
from msmq_fast.directory.notices import NOTIFY_QUEUE, TIME_TO_REACH_S, Notice, encode_notice
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject, ObjectType
from msmq_fast.directory.provider import DirectoryProvider, Join
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, for_applications, generic
from msmq_fast.directory.sites import Intervals, Topology
from msmq_fast.directory.startup import default_enterprise, introduce, publish
from msmq_fast.directory.workgroup import WorkgroupDirectory
from msmq_fast.packet.errors import (
    MSMQError,
    NoDirectory,
    QueueNotFound,
    UnsupportedFormatNameOperation,
)
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, NameKind, PathName, QueuePart
from msmq_fast.qm.outgoing.homecoming import Homecoming
from msmq_fast.qm.queues.access import Access
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueProperties
from msmq_fast.qm.settings import DirectoryMode
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import Sid, sid
from msmq_fast.store.completion import Completion
from msmq_fast.timing import earliest

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager

_log = logging.getLogger(__name__)

T = TypeVar("T")

# Attributes of a Queue object and the queue properties they are.
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


class Publication:
    """Fulfils `LocalObjects` for the directory, and `exchange.Changes` for who administers it.

    Changes to objects of own public queues go through the queue manager, so that queue and object stay equal.
    """

    def __init__(self, manager: QueueManager, provider: DirectoryProvider | None = None) -> None:
        self._manager = manager
        settings = manager.settings
        self._own = provider is None  # the directory is this queue manager's own
        if provider is not None:
            chosen = provider
        elif settings.directory is DirectoryMode.WORKGROUP:
            chosen = WorkgroupDirectory(self)
        else:
            around = Surroundings(
                now_s=lambda: manager.ledger.now_s,
                random_bytes=manager.random_bytes,
                domain=settings.domain,
                server=settings.computer_name,
                set_aside=lambda line: manager.set_aside("directory", line),
            )
            chosen = EmbeddedDirectory(manager.store, around)
        self._homecoming = Homecoming(manager)
        self._learned: Mapping[str, Any] = {}  # what the directory says of the own QueueManager object
        self.enterprise = default_enterprise()
        self.on_topology: Callable[[], None] | None = None  # routes are to be looked up anew
        self.on_users: Callable[[], None] | None = None  # what is known of users is out of date
        self._use(chosen)

    def _use(self, provider: DirectoryProvider) -> None:
        manager = self._manager
        intervals = Intervals(manager.settings.sites_interval, manager.settings.gates_interval)
        self.events = DirectoryEvents(provider, self, manager.monotonic, self._announce)
        self.events.on_topology = self._rearranged
        self.events.on_users = self._users_changed
        self.topology = Topology(self.events, manager.monotonic, intervals)

    def _rearranged(self) -> None:
        if self.on_topology is not None:
            self.on_topology()

    def _users_changed(self) -> None:
        if self.on_users is not None:
            self.on_users()

    # ---- lifecycle

    def start(self) -> None:
        """Make directory and queue manager known to each other. Raises the error where that cannot be."""
        if not self.events.integrated:
            return
        site = self._manager.settings.site
        done = introduce(self.events, self, provisioning=self._own, site=site)
        done.add_done_callback(self._introduced)

    def _introduced(self, done: Completion[DirectoryObject]) -> None:
        error = done.exception()
        if error is None:
            self.enterprise = done.result()
            publish(self.events, [self.queue_object(queue) for queue in self._public()])
            if self._own:
                self._drop_objects_without_queue()
            for queue in self._public():
                self._read_paths(queue)
            self._start_topology()
            return
        if _result(error) is not DirectoryOperationResult.NOT_CONNECTED:
            _log.error("the directory does not know this queue manager: %s", error)
        _log.warning("no directory: running as in a workgroup until the next start")
        self._use(WorkgroupDirectory(self))

    def _start_topology(self) -> None:
        """Without a site there is nothing to be read again in a directory of one's own."""
        sites = self.queue_manager().get("SiteIdentifierList") or ()
        if sites or not self._own:
            self.topology.start(sites)

    def _drop_objects_without_queue(self) -> None:
        """In a directory of its own, an object of an own queue without the queue is what a crash left."""
        for item in self.events.all(ObjectType.QUEUE).result():
            if self._is_own_path(item["Pathname"]) and self._own_queue(item) is None:
                self.events.delete(item)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""
        return earliest(self.events.online.due, self.topology.next_deadline())

    def expire(self, now: float) -> None:
        """Run the directory's timers; the fault of one is not the other's."""
        for timed in (self.events, self.topology):
            try:
                timed.expire(now)
            except Exception as error:
                self._manager.faults.note("deadline of the directory", error)

    # ---- LocalObjects

    @property
    def guid(self) -> UUID:
        return self._manager.guid

    def is_local(self, computer: str) -> bool:
        return self._manager.registry.is_local(computer)

    def queue_manager(self) -> DirectoryObject:
        settings = self._manager.settings
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
        """objectSid of the computer, None where no directory tells it (DM-045)."""
        text = self._learned.get("MachineSid")
        return sid(text) if text and self.events.integrated else None

    def queues(self) -> Iterable[DirectoryObject]:
        kinds = (QueueKind.PUBLIC, QueueKind.PRIVATE)
        return [self.queue_object(queue) for queue in self._manager.registry.local() if queue.kind in kinds]

    def private_path(self, number: int) -> str | None:
        queue = self._manager.registry.by_number(number)
        return None if queue is None else queue.name

    def refresh_queue_manager(self, item: DirectoryObject) -> None:
        self._learned = dict(item.values)
        self._rearranged()

    def refresh_queue(self, item: DirectoryObject) -> None:
        queue = self._own_queue(item)
        if queue is None:
            return
        self._note_paths(queue, item)
        given = properties_of(item)
        changed = {name: value for name, value in given.items() if getattr(queue.properties, name) != value}
        changed.pop("transactional", None)
        security = security_of(item)
        if changed or (security is not None and security != queue.security):
            self._manager.apply_properties(queue, changed, security)

    # ---- own queues

    def _public(self) -> list[Queue]:
        return [queue for queue in self._manager.registry.local() if queue.kind is QueueKind.PUBLIC]

    def _own_queue(self, item: DirectoryObject) -> Queue | None:
        identifier = item.identifier
        return None if identifier is None else self._manager.registry.by_guid(identifier)

    def queue_object(self, queue: Queue) -> DirectoryObject:
        """A queue of this computer as a directory object."""
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
        settings = self._manager.settings
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
        """DM-060: the object of a public queue and the queue, which `join` makes, in one unit (DU-10)."""
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
                    self._manager.undo(queue)

        done.add_done_callback(ended)
        return for_applications(done).then(lambda _: Completion.of(made[0]))

    def _read_paths(self, queue: Queue) -> None:
        """FullPath and DirectoryPath are what the directory made of the name."""
        answer = self.events.read(ObjectType.QUEUE, (equals(IDENTIFIER, queue.guid),))

        def note(answer: Completion[DirectoryObject]) -> None:
            if answer.exception() is None:
                self._note_paths(queue, answer.result())

        answer.add_done_callback(note)

    def _note_paths(self, queue: Queue, item: DirectoryObject) -> None:
        queue.full_path = item.get("FullPath") or ""
        queue.directory_path = item.get("DirectoryPath") or ""

    def delete_queue(self, queue: Queue, join: Callable[[], Completion[None]]) -> Completion[None]:
        """DM-067: the object of a public queue, and `join` with it, in one unit (DU-09).

        A queue that the directory does not know, or that was public before the computer left it, goes alone.
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
        """The properties of a public queue written through, and `join` with them, in one unit (DU-17)."""
        if not self.events.integrated:
            return join()
        assert queue.part is not None  # noqa: S101 - of every queue that is not outgoing
        values = self._described(queue.part, changed, security) | {IDENTIFIER: queue.guid}
        wanted = DirectoryObject(ObjectType.QUEUE, values)
        return for_applications(self.events.write(wanted, (*_PROPERTIES, "Security"), join=lambda _: join()))

    # ---- exchange.Changes: administration

    def create(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[UUID]:
        """Create an object; one of a queue of this computer creates the queue."""
        path = item.get("Pathname")
        if item.kind is not ObjectType.QUEUE or not self._is_own_path(path):
            return self.events.create(item, attributes, join=join)
        made = self._manager.create_queue(
            str(path), guid=item.identifier, security=security_of(item), **properties_of(item)
        )
        return made.then(lambda queue: Completion.of(queue.guid))

    def write(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[None]:
        """Change an object; one of a queue of this computer changes the queue."""
        if item.kind is ObjectType.QUEUE_MANAGER and item.identifier == self.guid:
            return self.events.write(item, attributes, join=join).then(lambda _: self._reread())
        queue = self._named_queue(item)
        if queue is None:
            return self.events.write(item, attributes, join=join)
        given = item.only(attributes)
        values = properties_of(given)
        values.pop("transactional", None)
        return self._manager.set_properties(queue, security=security_of(given), **values)

    def _reread(self) -> Completion[None]:
        """The own QueueManager object was changed by hand."""
        own = self.events.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, self.guid),))

        def take(item: DirectoryObject) -> Completion[None]:
            self.refresh_queue_manager(item)
            self._start_topology()
            return Completion.of(None)

        return own.then(take)

    def delete(self, item: DirectoryObject, *, join: Join | None = None) -> Completion[None]:
        """Delete an object; one of a queue of this computer deletes the queue and its messages."""
        if item.kind is ObjectType.QUEUE_MANAGER and item.identifier == self.guid:
            return failed(generic("this is the running queue manager", item.kind))
        queue = self._named_queue(item)
        if queue is None:
            return self.events.delete(item, join=join)
        return self._manager.delete_queue(queue.name)

    def read(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        *,
        force: bool = False,
    ) -> Completion[DirectoryObject]:
        """Read an object."""
        return self.events.read(kind, conditions, attributes, force=force)

    def _is_own_path(self, path: object) -> bool:
        return isinstance(path, str) and self.is_local(path.partition("\\")[0])

    def _named_queue(self, item: DirectoryObject) -> Queue | None:
        if item.kind is not ObjectType.QUEUE:
            return None
        if item.identifier is not None:
            return self._own_queue(item)
        path = item.get("Pathname")
        if not self._is_own_path(path):
            return None
        return self._manager.registry.by_key(str(path).partition("\\")[2].casefold())

    # ---- names

    def expand(self, text: str) -> str:
        """Expand Format Name. ILLEGAL_FORMATNAME; NO_DS: the directory does not answer at once."""
        return self._at_once(expand_format_name(text, self.events))

    def attach(self, queue: OutgoingQueue) -> None:
        """An outgoing queue exists: it asks here where it leads."""
        queue.locate = lambda name: self.locate(name, queue.manager)
        queue.bring_home = self._homecoming
        if queue.destination.kind is NameKind.PUBLIC:
            found = self._read_public(queue.destination)
            queue.properties.base_priority = 0 if found is None else int(found.get("BasePriority") or 0)
            _, queue.manager = self.locate(queue.destination, queue.manager)

    def check_remote(self, name: FormatName) -> None:
        """Whether a public queue is one of another computer (DM-078).

        UNSUPPORTED_FORMATNAME_OPERATION: the directory does not show it. QUEUE_NOT_FOUND: it would be on
        this computer.
        """
        found = self._read_public(name)
        if found is None:
            raise UnsupportedFormatNameOperation(f"the directory has no queue {name}")
        if self._is_own_path(found.get("Pathname")):
            raise QueueNotFound(f"there is no queue {name}")

    def _read_public(self, name: FormatName) -> DirectoryObject | None:
        assert name.guid is not None  # noqa: S101 - of every public format name
        found = self.events.read(ObjectType.QUEUE, (equals(IDENTIFIER, name.guid),))
        return found.result() if found.done and found.exception() is None else None

    def locate(self, name: FormatName, manager: UUID | None = None) -> tuple[str, UUID | None]:
        """Get Destination Info (MS-MQQB 3.1.7.4) of a name that is not direct: host ("" if unknown) and
        queue manager, which is that of the computer in the queue's path (AMB-55), or `manager` where the
        directory does not show the queue.
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

    # ---- change notifications

    def _announce(self, owner: UUID, notice: Notice) -> None:
        """DS-31: an express message to the owner's notification queue, as any other message."""
        try:
            handle = self._manager.open(f"PRIVATE={owner}\\{NOTIFY_QUEUE:08x}", Access.SEND, internal=True)
            try:
                handle.send(Message(body=encode_notice(notice), time_to_reach_queue=TIME_TO_REACH_S))
            finally:
                handle.close()
        except MSMQError as error:
            _log.warning("the owner %s of a changed object is not told: %s", owner, error)


def security_of(item: DirectoryObject) -> SecurityDescriptor | None:
    """The descriptor of a Queue object; None where it has none that can be read (X-43)."""
    data = item.get("Security")
    if not data:
        return None
    try:
        return SecurityDescriptor.from_bytes(data)
    except SecurityDataError as error:
        _log.error("the directory gives a queue a descriptor that cannot be read: %s", error)
        return None


def properties_of(item: DirectoryObject) -> dict[str, Any]:
    """The queue properties that a Queue object gives."""
    return {own: item.get(name) for name, own in _PROPERTIES.items() if item.get(name) is not None}


def _result(error: Exception | None) -> DirectoryOperationResult | None:
    return error.result if isinstance(error, DirectoryError) else None

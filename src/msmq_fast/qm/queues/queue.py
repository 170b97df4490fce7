"""A queue: identity, properties, state and readers (MS-MQDMPR 3.1.1.2, ST-5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, Protocol
from uuid import UUID

from msmq_fast._native.ledger import Ledger
from msmq_fast._native.queue import QueueCore
from msmq_fast.packet.names import (
    FormatName,
    NameKind,
    PathName,
    QueuePart,
    Scope,
    multicast_group,
    parse_queue_part,
)
from msmq_fast.protocol.errors import IllegalPropertyValue, PropertyError
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.reading.readers import Readers
from msmq_fast.qm.settings import UNLIMITED, quota_bytes
from msmq_fast.security.acl import Acl
from msmq_fast.security.descriptor import SecurityDescriptor

MAX_LABEL = 124
MAX_ABORTS = 0xFFFE
NOBODY = SecurityDescriptor.build(None, None, Acl())  # until a queue gets its own descriptor


class QueueKind(IntEnum):
    """The kinds of queues: QueueType (Q-23), with an additional value for outgoing queues."""

    PUBLIC = 0
    PRIVATE = 1
    SYSTEM = 2
    CONNECTOR = 3
    OUTGOING = 4
    JOURNAL = 5  # of a queue
    SUBQUEUE = 6


class Role(IntEnum):
    """The kinds of queues that the rules for the side effects of a removed message distinguish (DM-203);
    native code uses the same numbers.
    """

    NONE = 0
    DESTINATION = 1
    OUTGOING = 2


_ROLES = {
    QueueKind.PUBLIC: Role.DESTINATION,
    QueueKind.PRIVATE: Role.DESTINATION,
    QueueKind.SUBQUEUE: Role.DESTINATION,
    QueueKind.OUTGOING: Role.OUTGOING,
}


class Privacy(IntEnum):
    """Whether a queue accepts only clear messages, clear and encrypted ones, or only encrypted ones
    (PrivacyLevel, Q-12).
    """

    NONE = 0
    OPTIONAL = 1
    BODY = 2


class QueueState(IntEnum):
    """The states of a queue (ST-5)."""

    EXISTING = 1
    DELETING = 2


@dataclass(slots=True)
class QueueProperties:
    """The properties of a queue that an application can set, Q-01 … Q-16; quotas in KB, times in Unix
    seconds.
    """

    label: str = ""
    type: UUID = UUID(int=0)  # noqa: RUF009 - immutable
    journaling: bool = False
    quota_kb: int = UNLIMITED
    journal_quota_kb: int = UNLIMITED
    authenticated: bool = False
    privacy: Privacy = Privacy.OPTIONAL
    transactional: bool = False
    multicast_address: str = ""
    base_priority: int = 0
    poison_after: int = 0  # aborts after which a message is moved to the subqueue `poison`; 0: never

    @classmethod
    def build(cls, values: dict[str, Any]) -> QueueProperties:
        """Checks the values, and returns the properties.

        Raises PropertyError for an unknown property, IllegalPropertyValue for a value out of range.
        """
        properties = cls()
        properties.update(values)
        return properties

    def update(self, values: dict[str, Any]) -> None:
        """Set some properties, or none if one of them is invalid. Raises what `build` raises."""
        checked = {name: _check(name, value) for name, value in values.items()}
        for name, value in checked.items():
            setattr(self, name, value)


def _check(name: str, value: Any) -> Any:
    match name:
        case "label":
            good = isinstance(value, str) and len(value) <= MAX_LABEL
        case "type":
            good = isinstance(value, UUID)
        case "journaling" | "authenticated" | "transactional":
            good = isinstance(value, bool)
        case "quota_kb" | "journal_quota_kb":
            good = isinstance(value, int) and 0 <= value <= UNLIMITED
        case "privacy":
            good = isinstance(value, int) and value in tuple(Privacy)
            value = Privacy(value) if good else value
        case "multicast_address":
            group = multicast_group(value.strip()) if isinstance(value, str) and value.strip() else ""
            if group is None:
                raise IllegalPropertyValue(
                    f"{value!r} is not a multicast address and port such as 234.1.1.1:8001"
                )
            good, value = isinstance(value, str), group
        case "poison_after":
            good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ABORTS
        case "base_priority":
            good = isinstance(value, int) and -0x8000 <= value <= 0x7FFF
        case _:
            raise PropertyError(f"a queue has no property {name!r}")
    if not good:
        raise IllegalPropertyValue(f"{value!r} is not a valid value for the queue property {name!r}")
    return value


class Descriptor(Protocol):
    """The methods of an open handle (OpenQueueDescriptor) that its queue uses."""

    @property
    def access(self) -> Access:
        """The access mode of the handle."""

    @property
    def share(self) -> Share:
        """The share mode: which other handles the queue may have at the same time."""

    def stands_on(self, key: int) -> bool:
        """Whether one of the handle's cursors is on the message with this key."""

    def orphan(self) -> None:
        """Called when the queue of the handle is deleted."""

    def close(self) -> None:
        """Close the handle and cancel its waiting reads."""


class Queue:
    """One local queue; also the base class of outgoing queues. `core` holds the messages."""

    kind: QueueKind

    def __init__(
        self,
        ledger: Ledger,
        ordinal: int,
        guid: UUID,
        part: QueuePart | None,
        computer: str,
        kind: QueueKind,
        properties: QueueProperties,
        *,
        private_number: int = 0,
        created: int = 0,
        parent: Queue | None = None,
        on_available: Callable[[], None] | None = None,
    ) -> None:
        self.ordinal = ordinal
        self.guid = guid
        self.part = part
        self.computer = computer
        self.kind = kind
        self.properties = properties
        self.private_number = private_number
        self.created = self.modified = created
        self.security = NOBODY  # Q-15; for user queues; other queues follow the queue manager's
        self.state = QueueState.EXISTING
        self.full_path = self.directory_path = ""  # of a public queue
        self.purged_to = 0  # sequence up to which a purge in progress removes stored messages
        self.family: Queue = parent or self  # the queue whose part a subqueue is
        self.subqueues: dict[str, Queue] = {}  # by their names, case-folded
        self.core: QueueCore = QueueCore(
            ledger,
            ordinal,
            quota_bytes(properties.quota_kb),
            kind is QueueKind.OUTGOING,
            None if parent is None else parent.core,
            self._serve,
        )
        if parent is None:
            self.core.poison_after = properties.poison_after
        self.core.role = _ROLES.get(kind, Role.NONE)
        self.core.timeless = kind in (QueueKind.SYSTEM, QueueKind.JOURNAL)
        self.journal: Queue | None = None  # gets received messages while `journaling` is set
        self.readers = Readers(self.core, on_available)
        self.descriptors: list[Descriptor] = []

    def _serve(self) -> None:
        """Deliver messages that have become available to the waiting readers."""
        self.readers.serve()

    @property
    def name(self) -> str:
        """The path name of the queue."""
        return "" if self.part is None else str(PathName(self.computer, self.part))

    @cached_property
    def folded(self) -> str:
        """The path name, case-folded; it never changes."""
        return self.name.casefold()

    @property
    def key(self) -> str:
        """The key of the queue in the registry: the path without the computer, case-folded."""
        return "" if self.part is None else self.part.key

    @property
    def label(self) -> str:
        return self.properties.label

    @property
    def transactional(self) -> bool:
        return self.properties.transactional

    @property
    def active(self) -> bool:
        """Whether a handle has the queue open (Q-20)."""
        return bool(self.descriptors)

    @property
    def messages(self) -> int:
        """Number of messages in the queue, without those that are not durable yet."""
        return self.core.messages

    @property
    def bytes(self) -> int:
        """TotalBytes: the size in bytes of all messages in the queue (Q-21)."""
        return self.core.bytes

    def format_name(self, manager: UUID) -> FormatName:
        """Returns the name that addresses the queue from any computer; `manager` is the GUID of its
        queue manager.
        """
        if self.kind is QueueKind.PUBLIC:
            return FormatName(NameKind.PUBLIC, self.guid)
        return FormatName(NameKind.PRIVATE, manager, self.private_number)

    def set_quota(self) -> None:
        """Apply changed properties or a changed descriptor to the core, the journal and the subqueues."""
        self.core.quota_bytes = quota_bytes(self.properties.quota_kb)
        self.core.poison_after = self.properties.poison_after
        if self.journal is not None:
            self.journal.core.quota_bytes = quota_bytes(self.properties.journal_quota_kb)
            self.journal.security = self.security
            self.core.journal = self.journal.core if self.properties.journaling else None
        for subqueue in self.subqueues.values():
            subqueue.security = self.security
            subqueue.core.journal = self.core.journal

    def record(self) -> dict[str, Any]:
        """Returns the stored record of the queue."""
        properties = asdict(self.properties)
        properties["type"] = self.properties.type.bytes_le
        properties["privacy"] = int(self.properties.privacy)
        return {
            "kind": int(self.kind),
            "guid": self.guid.bytes_le,
            "part": "" if self.part is None else str(self.part),
            "number": self.private_number,
            "created": self.created,
            "modified": self.modified,
            "state": int(self.state),
            "purged_to": self.purged_to,
            "security": self.security.encoded,
            "properties": properties,
        }

    @classmethod
    def load(cls, ledger: Ledger, ordinal: int, record: dict[str, Any], computer: str) -> Queue:
        """Create the queue from a stored record."""
        part = stored_part(record["part"])
        values = dict(record["properties"])
        values["type"] = UUID(bytes_le=values["type"])
        if multicast_group(values["multicast_address"]) is None:
            values["multicast_address"] = ""  # earlier versions kept any text, without a meaning
        # The whole record is checked before the queue takes its ordinal.
        state = QueueState(record["state"])
        modified, purged_to = int(record["modified"]), int(record["purged_to"])
        encoded = record.get("security")  # stores of earlier versions have none
        security = SecurityDescriptor.from_bytes(encoded) if encoded else NOBODY
        queue = cls(
            ledger,
            ordinal,
            UUID(bytes_le=record["guid"]),
            part,
            computer,
            QueueKind(record["kind"]),
            QueueProperties.build(values),
            private_number=record["number"],
            created=record["created"],
        )
        queue.modified, queue.purged_to = modified, purged_to
        queue.security, queue.state = security, state
        return queue


def stored_part(text: str) -> QueuePart:
    """Returns the queue part of a path that a record contains as text. Raises IllegalPropertyValue if it is
    invalid.
    """
    part = parse_queue_part(text)
    if part is None:
        raise IllegalPropertyValue(f"the stored name {text!r} is not a valid queue name")
    return part


def kind_of(part: QueuePart) -> QueueKind:
    """Returns the kind of queue (public, private or system) that follows from the form of the path
    (DM-058).
    """
    return {Scope.PUBLIC: QueueKind.PUBLIC, Scope.PRIVATE: QueueKind.PRIVATE, Scope.SYSTEM: QueueKind.SYSTEM}[
        part.scope
    ]

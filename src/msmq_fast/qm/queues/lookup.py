"""From names to queues: everything by which a local queue can be called is one key (DM-075 … DM-080)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from msmq_fast.packet.errors import (
    IllegalQueuePathName,
    UnsupportedFormatNameOperation,
)
from msmq_fast.packet.fields import DIRECT, PRIVATE_ON_DESTINATION, PRIVATE_ON_OTHER, PUBLIC, direct_text
from msmq_fast.packet.names import (
    DirectName,
    FormatName,
    NameKind,
    QueuePart,
    Scope,
    Suffix,
    direct_format_name,
    direct_queue_key,
    is_format_name,
    parse_format_names,
    parse_path,
)
from msmq_fast.packet.text import quoted
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.settings import QueueManagerSettings


@dataclass(frozen=True, slots=True)
class Target:
    """What a name stands for: a queue of this computer (`key`, GUID or number), or a format name that
    leads elsewhere.
    """

    name: FormatName | None
    key: str = ""
    public: UUID | None = None
    number: int = 0
    journal: bool = False

    @property
    def local(self) -> bool:
        return bool(self.key or self.public is not None or self.number)


class Directory:
    """The queues of this computer by every name."""

    def __init__(self, guid: UUID, settings: QueueManagerSettings) -> None:
        self.guid = guid
        self._computer = settings.computer_name
        self._hosts = settings.local_hosts
        self._by_key: dict[str, Queue] = {}
        self._by_number: dict[int, Queue] = {}
        self._by_guid: dict[UUID, Queue] = {}

    def add(self, queue: Queue) -> None:
        """A queue exists."""
        self._by_key[queue.key] = queue
        if queue.private_number:
            self._by_number[queue.private_number] = queue
        if queue.kind is QueueKind.PUBLIC:
            self._by_guid[queue.guid] = queue

    def remove(self, queue: Queue) -> None:
        """A queue cannot be found any more."""
        if self._by_key.get(queue.key) is queue:
            del self._by_key[queue.key]
        if self._by_number.get(queue.private_number) is queue:
            del self._by_number[queue.private_number]
        if self._by_guid.get(queue.guid) is queue:
            del self._by_guid[queue.guid]

    def queues(self) -> list[Queue]:
        """All of them."""
        return list(self._by_key.values())

    def by_key(self, key: str) -> Queue | None:
        """The queue with a key (QueuePart.key)."""
        return self._by_key.get(key)

    def by_number(self, number: int) -> Queue | None:
        """The private queue with a number."""
        return self._by_number.get(number)

    def by_guid(self, guid: UUID) -> Queue | None:
        """The public queue with a GUID."""
        return self._by_guid.get(guid)

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def is_local(self, host: str) -> bool:
        """Whether a computer name or address means this computer."""
        return host.casefold() in self._hosts

    def learn_host(self, host: str) -> None:
        """A name or address that turned out to mean this computer."""
        self._hosts |= {host.casefold()}

    def part_of_path(self, path: str) -> QueuePart:
        """The local part of a path name.

        ILLEGAL_QUEUE_PATHNAME if it is none or names another computer (DM-055).
        """
        name = parse_path(path, self._computer)
        if not self.is_local(name.computer):
            raise IllegalQueuePathName(f"{quoted(path)} names another computer")
        return name.part

    def resolve(self, text: str) -> Target:
        """What a path or format name stands for.

        ILLEGAL_QUEUE_PATHNAME, ILLEGAL_FORMATNAME: no name. UNSUPPORTED_FORMATNAME_OPERATION: a name for
        which there is no transport.
        """
        if not is_format_name(text):
            path = parse_path(text, self._computer)
            if self.is_local(path.computer):
                return Target(direct_format_name(path), key=path.part.key)
            return Target(direct_format_name(path))
        names = parse_format_names(text)
        if len(names) > 1:
            raise UnsupportedFormatNameOperation("several queues can be opened for sending only")
        return self._resolve(names[0])

    def _resolve(self, name: FormatName) -> Target:
        journal = name.suffix is Suffix.JOURNAL
        match name.kind:
            case NameKind.DIRECT | NameKind.SUBQUEUE if name.direct is not None:
                return self._direct(name, name.direct)
            case NameKind.PRIVATE if name.guid == self.guid:
                return Target(name, number=name.number, journal=journal)
            case NameKind.PUBLIC if name.guid in self._by_guid:
                return Target(name, public=name.guid, journal=journal)
            case NameKind.MACHINE if name.guid == self.guid:
                return Target(name, key=QueuePart(Scope.SYSTEM, name.suffix.name.lower()).key)
            case NameKind.CONNECTOR:
                return Target(name, key=QueuePart(Scope.SYSTEM, str(name)).key)
            case NameKind.PRIVATE | NameKind.PUBLIC | NameKind.MACHINE | NameKind.MULTICAST:
                return Target(name)
        raise UnsupportedFormatNameOperation(f"{name} cannot be reached: there is no such transport")

    def _direct(self, name: FormatName, direct: DirectName) -> Target:
        if direct.protocol in ("HTTP", "HTTPS"):
            return Target(name)
        if direct.protocol not in ("OS", "TCP"):
            raise UnsupportedFormatNameOperation(f"no transport for {name}")
        return Target(name, key=direct.part.key if self.is_local(direct.address) else "")

    def find(self, target: Target) -> Queue | None:
        """The local queue of a target, None if there is none."""
        if target.public is not None:
            found = self._by_guid.get(target.public)
        elif target.number:
            found = self._by_number.get(target.number)
        else:
            found = self._by_part(target.key)
        return found.journal if found is not None and target.journal else found

    def existing(self, key: str) -> Queue:
        """The queue with a key that is surely there."""
        return self._by_key[key]

    def parent(self, target: Target) -> tuple[Queue, str] | None:
        """The queue of a subqueue that may not exist, and the subqueue's name; None for other names."""
        direct = None if target.name is None else target.name.direct
        if not target.key or direct is None or not direct.part.subqueue:
            return None
        queue = self._by_part(replace(direct.part, subqueue="").key)
        return None if queue is None else (queue, direct.part.subqueue)

    def _by_part(self, key: str) -> Queue | None:
        """A workgroup has no directory of public queues, so `host\\q` also means the private queue `q`
        (QB-263).
        """
        return self._by_key.get(key) or self._by_key.get(f"private$\\{key}")

    def find_field(self, kind: int, wire: bytes) -> Queue | None:
        """The local queue that a UserHeader.DestinationQueue of type `kind` means, None if there is none.

        The computer of a direct name is not looked at: the packet is here.
        """
        match kind:
            case _ if kind == DIRECT and len(wire) >= 4:
                return self._by_part(direct_queue_key(direct_text(wire)))
            case _ if kind == PUBLIC and len(wire) == 16:
                return self._by_guid.get(UUID(bytes_le=wire))
            case _ if kind == PRIVATE_ON_DESTINATION and len(wire) == 4:
                return self._by_number.get(int.from_bytes(wire, "little"))
            case _ if kind == PRIVATE_ON_OTHER and len(wire) == 20 and UUID(bytes_le=wire[:16]) == self.guid:
                return self._by_number.get(int.from_bytes(wire[16:], "little"))
        return None

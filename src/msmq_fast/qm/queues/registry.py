"""Finds the queues of a queue manager by name (DM-075 … DM-080) and by ordinal, and keeps sets of the queues
with pending work.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final
from uuid import UUID

from msmq_fast._native.queue import QueueCore
from msmq_fast.packet.fields import DIRECT, PRIVATE_ON_DESTINATION, PRIVATE_ON_OTHER, PUBLIC, direct_text
from msmq_fast.packet.names import (
    DirectName,
    FormatName,
    NameKind,
    PathName,
    QueuePart,
    Scope,
    Suffix,
    direct_format_name,
    direct_queue_key,
    is_format_name,
    parse_format_names,
    parse_path,
)
from msmq_fast.protocol.errors import (
    IllegalQueuePathName,
    QueueNotFound,
    UnsupportedFormatNameOperation,
)
from msmq_fast.protocol.text import printable, quoted
from msmq_fast.qm.ids import QUEUE_BLOCK, Ordinals
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.system import FIRST_FREE_NUMBER, RESERVED_ORDINALS
from msmq_fast.qm.reading.readers import Readers
from msmq_fast.qm.services import Services
from msmq_fast.store.schema import MetaName

MOST_REMOVED: Final = 1000
"""The most removed queues that `QueueRegistry.removed_since` returns."""
_FOLDED = attrgetter("folded")


@dataclass(frozen=True, slots=True)
class Ordered:
    """Queues in the order of their case-folded names, and the core of each."""

    queues: list[Queue]
    cores: list[QueueCore]

    @classmethod
    def of(cls, queues: Iterable[Queue]) -> Ordered:
        """Return the queues in their order."""
        ordered = sorted(queues, key=_FOLDED)
        return cls(ordered, [queue.core for queue in ordered])

    def insert(self, queue: Queue) -> None:
        """Add a queue at its place."""
        place = bisect_left(self.queues, queue.folded, key=_FOLDED)
        self.queues.insert(place, queue)
        self.cores.insert(place, queue.core)

    def remove(self, queue: Queue) -> None:
        """Remove a queue. Raises ValueError if it is not there."""
        place = self.queues.index(queue, bisect_left(self.queues, queue.folded, key=_FOLDED))
        del self.queues[place], self.cores[place]


@dataclass(frozen=True, slots=True)
class Target:
    """The meaning of a queue name: a local queue, given by `key`, by the GUID `public` or by the private
    `number`; or a queue of another computer, given only by its format name.
    """

    name: FormatName | None
    key: str = ""
    public: UUID | None = None
    number: int = 0
    journal: bool = False

    @property
    def local(self) -> bool:
        return bool(self.key or self.public is not None or self.number)


class QueueRegistry:
    """Finds local queues by each of their names, and outgoing queues by destination.

    `waited` has the readers that wait for messages; `purging` the queues whose purge marker is not cleared
    yet; `reaping` the ordinals of deleted queues whose messages are still in the store.

    `version` changes whenever a local queue comes or goes. `removals` counts the local queues that went since
    the start; `last_ordinal` is the highest ordinal of a local queue that was ever registered since then.
    """

    def __init__(self, services: Services) -> None:
        settings = services.settings
        self.guid = services.guid
        self._computer = settings.computer_name
        self._hosts = settings.local_hosts
        self._by_key: dict[str, Queue] = {}
        self._by_number: dict[int, Queue] = {}
        self._by_guid: dict[UUID, Queue] = {}
        self._outgoing: dict[str, OutgoingQueue] = {}
        self._by_ordinal: dict[int, Queue] = {}
        self._ordered: dict[tuple[QueueKind, ...], Ordered] = {}  # by kinds, see `in_order`
        self.waited: set[Readers] = set()
        self.purging: set[Queue] = set()
        self.reaping: set[int] = set()
        records = services.records
        self._ordinals = Ordinals(
            records, MetaName.QUEUE_ORDINAL_HW, first=RESERVED_ORDINALS, block=QUEUE_BLOCK
        )
        self._numbers = Ordinals(
            records, MetaName.PRIVATE_NUMBER_HW, first=FIRST_FREE_NUMBER, block=QUEUE_BLOCK
        )
        self._handles = 0
        self._cursors = 0
        self.version = 0
        self.removals = 0
        self.last_ordinal = 0
        self._removed: deque[Queue] = deque(maxlen=MOST_REMOVED)

    # ---- numbers

    def reserve(self) -> None:
        """Reserve the first blocks of ordinals and private numbers, at start and inside a unit (DU-18)."""
        self._ordinals.reserve()
        self._numbers.reserve()

    def counters(self) -> dict[bytes, int]:
        """Returns the last assigned queue ordinal and private queue number: key in META → number."""
        return {
            MetaName.QUEUE_ORDINAL_HW: self._ordinals.last,
            MetaName.PRIVATE_NUMBER_HW: self._numbers.last,
        }

    def new_ordinal(self) -> int:
        """Returns a new queue ordinal, which is never reused. Raises INSUFFICIENT_RESOURCES if no reserved
        ordinal is left.
        """
        return self._ordinals.take()

    def new_number(self) -> int:
        """Returns a new private queue number, which is never reused (DM-059)."""
        return self._numbers.take()

    def new_handle(self) -> int:
        """Returns a new, unique number for a descriptor."""
        self._handles += 1
        return self._handles

    def new_cursor(self) -> int:
        """Returns a new, unique number for a cursor of a local or remote queue."""
        self._cursors += 1
        return self._cursors

    # ---- queues come and go

    def add(self, queue: Queue) -> None:
        """Register a local queue, and its journal if it has one."""
        known = self._by_key.get(queue.key)
        if known is not queue:
            if known is not None:
                self._leave_order(known)
            for kinds, ordered in self._ordered.items():
                if queue.kind in kinds:
                    ordered.insert(queue)
        self.version += 1
        self.last_ordinal = max(self.last_ordinal, queue.ordinal)
        self._by_key[queue.key] = queue
        self._by_ordinal[queue.ordinal] = queue
        if queue.private_number:
            self._by_number[queue.private_number] = queue
        if queue.kind is QueueKind.PUBLIC:
            self._by_guid[queue.guid] = queue
        queue.readers.join(self.waited)
        if queue.journal is not None:
            self.add(queue.journal)

    def remove(self, queue: Queue) -> None:
        """Remove a local queue from the registry; no name finds it afterwards."""
        if self._by_key.get(queue.key) is queue:
            del self._by_key[queue.key]
            self._leave_order(queue)
            self.removals += 1
            self._removed.append(queue)
        self.version += 1
        if self._by_ordinal.get(queue.ordinal) is queue:
            del self._by_ordinal[queue.ordinal]
        if self._by_number.get(queue.private_number) is queue:
            del self._by_number[queue.private_number]
        if self._by_guid.get(queue.guid) is queue:
            del self._by_guid[queue.guid]

    def _leave_order(self, queue: Queue) -> None:
        for kinds, ordered in self._ordered.items():
            if queue.kind in kinds:
                ordered.remove(queue)

    def removed_since(self, removals: int) -> list[Queue]:
        """Returns the local queues that were removed since the counter `removals` had this value, the latest
        MOST_REMOVED at most.
        """
        count = min(max(self.removals - removals, 0), len(self._removed))
        return list(self._removed)[len(self._removed) - count :]

    def add_outgoing(self, queue: OutgoingQueue) -> None:
        """Register an outgoing queue."""
        self._outgoing[queue.key] = queue
        self._by_ordinal[queue.ordinal] = queue
        queue.readers.join(self.waited)

    def remove_outgoing(self, queue: OutgoingQueue) -> None:
        """Remove an outgoing queue, if it is registered."""
        if self._outgoing.get(queue.key) is queue:
            del self._outgoing[queue.key]
        if self._by_ordinal.get(queue.ordinal) is queue:
            del self._by_ordinal[queue.ordinal]
        self.waited.discard(queue.readers)

    # ---- queues by what names them

    def queues(self) -> Iterator[Queue]:
        """All queues, the outgoing ones last; see `Queue.kind`."""
        yield from self.local()
        yield from self._outgoing.values()

    def in_order(self, kinds: tuple[QueueKind, ...]) -> Ordered:
        """Return the queues of some kinds, ordered by their case-folded names. The first call sorts them;
        then the order of local queues is kept while they come and go. Use the result before the next change.
        """
        if QueueKind.OUTGOING in kinds:
            return Ordered.of(queue for queue in self.queues() if queue.kind in kinds)
        ordered = self._ordered.get(kinds)
        if ordered is None:
            ordered = Ordered.of(queue for queue in self.local() if queue.kind in kinds)
            self._ordered[kinds] = ordered
        return ordered

    def outgoing(self) -> Collection[OutgoingQueue]:
        """The outgoing queues."""
        return self._outgoing.values()

    def outgoing_of(self, name: FormatName | None) -> OutgoingQueue | None:
        """Returns the outgoing queue of a destination; None if there is none."""
        return None if name is None else self._outgoing.get(name.key)

    def by_ordinal(self, ordinal: int) -> Queue | None:
        """Returns the local or outgoing queue with an ordinal; None if there is none."""
        return self._by_ordinal.get(ordinal)

    def named(self, name: str) -> Queue:
        """Returns the local or outgoing queue with a path or format name.

        Raises QUEUE_NOT_FOUND, and what `resolve` raises.
        """
        target = self.resolve(name)
        queue = self.find(target) if target.local else self.outgoing_of(target.name)
        if queue is None:
            raise QueueNotFound(f"there is no queue {printable(name)}")
        return queue

    def local(self) -> list[Queue]:
        """Returns all local queues."""
        return list(self._by_key.values())

    def by_key(self, key: str) -> Queue | None:
        """Returns the local queue with a key (QueuePart.key); None if there is none."""
        return self._by_key.get(key)

    def by_number(self, number: int) -> Queue | None:
        """Returns the private queue with a number; None if there is none."""
        return self._by_number.get(number)

    def by_guid(self, guid: UUID) -> Queue | None:
        """Returns the public queue with a GUID; None if there is none."""
        return self._by_guid.get(guid)

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def is_local(self, host: str) -> bool:
        """Whether a computer name or address denotes this computer."""
        return host.casefold() in self._hosts

    def learn_host(self, host: str) -> None:
        """Add a name or address that was found to denote this computer."""
        self._hosts |= {host.casefold()}

    def path_of(self, part: QueuePart) -> str:
        """Return the path of a queue of this computer."""
        return str(PathName(self._computer, part))

    def part_of_path(self, path: str) -> QueuePart:
        """Returns the local part of a path name.

        Raises ILLEGAL_QUEUE_PATHNAME if the path is invalid or names another computer (DM-055).
        """
        name = parse_path(path, self._computer)
        if not self.is_local(name.computer):
            raise IllegalQueuePathName(f"{quoted(path)} names another computer")
        return name.part

    def resolve(self, text: str) -> Target:
        """Returns the target of a path or format name.

        Raises ILLEGAL_QUEUE_PATHNAME or ILLEGAL_FORMATNAME if the text is not a valid name,
        UNSUPPORTED_FORMATNAME_OPERATION if there is no transport for the name.
        """
        if not is_format_name(text):
            path = parse_path(text, self._computer)
            if self.is_local(path.computer):
                return Target(direct_format_name(path), key=path.part.key)
            return Target(direct_format_name(path))
        names = parse_format_names(text)
        if len(names) > 1:
            raise UnsupportedFormatNameOperation(
                "a name that denotes several queues can only be opened for sending"
            )
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
        raise UnsupportedFormatNameOperation(
            f"{name} cannot be reached: no transport of this server can send to it"
        )

    def _direct(self, name: FormatName, direct: DirectName) -> Target:
        if direct.protocol in ("HTTP", "HTTPS"):
            return Target(name)
        if direct.protocol not in ("OS", "TCP"):
            raise UnsupportedFormatNameOperation(
                f"{name} cannot be reached: this server has no transport for its protocol"
            )
        return Target(name, key=direct.part.key if self.is_local(direct.address) else "")

    def find(self, target: Target) -> Queue | None:
        """Returns the local queue that a target denotes; None if there is none."""
        if target.public is not None:
            found = self._by_guid.get(target.public)
        elif target.number:
            found = self._by_number.get(target.number)
        else:
            found = self._by_part(target.key)
        return found.journal if found is not None and target.journal else found

    def existing(self, key: str) -> Queue:
        """Returns the local queue with a key. Raises KeyError if there is none."""
        return self._by_key[key]

    def parent(self, target: Target) -> tuple[Queue, str] | None:
        """Returns (parent queue, name of the subqueue) if a target denotes a subqueue, which need not exist;
        None for other targets.
        """
        direct = None if target.name is None else target.name.direct
        if not target.key or direct is None or not direct.part.subqueue:
            return None
        queue = self._by_part(replace(direct.part, subqueue="").key)
        return None if queue is None else (queue, direct.part.subqueue)

    def _by_part(self, key: str) -> Queue | None:
        """Returns the queue with a key; if there is none, the private queue of that name.

        A workgroup has no directory of public queues, so `host\\q` also denotes the private queue `q`
        (QB-263).
        """
        return self._by_key.get(key) or self._by_key.get(f"private$\\{key}")

    def find_field(self, kind: int, wire: bytes) -> Queue | None:
        """Returns the local queue that a UserHeader.DestinationQueue of type `kind` denotes; None if there is
        none.

        The computer in a direct name is ignored, since the packet has arrived here.
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

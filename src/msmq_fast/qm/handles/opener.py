"""Opening queues by name (DM-069 … DM-087)."""

from __future__ import annotations

from msmq_fast.packet.names import FormatName
from msmq_fast.protocol.errors import QueueNotFound, SharingViolation, UnsupportedAccessMode
from msmq_fast.protocol.text import printable
from msmq_fast.qm.access import Access, Share, excludes
from msmq_fast.qm.handles.handle import HandleServices, OpenQueue
from msmq_fast.qm.outgoing.destinations import Destinations
from msmq_fast.qm.outgoing.queues import OutgoingQueues
from msmq_fast.qm.queues.directoryclient import DirectoryClient
from msmq_fast.qm.queues.guard import Guard
from msmq_fast.qm.queues.opening import check_name
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.registry import Target
from msmq_fast.qm.queues.system import INTERNAL_KEYS
from msmq_fast.security.token import Token

_MOVABLE = (QueueKind.PUBLIC, QueueKind.PRIVATE, QueueKind.SUBQUEUE)


class Opener:
    """Opens queues by name for a QueueManager."""

    def __init__(
        self,
        parts: HandleServices,
        guard: Guard,
        directory: DirectoryClient,
        outgoing: OutgoingQueues,
        destinations: Destinations,
    ) -> None:
        self._parts = parts
        self._services = parts.services
        self._registry = parts.registry
        self._guard = guard
        self._directory = directory
        self._outgoing = outgoing
        self._destinations = destinations

    def open(
        self,
        name: str,
        access: Access,
        share: Share = Share.DENY_NONE,
        *,
        internal: bool = False,
        token: Token | None = None,
    ) -> OpenQueue:
        """Open a queue (DM-069 … DM-086).

        A queue of another computer can be opened for sending; the handle then sends to an outgoing queue.
        With `internal`, queues that applications cannot open can be opened, too; `token` is the caller, None
        for the queue manager itself. Raises QUEUE_NOT_FOUND, SHARING_VIOLATION, ACCESS_DENIED,
        UNSUPPORTED_ACCESS_MODE, UNSUPPORTED_FORMATNAME_OPERATION, and what QueueRegistry.resolve raises.
        """
        self._services.require_ready()
        if access is Access.SEND and share is not Share.DENY_NONE:
            raise UnsupportedAccessMode("opening a queue for sending requires share mode DENY_NONE")
        if name[:3].upper() == "DL=":
            name = self._directory.expand(name)
        target = self._registry.resolve(name)
        queue = self._queue_to_open(target, name, access, token)
        if isinstance(queue, OutgoingQueue) and access is Access.SEND:
            self._outgoing.claimed(queue)
        if queue.key in INTERNAL_KEYS and not internal:
            raise UnsupportedAccessMode("only the queue manager itself can open this queue")
        if access is Access.SEND and queue.kind is QueueKind.SUBQUEUE:
            raise UnsupportedAccessMode("a subqueue cannot be sent to")
        if access is Access.SEND and queue.kind is QueueKind.SYSTEM and not internal:
            raise UnsupportedAccessMode("a system queue cannot be sent to")
        if access is Access.SEND and queue.kind is QueueKind.JOURNAL:
            raise UnsupportedAccessMode("a journal cannot be sent to")
        if access is Access.MOVE and queue.kind not in _MOVABLE:
            raise UnsupportedAccessMode("messages can only be moved between a queue and its subqueues")
        self._guard.open(token, queue, access)
        for existing in queue.descriptors:
            if excludes(existing.access, existing.share, access, share):
                raise SharingViolation(
                    f"{queue.name} is open with an access or share mode that excludes this one"
                )
        format_name = target.name if target.name is not None else queue.format_name(self._services.guid)
        number = self._registry.new_handle()
        handle = OpenQueue(self._parts, queue, access, share, format_name, number, token)
        queue.descriptors.append(handle)
        return handle

    def _new_subqueue(self, target: Target, access: Access, token: Token | None) -> Queue | None:
        """Create a subqueue that is opened for the first time, if the caller may open its parent queue
        (DM-087).

        Returns None if the name does not denote a subqueue of an existing queue.
        """
        found = self._registry.parent(target)
        if found is None:
            return None
        if access is Access.SEND:
            raise UnsupportedAccessMode("a subqueue cannot be sent to")
        parent, subqueue = found
        self._guard.open(token, parent, access)
        return self._parts.subqueues.make(parent, subqueue)

    def _queue_to_open(self, target: Target, name: str, access: Access, token: Token | None) -> Queue:
        if access.admin:
            outgoing = self._outgoing.find(target.name)
            if outgoing is not None:
                return outgoing
        if target.name is not None:
            check_name(target.name, access, self._services.settings)
        if access.admin:
            raise QueueNotFound(f"there is no outgoing queue to {name}")
        if target.local:
            queue = self._destinations.local(target) or self._new_subqueue(target, access, token)
            if queue is None:
                raise QueueNotFound(f"there is no queue {printable(name)}")
            return queue
        if access is not Access.SEND:
            raise QueueNotFound(f"{name} is not on this computer: it can be opened for sending only")
        return self._destinations.elsewhere(target, name)

    def is_local(self, name: str) -> bool:
        """Whether a name denotes a queue of this computer, which need not exist. Raises what
        QueueRegistry.resolve raises.
        """
        return self._registry.resolve(name).local

    def elsewhere(self, name: str) -> FormatName | None:
        """Returns the format name with which a queue of another computer is opened for reading; None if
        `name` denotes a local queue or a distribution list.

        Raises what QueueRegistry.resolve raises, and UNSUPPORTED_FORMATNAME_OPERATION if the queue cannot be
        read.
        """
        if name[:3].upper() == "DL=":
            return None
        target = self._registry.resolve(name)
        if target.local or target.name is None:
            return None
        check_name(target.name, Access.RECEIVE, self._services.settings)
        return target.name

    def dead_letter_queue(self, name: str, token: Token | None) -> int:
        """Returns the ordinal of a dead-letter queue that the sender `token` chose by `name`, for
        `send_packets` (M-04).

        0 if this computer has no such application queue. Raises ACCESS_DENIED if `token` may not send to it,
        and ILLEGAL_… if `name` is not a valid queue name.
        """
        target = self._registry.resolve(name)
        queue = self._registry.find(target) if target.local else None
        if queue is None or queue.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE):
            return 0
        self._guard.open(token, queue, Access.SEND)
        return queue.ordinal

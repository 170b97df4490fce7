"""Opening queues by name (DM-069 … DM-087)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmq_fast.packet.errors import (
    InsufficientResources,
    QueueNotFound,
    SharingViolation,
    UnsupportedAccessMode,
    UnsupportedFormatNameOperation,
)
from msmq_fast.packet.names import FormatName, NameKind
from msmq_fast.packet.text import printable
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.queues.access import Access, Share, excludes
from msmq_fast.qm.queues.opening import check_name
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.registry import Target
from msmq_fast.qm.queues.system import INTERNAL_KEYS
from msmq_fast.security.token import Token

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager

_MOVABLE = (QueueKind.PUBLIC, QueueKind.PRIVATE, QueueKind.SUBQUEUE)


class Opener:
    """How a QueueManager opens queues by name."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager

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

        A queue of another computer can be opened for sending: an outgoing queue takes the messages.
        `internal` opens queues that applications cannot; `token` is who asks, None for the queue manager
        itself. Raises QUEUE_NOT_FOUND, SHARING_VIOLATION, ACCESS_DENIED, UNSUPPORTED_ACCESS_MODE,
        UNSUPPORTED_FORMATNAME_OPERATION, and what QueueRegistry.resolve raises.
        """
        self._manager.serving()
        if access is Access.SEND and share is not Share.DENY_NONE:
            raise UnsupportedAccessMode("a queue is opened for sending with share mode DENY_NONE only")
        if name[:3].upper() == "DL=":
            name = self._manager.publication.expand(name)
        target = self._manager.registry.resolve(name)
        queue = self._queue_to_open(target, name, access, token)
        if isinstance(queue, OutgoingQueue) and access is Access.SEND:
            self._manager.answer_queues.claim(queue)
        if queue.key in INTERNAL_KEYS and not internal:
            raise UnsupportedAccessMode("the queue is internal")
        if access is Access.SEND and queue.kind is QueueKind.SUBQUEUE:
            raise UnsupportedAccessMode("nothing is sent to a subqueue")
        if access is Access.SEND and queue.kind is QueueKind.SYSTEM and not internal:
            raise UnsupportedAccessMode("nothing is sent to a system queue")
        if access is Access.SEND and queue.kind is QueueKind.JOURNAL:
            raise UnsupportedAccessMode("nothing is sent to a journal")
        if access is Access.MOVE and queue.kind not in _MOVABLE:
            raise UnsupportedAccessMode("messages are moved between a queue and its subqueues only")
        self._manager.guard.open(token, queue, access)
        for existing in queue.descriptors:
            if excludes(existing.access, existing.share, access, share):
                raise SharingViolation(f"{queue.name} is open in a mode that excludes this one")
        format_name = target.name if target.name is not None else queue.format_name(self._manager.guid)
        handle = OpenQueue(
            self._manager, queue, access, share, format_name, self._manager.registry.new_handle()
        )
        queue.descriptors.append(handle)
        return handle

    def _new_subqueue(self, target: Target, access: Access, token: Token | None) -> Queue | None:
        """DM-087: opening a subqueue creates it, for those who may open its queue. So does opening a
        connector queue.
        """
        if target.name is not None and target.name.kind is NameKind.CONNECTOR:
            return self._manager.connectors.named(target.name)
        found = self._manager.registry.parent(target)
        if found is None:
            return None
        if access is Access.SEND:
            raise UnsupportedAccessMode("nothing is sent to a subqueue")
        parent, subqueue = found
        self._manager.guard.open(token, parent, access)
        return self._manager.subqueues.make(parent, subqueue)

    def _queue_to_open(
        self, target: Target, name: str, access: Access, token: Token | None, answers_for: str = ""
    ) -> Queue:
        if access.admin:
            outgoing = self._manager.outgoing_of(target.name)
            if outgoing is not None:
                return outgoing
        if target.name is not None:
            check_name(target.name, access, self._manager.settings)
        if access.admin:
            raise QueueNotFound(f"there is no outgoing queue to {name}")
        if target.local:
            queue = self._manager.registry.find(target) or self._new_subqueue(target, access, token)
            if queue is None:
                raise QueueNotFound(f"there is no queue {printable(name)}")
            return queue
        if access is not Access.SEND:
            raise QueueNotFound(f"{name} is not on this computer")
        if target.name is None or target.name.read_only or target.name.kind is NameKind.SUBQUEUE:
            raise UnsupportedFormatNameOperation(f"{name} cannot be sent to")
        outgoing = self._manager.outgoing_of(target.name)
        if outgoing is None and target.name.kind is NameKind.PUBLIC:
            self._manager.publication.check_remote(target.name)
        if answers_for:
            outgoing = self._manager.answer_queues.open(target.name, answers_for)
            if outgoing is None:
                raise InsufficientResources("as many outgoing queues as acknowledgments may have")
        return outgoing or self._manager.outgoing_to(target.name)

    def elsewhere(self, name: str) -> FormatName | None:
        """The format name of a queue that another computer has, to be read; None for other names and lists.

        Raises what QueueRegistry.resolve raises, UNSUPPORTED_FORMATNAME_OPERATION where nothing can be read.
        """
        if name[:3].upper() == "DL=":
            return None
        target = self._manager.registry.resolve(name)
        if target.local or target.name is None:
            return None
        check_name(target.name, Access.RECEIVE, self._manager.settings)
        return target.name

    def queue_for(self, name: FormatName, answers_for: str = "") -> Queue:
        """Where the queue manager's own messages for a queue go: a local queue of programs or an outgoing
        queue, in the budget of the address group that they answer to, if there is one.

        Raises QUEUE_NOT_FOUND, INSUFFICIENT_RESOURCES where it would be one outgoing queue too many, and what
        QueueRegistry.resolve raises.
        """
        target = self._manager.registry.resolve(str(name))
        queue = self._queue_to_open(target, str(name), Access.SEND, None, answers_for)
        if queue.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE, QueueKind.OUTGOING):
            raise QueueNotFound(f"nothing is sent to {name}")
        return queue

    def dead_letter_queue(self, name: str, token: Token | None) -> int:
        """For the queue that `token` chose for messages that fail (M-04): what send_packets takes, 0 if there
        is no such queue of programs here.

        ACCESS_DENIED: `token` may not send to it; ILLEGAL_…: it is no name.
        """
        target = self._manager.registry.resolve(name)
        queue = self._manager.registry.find(target) if target.local else None
        if queue is None or queue.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE):
            return 0
        self._manager.guard.open(token, queue, Access.SEND)
        return queue.ordinal

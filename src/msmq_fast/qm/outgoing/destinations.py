"""Finds the queue for messages to a name: a local queue, or an outgoing queue, which is created if it does
not exist.
"""

from __future__ import annotations

from msmq_fast.packet.names import FormatName, NameKind
from msmq_fast.protocol.errors import (
    InsufficientResources,
    QueueNotFound,
    UnsupportedFormatNameOperation,
)
from msmq_fast.protocol.text import printable
from msmq_fast.qm.access import Access
from msmq_fast.qm.outgoing.answers import AnswerQueues
from msmq_fast.qm.outgoing.queues import OutgoingQueues
from msmq_fast.qm.queues.connector import Connectors
from msmq_fast.qm.queues.directoryclient import DirectoryClient
from msmq_fast.qm.queues.opening import check_name
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.registry import QueueRegistry, Target
from msmq_fast.qm.services import Services

__all__ = ["Destinations"]


class Destinations:
    """Resolves names that messages are sent to."""

    def __init__(
        self,
        services: Services,
        registry: QueueRegistry,
        outgoing: OutgoingQueues,
        answers: AnswerQueues,
        directory: DirectoryClient,
        connectors: Connectors,
    ) -> None:
        self._services = services
        self._registry = registry
        self._outgoing = outgoing
        self._answers = answers
        self._directory = directory
        self._connectors = connectors

    def local(self, target: Target) -> Queue | None:
        """Returns the local queue that a name denotes, including connector queues; None if there is none.

        Raises QUEUE_NOT_FOUND for a connector queue of a site that this computer does not serve.
        """
        found = self._registry.find(target)
        if found is None and target.name is not None and target.name.kind is NameKind.CONNECTOR:
            return self._connectors.named(target.name)
        return found

    def elsewhere(self, target: Target, name: str, answers_for: str = "") -> OutgoingQueue:
        """Returns the outgoing queue for a name of another computer, and creates it if it does not exist.

        `answers_for`, if given, is the address group whose peers caused the answer: the queue then counts in
        the budget of this group. Raises UNSUPPORTED_FORMATNAME_OPERATION if the name cannot be sent to;
        INSUFFICIENT_RESOURCES at the limit of outgoing queues; QUEUE_NOT_FOUND if
        `DirectoryClient.check_remote` raises it.
        """
        if target.name is None or target.name.read_only or target.name.kind is NameKind.SUBQUEUE:
            raise UnsupportedFormatNameOperation(f"{name} cannot be sent to")
        outgoing = self._outgoing.find(target.name)
        if outgoing is None and target.name.kind is NameKind.PUBLIC:
            self._directory.check_remote(target.name)
        if answers_for:
            outgoing = self._answers.open(target.name, answers_for)
            if outgoing is None:
                raise InsufficientResources("the limit of outgoing queues for acknowledgments is reached")
        return outgoing or self._outgoing.to(target.name)

    def of_answer(self, name: FormatName, answers_for: str = "") -> Queue:
        """Returns the queue for an acknowledgment that this queue manager sends to `name`: a local
        application queue or an outgoing queue, see `elsewhere`.

        Raises QUEUE_NOT_FOUND, what `elsewhere` raises, and what QueueRegistry.resolve raises.
        """
        target = self._registry.resolve(str(name))
        if target.name is not None:
            check_name(target.name, Access.SEND, self._services.settings)
        if not target.local:
            return self.elsewhere(target, str(name), answers_for)
        queue = self.local(target)
        if queue is None:
            raise QueueNotFound(f"there is no queue {printable(str(name))}")
        if queue.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE):
            raise QueueNotFound(f"{name} cannot be sent to")
        return queue

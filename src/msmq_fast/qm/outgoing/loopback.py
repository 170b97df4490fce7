"""Delivers messages of outgoing queues on this computer.

These are messages that were sent to a name of this computer that the queue manager did not know as such, and
messages for a foreign system for which this computer is the connector.
"""

from __future__ import annotations

import logging

from msmq_fast._native.framing import parse
from msmq_fast._native.operations import is_transactional, withdraw
from msmq_fast._native.outbound import give_up
from msmq_fast._native.positions import PositionState
from msmq_fast._native.queue import TAKEN
from msmq_fast._native.queuebase import Received
from msmq_fast.packet.fields import DIRECT, direct_wire
from msmq_fast.packet.protect import unclaimed
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.qm.queues.browse import Page, Selection, Stretch, browse
from msmq_fast.qm.queues.connector import Connectors
from msmq_fast.qm.queues.guard import Guard
from msmq_fast.qm.queues.incoming import IncomingProtocols
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.protection import demands
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.services import Services
from msmq_fast.store.schema import EventKind

_AVAILABLE = int(PositionState.STATE_AVAILABLE)

_log = logging.getLogger(__name__)


class LoopbackDelivery:
    """Moves the messages of outgoing queues whose next hop is this computer to a local queue, in batches.

    From then on the computer name in the outgoing queue's name counts as a name of this computer: opening the
    name again opens the local queue. Messages that no local queue accepts stay in the outgoing queue until a
    local queue accepts them or they expire. The name must not circumvent the local queue's restrictions: the
    messages are checked as if they came from another computer, and a refused message goes to a dead-letter
    queue if it requests that.
    """

    def __init__(
        self,
        services: Services,
        registry: QueueRegistry,
        connectors: Connectors,
        guard: Guard,
        incoming: IncomingProtocols,
    ) -> None:
        self._services = services
        self._registry = registry
        self._connectors = connectors
        self._guard = guard
        self._incoming = incoming
        self._moving: set[OutgoingQueue] = set()
        self._stuck: set[OutgoingQueue] = set()  # nothing of the last batch was taken

    def __call__(self, queue: OutgoingQueue) -> bool:
        """Starts to move the next messages of an outgoing queue to a local queue, and returns True; returns
        False if no local queue accepts them.
        """
        if queue in self._stuck:
            self._stuck.discard(queue)
            return False
        targets = self._connector(queue) if queue.destination.direct is None else self._alias(queue)
        if not targets:
            return False
        if queue not in self._moving:
            self._moving.add(queue)
            page = browse(queue.core, Stretch(Selection()))
            page.add_done_callback(lambda page: self._move(queue, targets, page.result()))
        return True

    def _connector(self, queue: OutgoingQueue) -> list[Queue]:
        site = self._connectors.site_of(queue.manager)
        if site is None:
            return []
        return [self._connectors.queue(site, transactional=kind) for kind in (False, True)]

    def _alias(self, queue: OutgoingQueue) -> list[Queue]:
        direct = queue.destination.direct
        target = self._registry.find_field(DIRECT, direct_wire(queue.destination.text))
        if direct is None or target is None or target.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE):
            return []
        if not self._registry.is_local(direct.address):
            _log.info("%s is this computer", direct.address)
            self._registry.learn_host(direct.address)
        return [target]

    def _move(self, queue: OutgoingQueue, targets: list[Queue], page: Page) -> None:
        self._moving.discard(queue)
        moved = 0
        for target in targets:
            for message in page.messages:
                # Its time may have been over, or the queue purged, while its packet was read.
                available = queue.core.positions.state(message.lookup_id) == _AVAILABLE
                if not available or is_transactional(message.packet) != target.transactional:
                    continue
                try:
                    taken = self._hand_over(queue, target, message)
                except Exception as error:
                    self._services.faults.note("a message for this computer", error)
                    taken = False
                if taken:
                    moved += 1
                elif target.transactional:
                    break  # nothing passes it
        if not moved:
            self._stuck.add(queue)

    def _hand_over(self, queue: OutgoingQueue, target: Queue, message: Received) -> bool:
        """Move or refuse one message in one unit; returns False if the message stays in the outgoing
        queue.
        """
        kept = self._judged(target, message.packet)
        if not isinstance(kept, bytes):
            give_up(queue.core, message.lookup_id, kept)
            return True
        with self._services.store.writer.unit():
            (result,), _ = target.core.enqueue_packets([kept])
            if result in TAKEN:
                withdraw(queue.core, [message.lookup_id], EventKind.MOVED)
        return result in TAKEN

    def _judged(self, target: Queue, packet: bytes) -> bytes | MessageClass:
        """Returns the packet to store in the queue `target`, or the message class of the refusal. Every
        sender may send to a connector queue.
        """
        message = parse(packet)
        if target.kind is QueueKind.CONNECTOR:
            return unclaimed(message)
        kept = self._incoming.judge(target, packet)
        if kept is not None:
            return kept
        if demands(target) or not self._guard.open_to_everybody(target):
            return MessageClass.NACK_ACCESS_DENIED
        return unclaimed(message)

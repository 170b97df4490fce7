"""From the store to a running queue manager: REC-02 … REC-10."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmq_fast._native.queue import Loader
from msmq_fast.packet.errors import MSMQError
from msmq_fast.qm.queues.connector import ConnectorQueue
from msmq_fast.qm.queues.journal import JournalQueue
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import NOBODY, Queue, QueueKind, QueueProperties, QueueState, stored_part
from msmq_fast.qm.queues.system import DEADLETTER, DEADXACT, JOURNAL, SYSTEM_QUEUES, SystemQueue
from msmq_fast.qm.settings import UNLIMITED
from msmq_fast.store.schema import MetaName

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager


def recover(manager: QueueManager) -> None:
    """Rebuild everything that was durable; what is written joins the current batch.

    Running it again after a crash at any point gives the same result: it only reserves numbers and adds
    what is missing.
    """
    deleting, silent = _load_queues(manager)
    manager.streams.load()
    transactions = manager.transactions.load()
    _load_positions(manager, deleting, silent, transactions.held)
    manager.transactions.recover(transactions)
    manager.leases.recover()
    manager.staging.recover()
    _system_queues(manager)


def _load_queues(manager: QueueManager) -> tuple[set[int], set[int]]:
    """REC-03; queues that were being deleted are not loaded, so that their positions are doomed (DU-09).

    Returns their ordinals, and those of journals: what was in them is not deleted for anybody to know.
    """
    system = {queue.ordinal for queue in SYSTEM_QUEUES}
    deleting: set[int] = set()
    silent: set[int] = set()
    loaded: dict[int, Queue] = {}
    for ordinal, record in manager.records.queues(manager.set_aside):
        try:
            if record["kind"] == QueueKind.JOURNAL:
                silent.add(ordinal)
            if record["state"] == QueueState.DELETING:
                deleting.add(ordinal)
            elif record["kind"] == QueueKind.SUBQUEUE:
                _load_subqueue(manager, ordinal, record, loaded.get(record["parent"]), deleting)
            elif record["kind"] == QueueKind.JOURNAL:
                _load_journal(manager, ordinal, record, loaded.get(record["parent"]), deleting)
            elif record["kind"] == QueueKind.OUTGOING:
                manager.outgoing_queues.add(_load_outgoing(manager, ordinal, record))
            elif record["kind"] == QueueKind.CONNECTOR:
                manager.registry.add(ConnectorQueue.load_connector(manager.ledger, ordinal, record))
            elif ordinal in system or record["kind"] != QueueKind.SYSTEM:
                loaded[ordinal] = load_local(manager, ordinal, record)
                manager.registry.add(loaded[ordinal])
        except (KeyError, TypeError, ValueError, AttributeError, MSMQError) as error:
            manager.set_aside("queue", f"the record of queue {ordinal} is damaged: {error!r}")
    manager.registry.reaping.update(deleting)
    return deleting, silent


def _load_subqueue(
    manager: QueueManager, ordinal: int, record: dict[str, Any], parent: Queue | None, deleting: set[int]
) -> None:
    """Its queue was loaded before, having a lower ordinal; if that was being deleted, it goes with it."""
    if parent is None:
        deleting.add(ordinal)
    else:
        manager.subqueues.load(ordinal, record, parent)


def _load_journal(
    manager: QueueManager, ordinal: int, record: dict[str, Any], parent: Queue | None, deleting: set[int]
) -> None:
    """As with subqueues."""
    if parent is None:
        deleting.add(ordinal)
    else:
        manager.registry.add(JournalQueue.load_journal(manager.ledger, ordinal, record, parent))


def _load_outgoing(manager: QueueManager, ordinal: int, record: dict[str, Any]) -> OutgoingQueue:
    return OutgoingQueue.load_outgoing(
        manager.ledger, ordinal, record, manager.settings.history_length, manager.outgoing_queues
    )


def load_local(manager: QueueManager, ordinal: int, record: dict[str, Any]) -> Queue:
    """A queue of this computer."""
    stored_part(record["part"])
    queue = Queue.load(manager.ledger, ordinal, record, manager.settings.computer_name)
    if queue.security is NOBODY and queue.kind is not QueueKind.SYSTEM:
        queue.security = manager.guard.new_descriptor(None, None)
    return queue


def _load_positions(
    manager: QueueManager, deleting: set[int], silent: set[int], held: frozenset[tuple[int, int]]
) -> None:
    """REC-04, REC-07, REC-08: everything that is stored is available, purged ones go on disappearing.

    What cannot be placed stays in the store and is reported.
    """
    purges = {queue.ordinal: queue.purged_to for queue in manager.queues() if queue.purged_to}
    loader = Loader(manager.ledger, purges, deleting, silent, held=held)
    loader.run(manager.store.tables)
    for key in loader.damaged:
        manager.set_aside("position", f"the position record with the key {key.hex()} is damaged")
    for ordinal, count in loader.orphans.items():
        manager.set_aside(
            "orphan", f"{count} messages are of queue {ordinal}, of which there is no record", count
        )
    stored = int(manager.records.meta(MetaName.SEQUENCE_HW, 0))
    manager.ledger.sequence = manager.ledger.sequence_limit = max(stored, loader.highest_sequence)
    manager.registry.purging.update(queue for queue in manager.queues() if queue.purged_to)


def _system_queues(manager: QueueManager) -> None:
    """REC-10: created only if they are missing (DA-056), since their messages survive.

    Their quotas are those of the settings, whatever was stored: nothing else can change them.
    """
    stored = {queue.ordinal: queue for queue in manager.queues()}
    for system in SYSTEM_QUEUES:
        queue = stored.get(system.ordinal)
        if queue is not None:
            queue.properties = replace(queue.properties, quota_kb=_quota_kb(manager, system))
            queue.set_quota()
        else:
            queue = _create(manager, system)
            manager.records.set_queue(queue.ordinal, queue.record())
            manager.events.created(queue)
            manager.registry.add(queue)


def _create(manager: QueueManager, system: SystemQueue) -> Queue:
    return Queue(
        manager.ledger,
        system.ordinal,
        UUID(bytes=manager.random_bytes(16), version=4),
        system.part,
        manager.settings.computer_name,
        QueueKind.SYSTEM,
        QueueProperties(transactional=system.transactional, quota_kb=_quota_kb(manager, system)),
        private_number=system.number,
        created=manager.ledger.now_s,
    )


def _quota_kb(manager: QueueManager, system: SystemQueue) -> int:
    if system is JOURNAL:
        return manager.settings.journal_quota_kb
    return manager.settings.deadletter_quota_kb if system in (DEADLETTER, DEADXACT) else UNLIMITED

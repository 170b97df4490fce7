"""Reads and removes messages: they are leased, read, and removed when Spark has confirmed the batch.

Offsets are delivery numbers. The `start` of the next batch confirms deliveries, because Spark plans a batch
only when the previous one is in its commit log. If a batch never entered the offset log, the messages leased
for it are put back when the query restarts, and are delivered in the queue's order, under new numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msmq_fast.client.bulk.client import (
    Bounds,
    BulkClient,
    BulkError,
    Lease,
    LeaseLost,
    QueueBounds,
    Unavailable,
)
from msmq_fast.spark.limits import Limits, Patience
from msmq_fast.spark.losses import Losses, SourceError, log
from msmq_fast.spark.offsets import ManagerSpot, Offset, Share, Spot, allot
from msmq_fast.spark.partitions import RowsPartition, dense_partitions
from msmq_fast.spark.queue_managers import QueueManagers, report_unknown_managers

MODE: Final = "remove"
BATCH_ROWS: Final = 100_000
"""The largest number of rows of one queue in a batch without a limit: the server stores a record of every
leased message.
"""
_ALL: Final = (1 << 62) - 1


@dataclass(frozen=True)
class _Standing:
    """How far the query has processed a queue.

    `done`: all deliveries with numbers below this one are processed. `rows`: the number of messages that can
    be leased now. `bytes`: the size of the queue's messages, at least 1.
    """

    client: BulkClient
    bounds: Bounds
    queue: QueueBounds
    done: int
    rows: int
    bytes: int


class RemoveMode:
    """Plans the offsets and ranges of a query that removes processed messages."""

    mode: Final = MODE

    def __init__(
        self, managers: QueueManagers, subscription: str, lease_ms: int, limits: Limits, losses: Losses
    ) -> None:
        self._managers = managers
        self._subscription = subscription
        self._lease_ms = lease_ms
        self._limits = limits
        self._losses = losses
        self._patience = Patience(limits)
        self._confirmed: dict[str, int] = {}
        self._tidied: set[tuple[str, int]] = set()  # queues, with the incarnation of their store
        self._caps: dict[str, int] | None = None
        self._turn = 0

    def initial(self) -> Offset:
        """Returns the offset before the first delivery of each queue."""
        managers = {}
        for _, bounds in self._managers.look(tolerant=False):
            spots = {queue.guid: Spot(queue.name, 0, 0) for queue in bounds.queues}
            managers[bounds.qm] = ManagerSpot(bounds.name, bounds.incarnation, bounds.start, spots)
        return Offset(MODE, managers, self._subscription)

    def prepare(self) -> None:
        """Limits the query to as many messages as its queues have now (trigger availableNow)."""
        self._caps = {
            q.guid: q.messages for _, bounds in self._managers.look(tolerant=True) for q in bounds.queues
        }

    def latest(self, start: Offset, *, limited: bool) -> Offset:
        """Remove the messages up to `start`, lease the messages of the next batch, and return the end of this
        batch; return `start` itself if there is nothing to read. `limited`: the limits of the options apply.
        """
        standings = self._standings(start)
        limits = self._limits if limited else Limits()
        waiting = sum(standing.rows for standing in standings)
        if not waiting or (limited and self._caps is None and self._patience.wait(waiting)):
            return start
        self._turn += 1
        backlogs = [(standing.rows, standing.bytes) for standing in standings]
        shares = allot(backlogs, limits.max_rows, limits.max_bytes, self._turn)
        spots = [self._lease(standing, share) for standing, share in zip(standings, shares, strict=True)]
        if not any(spot.rows for spot in spots):
            return start
        managers: dict[str, ManagerSpot] = {}
        for standing, spot in zip(standings, spots, strict=True):
            bounds = standing.bounds
            manager = managers.setdefault(
                bounds.qm, ManagerSpot(bounds.name, bounds.incarnation, bounds.start, {})
            )
            manager.queues[standing.queue.guid] = spot
        return Offset(MODE, managers, self._subscription)

    def partitions(self, start: Offset, stop: Offset) -> list[RowsPartition]:
        """Returns the partitions of the batch between two consecutive offsets."""
        self._check(stop)
        return dense_partitions(self._managers, self._limits, start, stop, self._subscription)

    def confirm(self, offset: Offset) -> None:
        """Removes the messages that were delivered up to `offset`. A failure is logged, not raised: the next
        call of `latest` tries again.
        """
        spots = [spot for manager in offset.managers.values() for spot in manager.queues.items()]
        if all(self._confirmed.get(guid, 0) == spot.end for guid, spot in spots):
            return
        try:
            self._standings(offset)
        except (BulkError, SourceError) as error:
            log.warning("the end of a batch is confirmed later: %s", error)

    # ---- inside

    def _check(self, offset: Offset) -> None:
        """Raise SourceError if `offset` belongs to another subscription, because in the present subscription
        its delivery numbers may belong to messages that were never read.
        """
        if offset.subscription not in ("", self._subscription):
            raise SourceError(
                f"the checkpoint belongs to the subscription {offset.subscription!r}, but option "
                f"'subscription' is {self._subscription!r}: restore the option, or use a new "
                "checkpointLocation"
            )

    def _standings(self, start: Offset) -> list[_Standing]:
        """Removes the messages up to `start` from all queues of the query, and returns the state of these
        queues.
        """
        self._check(start)
        standings = []
        looked = self._managers.look(tolerant=bool(start.managers))
        report_unknown_managers(start, looked, self._losses)
        for client, bounds in looked:
            spots = self._managers.reconciled(start.managers.get(bounds.qm), client, bounds, self._losses)
            for queue in bounds.queues:
                done = spots[queue.guid].end if queue.guid in spots else 0
                rows = max(queue.messages - self._settle(client, bounds, queue, done), 0)
                if self._caps is not None:
                    rows = min(rows, self._caps.get(queue.guid, 0))
                standings.append(_Standing(client, bounds, queue, done, rows, max(queue.bytes, 1)))
        return standings

    def _settle(self, client: BulkClient, bounds: Bounds, queue: QueueBounds, done: int) -> int:
        """Removes from a queue the messages with delivery numbers below `done`, and returns the number of
        removed messages. At the first call for a queue, also puts the other leased messages of the queue back
        into it.
        """
        removed = 0
        if self._confirmed.get(queue.guid, 0) != done:  # the numbers of a restored store restart lower
            try:
                acked = client.ack(self._subscription, queue.name, done)
                removed = acked.removed
                if acked.gone:
                    log.warning("%d deliveries of %s were purged or had expired", acked.gone, queue.name)
            except LeaseLost as error:
                self._losses.report(
                    f"{bounds.name}: {error}; the lease ended before Spark confirmed the batch, its messages "
                    "are back in the queue. Use a longer lease (option 'lease')",
                    "they come a second time",
                )
                client.release(self._subscription, queue.name, done)
            self._confirmed[queue.guid] = done
        if (queue.guid, bounds.incarnation) not in self._tidied:
            client.release(self._subscription, queue.name, _ALL)
            self._tidied.add((queue.guid, bounds.incarnation))
        return removed

    def _taken(self, standing: _Standing, rows: int, share: Share) -> Lease:
        return standing.client.lease(
            self._subscription,
            standing.queue.name,
            max_rows=min(rows, BATCH_ROWS),
            max_bytes=share.bytes,
            lease_ms=self._lease_ms,
        )

    def _lease(self, standing: _Standing, share: Share) -> Spot:
        """Leases the messages of one queue for a batch. `share` limits the rows and bytes that this queue
        contributes to the batch. Returns the range of the delivery numbers.
        """
        queue, done = standing.queue, standing.done
        rows = standing.rows if share.rows is None else share.rows
        if not rows:
            return Spot(queue.name, done, done)
        try:
            lease = self._taken(standing, rows, share)
        except Unavailable as error:
            log.warning("%s; what was leased is put back and leased again", error)
            standing.client.release(self._subscription, queue.name, _ALL)
            lease = self._taken(standing, rows, share)
        if self._caps is not None:
            self._caps[queue.guid] = self._caps.get(queue.guid, 0) - lease.rows
        if not lease.rows:
            return Spot(queue.name, done, done)
        return Spot(queue.name, lease.start, lease.stop, lease.rows)

"""Reads and removes messages: they are leased, read, and removed when Spark has confirmed the batch.

Offsets are delivery numbers. The `start` of the next batch confirms deliveries, because Spark plans a batch
only when the previous one is in its commit log. If a batch never entered the offset log, the messages leased
for it are put back when the query restarts, and are delivered in the queue's order, under new numbers.

An offset names only the queues of its batch: those of earlier batches were acknowledged before this one was
planned.
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
    QueueNotFound,
    Unavailable,
)
from msmq_fast.spark.lag import Lag
from msmq_fast.spark.limits import Limits, Patience
from msmq_fast.spark.losses import Losses, SourceError, log
from msmq_fast.spark.offsets import EARLIEST, ManagerSpot, Offset, Share, Spot, allot
from msmq_fast.spark.partitions import RowsPartition, dense_partitions
from msmq_fast.spark.queue_managers import NOTHING, QueueManagers, View

MODE: Final = "remove"
BATCH_ROWS: Final = 100_000
"""The largest number of rows of one queue in a batch without a limit: the server stores a record of every
leased message.
"""
BATCH_QUEUES: Final = 500
"""The most queues of a batch, which take turns: a server has a limited number of leases."""
_ALL: Final = (1 << 62) - 1


@dataclass(frozen=True)
class _Standing:
    """How far the query has processed a queue.

    `done`: all deliveries with numbers below this one are processed. `rows`: the number of messages that can
    be leased now. `bytes`: the size of the queue's messages, at least 1.
    """

    view: View
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
        self.lag = Lag()

    def initial(self) -> Offset:
        """Returns the offset before the first delivery of each queue."""
        managers = {
            bounds.qm: self._position(client, bounds, {})
            for client, bounds in self._managers.look(tolerant=False, since=NOTHING)
        }
        return Offset(MODE, managers, self._subscription)

    def prepare(self) -> None:
        """Limits the query to as many messages as its queues have now (trigger availableNow)."""
        self._caps = {
            q.guid: q.messages
            for _, bounds in self._managers.look(tolerant=True, since=EARLIEST)
            for q in bounds.queues
        }

    def latest(self, start: Offset, *, limited: bool) -> Offset:
        """Remove the messages up to `start`, lease the messages of the next batch, and return the end of this
        batch; return `start` itself if there is nothing to read. `limited`: the limits of the options apply.
        """
        views, standings = self._standings(start)
        limits = self._limits if limited else Limits()
        waiting = sum(standing.rows for standing in standings)
        self._note_lag(views, standings, {})
        if not waiting or (limited and self._caps is None and self._patience.wait(waiting)):
            return start
        self._turn += 1
        standings = self._in_turn([standing for standing in standings if standing.rows])
        backlogs = [(standing.rows, standing.bytes) for standing in standings]
        shares = allot(backlogs, limits.max_rows, limits.max_bytes, self._turn)
        spots = self._leased(standings, shares)
        if not spots:
            return start
        self._note_lag(views, standings, spots)
        managers = {}
        for view in views:
            of_manager = {
                standing.queue.guid: spots[standing.queue.guid]
                for standing in standings
                if standing.view is view and standing.queue.guid in spots
            }
            managers[view.bounds.qm] = self._position(view.client, view.bounds, of_manager)
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

    def _position(self, client: BulkClient, bounds: Bounds, spots: dict[str, Spot]) -> ManagerSpot:
        others = self._managers.others(client, bounds, EARLIEST)
        return ManagerSpot(bounds.name, bounds.incarnation, bounds.start, spots, others)

    def _in_turn(self, standings: list[_Standing]) -> list[_Standing]:
        """Returns at most BATCH_QUEUES of the queues, others in each batch."""
        first = self._turn * BATCH_QUEUES % max(len(standings), 1)
        return (standings[first:] + standings[:first])[:BATCH_QUEUES]

    def _note_lag(self, views: list[View], standings: list[_Standing], spots: dict[str, Spot]) -> None:
        """Note the rows that wait behind the leased ones (`spots`, by GUID)."""
        rows = {**self.lag.rows} if spots else {}
        for standing in standings:
            spot = spots.get(standing.queue.guid)
            left = standing.rows - (spot.rows if spot else 0)
            rows.pop(standing.queue.name, None)
            if left > 0:
                rows[standing.queue.name] = left
        self.lag = Lag(
            sum(view.bounds.selected for view in views),
            rows,
            {view.bounds.name: view.bounds.next for view in views},
        )

    def _standings(self, start: Offset) -> tuple[list[View], list[_Standing]]:
        """Removes the messages up to `start` from the queues of its batch, and returns the queue managers and
        the state of the queues that have messages.
        """
        self._check(start)
        standings = []
        views = self._managers.views(start, lambda known: EARLIEST, self._losses)
        for view in views:
            spots = view.known.queues if view.known is not None else {}
            removed = self._settle(view, spots)
            for queue in view.bounds.queues:
                done = spots[queue.guid].end if queue.guid in spots else 0
                rows = max(queue.messages - removed.get(queue.guid, 0), 0)
                if self._caps is not None:
                    rows = min(rows, self._caps.get(queue.guid, 0))
                standings.append(_Standing(view, queue, done, rows, max(queue.bytes, 1)))
        return views, standings

    def _settle(self, view: View, spots: dict[str, Spot]) -> dict[str, int]:
        """Removes the messages of the last batch (`spots`, by GUID) from their queues, and returns the number
        of removed messages by GUID. When the query first sees a queue, also puts the other leased messages of
        this queue back into it.
        """
        removed: dict[str, int] = {}
        bounds = view.bounds
        due = {
            guid: spot for guid, spot in spots.items() if self._confirmed.get(guid, 0) != spot.end
        }  # the numbers of a restored store restart lower
        answers = view.client.acks(self._subscription, [(spot.path, spot.end) for spot in due.values()])
        for (guid, spot), acked in zip(due.items(), answers, strict=True):
            if isinstance(acked, LeaseLost):
                self._losses.report(
                    f"{bounds.name}: {acked}; the lease ended before Spark confirmed the batch, its messages "
                    "are back in the queue. Use a longer lease (option 'lease')",
                    "they come a second time",
                )
                view.client.release(self._subscription, spot.path, spot.end)
            elif isinstance(acked, QueueNotFound):
                self._losses.report(
                    f"queue {spot.path} of {bounds.name} was deleted with its unread messages",
                    "the query continues without it",
                )
            elif isinstance(acked, BulkError):
                raise acked
            else:
                removed[guid] = acked.removed
                if acked.gone:
                    log.warning("%d deliveries of %s were purged or had expired", acked.gone, spot.path)
            self._confirmed[guid] = spot.end
        new = [
            queue
            for queue in bounds.queues
            if queue.messages and (queue.guid, bounds.incarnation) not in self._tidied
        ]
        released = view.client.releases(self._subscription, [(queue.name, _ALL) for queue in new])
        for queue, answer in zip(new, released, strict=True):
            if isinstance(answer, BulkError) and not isinstance(answer, QueueNotFound):
                raise answer
            self._tidied.add((queue.guid, bounds.incarnation))
        return removed

    def _leased(self, standings: list[_Standing], shares: list[Share]) -> dict[str, Spot]:
        """Leases the messages of a batch; `shares` limit the rows and bytes that the queues contribute to it.
        Returns the ranges of the delivery numbers of the queues that have any, by GUID.
        """
        spots: dict[str, Spot] = {}
        groups: dict[str, list[tuple[_Standing, int, int | None]]] = {}
        for standing, share in zip(standings, shares, strict=True):
            rows = standing.rows if share.rows is None else share.rows
            if rows:
                wanted = (standing, min(rows, BATCH_ROWS), share.bytes)
                groups.setdefault(standing.view.bounds.qm, []).append(wanted)
        for group in groups.values():
            client = group[0][0].view.client
            try:
                leases = self._taken(client, group)
            except Unavailable as error:
                log.warning("%s; what was leased is put back and leased again", error)
                list(client.releases(self._subscription, [(one.queue.name, _ALL) for one, _, _ in group]))
                leases = self._taken(client, group)
            for (standing, _, _), lease in zip(group, leases, strict=True):
                queue = standing.queue
                if isinstance(lease, QueueNotFound):
                    continue  # the next look reports it
                if isinstance(lease, BulkError):
                    raise lease
                if self._caps is not None:
                    self._caps[queue.guid] = self._caps.get(queue.guid, 0) - lease.rows
                if lease.rows:
                    spots[queue.guid] = Spot(queue.name, lease.start, lease.stop, lease.rows)
        return spots

    def _taken(
        self, client: BulkClient, group: list[tuple[_Standing, int, int | None]]
    ) -> list[Lease | BulkError]:
        limits = [(standing.queue.name, rows, size) for standing, rows, size in group]
        return list(client.leases(self._subscription, limits, lease_ms=self._lease_ms))

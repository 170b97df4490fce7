"""Plans reads that leave messages in their queues: offsets are arrival numbers. Runs only on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msmq_fast.client.bulk.client import (
    Bounds,
    BulkClient,
    Plan,
    QueueBounds,
    QueueNotFound,
    Range,
    WrongIncarnation,
)
from msmq_fast.spark.limits import Limits, Patience
from msmq_fast.spark.losses import Losses
from msmq_fast.spark.offsets import ManagerSpot, Offset, Share, Spot, allot
from msmq_fast.spark.partitions import RowsPartition
from msmq_fast.spark.queue_managers import QueueManagers, report_unknown_managers
from msmq_fast.spark.selection import EARLIEST, Positions, resolve

MODE: Final = "keep"
_MOST_PARTS: Final = 10_000
"""The largest number of ranges of one plan; the server creates no more."""


@dataclass(frozen=True)
class _Standing:
    """What the query still has to read from a queue: the numbers from `at` up to but not including `stop`."""

    client: BulkClient
    bounds: Bounds
    queue: QueueBounds
    at: int
    stop: int


class KeepMode:
    """Plans the offsets and ranges of a query that leaves messages in their queues."""

    mode: Final = MODE

    def __init__(self, managers: QueueManagers, positions: Positions, limits: Limits, losses: Losses) -> None:
        self._managers = managers
        self._content = managers.selection.content
        self._positions = positions
        self._limits = limits
        self._losses = losses
        self._patience = Patience(limits)
        self._caps: dict[str, int] | None = None
        self._turn = 0

    def initial(self) -> Offset:
        """Returns the offset at which the query begins."""
        managers = {}
        for client, bounds in self._managers.look(tolerant=False):
            spots = {}
            for queue in bounds.queues:
                at = self._resolved(client, bounds, queue, self._positions)
                self._positions.check_reached(at, bounds.next, queue.name)
                spots[queue.guid] = Spot(queue.name, at, at, 0, queue.late)
            managers[bounds.qm] = ManagerSpot(bounds.name, bounds.incarnation, bounds.start, spots)
        self._positions.check_used()
        return Offset(MODE, managers)

    def whole(self, ending: Positions) -> Offset:
        """Returns the offset at the end of a batch query. Its only batch reads, of the messages that exist
        now, those from the starting positions to `ending`.
        """
        standings = []
        for client, bounds in self._managers.look(tolerant=False):
            for queue in bounds.queues:
                at = self._resolved(client, bounds, queue, self._positions)
                self._positions.check_reached(at, bounds.next, queue.name)
                stop = min(self._resolved(client, bounds, queue, ending), bounds.next)
                standings.append(_Standing(client, bounds, queue, at, max(at, stop)))
        self._positions.check_used()
        ending.check_used()
        return self._offset(standings, [self._plan(s, Share(None, None)) for s in standings])

    def prepare(self) -> None:
        """Limits the query to the messages that exist now (trigger availableNow)."""
        self._caps = {bounds.qm: bounds.next for _, bounds in self._managers.look(tolerant=True)}

    def latest(self, start: Offset, *, limited: bool) -> Offset:
        """Returns the end of the next batch; `start` itself if there is nothing to read. `limited`: the
        limits of the options apply.
        """
        standings = self._standings(start)
        limits = self._limits if limited else Limits()
        plans = [self._plan(standing, Share(limits.max_rows, limits.max_bytes)) for standing in standings]
        total = sum(plan.rows for plan in plans)
        if not total or (limited and self._caps is None and self._patience.wait(total)):
            return start
        self._turn += 1
        backlogs = [(plan.rows, plan.bytes) for plan in plans]
        shares = allot(backlogs, limits.max_rows, limits.max_bytes, self._turn)
        for index, share in enumerate(shares):
            if plans[index].rows and share != Share(None, None):
                plans[index] = self._plan(standings[index], share)
        return self._offset(standings, plans)

    def partitions(self, start: Offset, end: Offset) -> list[RowsPartition]:
        """Returns the partitions of the batch between two consecutive offsets."""
        if start == end:
            return []
        spots = [(guid, m, s) for guid, m in end.managers.items() for s in m.queues.values() if s.rows]
        total = sum(spot.rows for _, _, spot in spots)
        return [
            partition
            for guid, manager, spot in spots
            for partition in self._ranges(guid, manager, spot, self._limits.parts(spot.rows, total))
        ]

    def confirm(self, offset: Offset) -> None:
        """Does nothing, since the queues do not change."""

    # ---- inside

    def _resolved(self, client: BulkClient, bounds: Bounds, queue: QueueBounds, wanted: Positions) -> int:
        position = wanted.of(bounds, client.endpoint.url, queue)
        return resolve(client, bounds, queue, position, self._content)

    def _standings(self, start: Offset) -> list[_Standing]:
        standings = []
        looked = self._managers.look(tolerant=bool(start.managers))
        report_unknown_managers(start, looked, self._losses)
        for client, bounds in looked:
            known = start.managers.get(bounds.qm)
            spots = self._managers.reconciled(known, client, bounds, self._losses)
            stop = bounds.next
            if self._caps is not None:
                stop = min(stop, self._caps.get(bounds.qm, 0))
            for queue in bounds.queues:
                spot = spots.get(queue.guid)
                if known is not None and spot is not None:
                    self._check_late(queue, spot, known.started == bounds.start, bounds.name)
                at = spot.end if spot else EARLIEST
                if at > bounds.next:
                    self._managers.went_back(bounds.name, f"arrival {at - 1}", bounds.next - 1, self._losses)
                    at = EARLIEST
                standings.append(_Standing(client, bounds, queue, at, max(at, stop)))
        return standings

    def _check_late(self, queue: QueueBounds, spot: Spot, same_start: bool, name: str) -> None:
        more = queue.late - (spot.late if same_start else 0)
        if more > 0:
            self._losses.report(
                f"{more} messages were moved into {queue.name} of {name}, perhaps behind arrival number "
                f"{spot.end}, up to which it was read",
                "those that lie behind it are left out",
            )

    def _plan(self, standing: _Standing, share: Share) -> Plan:
        """Plans which rows of a queue the next batch reads. `share` limits the rows and bytes that this queue
        contributes to the batch.
        """
        if share.rows == 0:
            return Plan((), standing.at, 0, 0)
        if standing.at >= standing.stop or not standing.queue.messages:
            return Plan((), standing.stop, 0, 0)
        return standing.client.plan(
            standing.queue.name,
            standing.at,
            standing.stop,
            content=self._content,
            max_rows=share.rows,
            max_bytes=share.bytes,
        )

    def _offset(self, standings: list[_Standing], plans: list[Plan]) -> Offset:
        managers: dict[str, ManagerSpot] = {}
        for standing, plan in zip(standings, plans, strict=True):
            bounds, queue = standing.bounds, standing.queue
            manager = managers.setdefault(
                bounds.qm, ManagerSpot(bounds.name, bounds.incarnation, bounds.start, {})
            )
            manager.queues[queue.guid] = Spot(queue.name, standing.at, plan.stop, plan.rows, queue.late)
        return Offset(MODE, managers)

    def _ranges(self, guid: str, manager: ManagerSpot, spot: Spot, parts: int) -> list[RowsPartition]:
        """Returns the partitions of one queue in a batch. If Spark repeats the batch, fewer messages may be
        left in the queue than were planned at first; this is reported as a loss.
        """
        client = self._managers.client_of(guid, manager.name).with_incarnation(manager.incarnation)
        try:
            with client:
                ranges = list(self._parted(client, spot, parts))
        except QueueNotFound:
            self._losses.report(
                f"queue {spot.path} of {manager.name} was deleted before {spot.rows} rows of it were read",
                "the batch does without them",
            )
            return []
        except WrongIncarnation as error:
            self._losses.report(
                f"the store of {manager.name} was restored or copied before {spot.rows} rows of {spot.path} "
                f"were read: {error}",
                "the batch does without them",
            )
            return []
        rows = sum(part.rows for part in ranges)
        if rows < spot.rows:
            self._losses.report(
                f"{spot.rows - rows} of {spot.rows} rows of {spot.path} of {manager.name} between "
                f"{spot.begin} and {spot.end - 1} went before they were read: received, expired or purged",
                "the batch does without them",
            )
        return [
            RowsPartition(
                client.endpoint, manager.incarnation, MODE, spot.path, part.start, part.stop, part.rows
            )
            for part in ranges
        ]

    def _parted(self, client: BulkClient, spot: Spot, parts: int) -> Iterator[Range]:
        """Yields about `parts` ranges of one queue. It requests several plans from the server if one plan
        cannot have so many ranges.
        """
        plans = -(-parts // _MOST_PARTS)
        rows = None if plans == 1 else -(-spot.rows // plans)
        at = spot.begin
        while at < spot.end:
            plan = client.plan(
                spot.path, at, spot.end, content=self._content, max_rows=rows, parts=-(-parts // plans)
            )
            yield from plan.ranges
            if plan.stop <= at:
                return
            at = plan.stop

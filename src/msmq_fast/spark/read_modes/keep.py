"""Plans reads that leave messages in their queues: offsets are arrival numbers. Runs only on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msmq_fast.client.bulk.client import (
    Bounds,
    BulkClient,
    BulkError,
    Plan,
    PlanRequest,
    QueueBounds,
    QueueNotFound,
    Range,
    WrongIncarnation,
)
from msmq_fast.spark.lag import Lag
from msmq_fast.spark.limits import Limits, Patience
from msmq_fast.spark.losses import Losses
from msmq_fast.spark.offsets import EARLIEST, ManagerSpot, Offset, Share, Spot, allot
from msmq_fast.spark.partitions import QueueRange, RowsPartition
from msmq_fast.spark.queue_managers import NOTHING, QueueManagers, View
from msmq_fast.spark.selection import Positions, resolve

MODE: Final = "keep"
_MOST_PARTS: Final = 10_000
"""The largest number of ranges of one plan; the server creates no more."""


@dataclass(frozen=True)
class _Standing:
    """What the query still has to read from a queue: the numbers from `at` up to but not including `stop`."""

    view: View
    queue: QueueBounds
    at: int
    stop: int


@dataclass(frozen=True)
class _Seen:
    """A queue manager in a look of the query: all of its queues are to be read up to `stop`, and `standings`
    are those that may have something below it.
    """

    view: View
    stop: int
    standings: list[_Standing]


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
        self.lag = Lag()

    def initial(self) -> Offset:
        """Returns the offset at which the query begins."""
        managers = {}
        single = self._positions.single
        for client, bounds in self._managers.look(tolerant=False, since=NOTHING if single else None):
            others = EARLIEST if single is not None and single.kind == "earliest" else bounds.next
            spots = {}
            for queue in [] if single else bounds.queues:
                at = self._resolved(client, bounds, queue, self._positions)
                self._positions.check_reached(at, bounds.next, queue.name)
                if at != others:
                    spots[queue.guid] = Spot(queue.name, at, at)
            managers[bounds.qm] = self._position(client, bounds, others, spots)
        self._positions.check_used()
        return Offset(MODE, managers)

    def whole(self, ending: Positions) -> Offset:
        """Returns the offset at the end of a batch query. Its only batch reads, of the messages that exist
        now, those from the starting positions to `ending`.
        """
        seen = []
        named = self._positions.single is None or ending.single is None
        for client, bounds in self._managers.look(tolerant=False, since=None if named else 0):
            view = View(client, bounds, None)
            standings = []
            for queue in bounds.queues:
                at = self._resolved(client, bounds, queue, self._positions)
                self._positions.check_reached(at, bounds.next, queue.name)
                stop = min(self._resolved(client, bounds, queue, ending), bounds.next)
                standings.append(_Standing(view, queue, at, max(at, stop)))
            seen.append(_Seen(view, bounds.next, standings))
        self._positions.check_used()
        ending.check_used()
        standings = [standing for one in seen for standing in one.standings]
        return self._offset(seen, self._plans(standings, [Share(None, None)] * len(standings)))

    def prepare(self) -> None:
        """Limits the query to the messages that exist now (trigger availableNow)."""
        looked = self._managers.look(tolerant=True, since=NOTHING)
        self._caps = {bounds.qm: bounds.next for _, bounds in looked}

    def latest(self, start: Offset, *, limited: bool) -> Offset:
        """Returns the end of the next batch; `start` itself if there is nothing to read. `limited`: the
        limits of the options apply.
        """
        seen = self._look(start)
        standings = [standing for one in seen for standing in one.standings]
        limits = self._limits if limited else Limits()
        plans = self._plans(standings, [Share(limits.max_rows, limits.max_bytes)] * len(standings))
        waiting = [plan.waiting for plan in plans]
        total = sum(plan.rows for plan in plans)
        if not total or (limited and self._caps is None and self._patience.wait(total)):
            self._note_lag(seen, waiting)
            return start
        self._turn += 1
        backlogs = [(plan.rows, plan.bytes) for plan in plans]
        shares = allot(backlogs, limits.max_rows, limits.max_bytes, self._turn)
        cut = [
            index for index, share in enumerate(shares) if plans[index].rows and share != Share(None, None)
        ]
        for index, plan in zip(
            cut, self._plans([standings[i] for i in cut], [shares[i] for i in cut]), strict=True
        ):
            plans[index] = plan
        self._note_lag(seen, [more - plan.rows for more, plan in zip(waiting, plans, strict=True)])
        return self._offset(seen, plans)

    def partitions(self, start: Offset, end: Offset) -> list[RowsPartition]:
        """Returns the partitions of the batch between two consecutive offsets."""
        if start == end:
            return []
        total = sum(spot.rows for manager in end.managers.values() for spot in manager.queues.values())
        return [
            partition
            for guid, manager in end.managers.items()
            for partition in self._ranges(guid, manager, total)
        ]

    def confirm(self, offset: Offset) -> None:
        """Does nothing, since the queues do not change."""

    # ---- inside

    def _resolved(self, client: BulkClient, bounds: Bounds, queue: QueueBounds, wanted: Positions) -> int:
        position = wanted.of(bounds, client.endpoint.url, queue)
        if position.kind == "time" and not queue.messages:
            return bounds.next
        return resolve(client, bounds, queue, position, self._content)

    def _look(self, start: Offset) -> list[_Seen]:
        seen = []
        for view in self._managers.views(start, lambda known: known.lowest, self._losses):
            view = self._not_gone_back(view)
            stop = view.bounds.next
            if self._caps is not None:
                stop = min(stop, self._caps.get(view.bounds.qm, 0))
            if view.known is not None and view.known.others is not None:
                stop = max(stop, view.known.others.at)
            standings = []
            for queue in view.bounds.queues:
                self._check_late(view, queue)
                at = view.end_of(queue.guid, queue.ordinal)
                standings.append(_Standing(view, queue, at, max(at, stop)))
            seen.append(_Seen(view, stop, standings))
        return seen

    def _not_gone_back(self, view: View) -> View:
        """Returns the view unchanged, or, if the query has read numbers that the store has not assigned yet,
        reports that and returns a view in which everything is read again.
        """
        if view.known is None:
            return view
        read = max((spot.end for spot in view.known.queues.values()), default=0)
        if view.known.others is not None:
            read = max(read, view.known.others.at)
        if read <= view.bounds.next:
            return view
        return self._managers.read_again(view, f"arrival {read - 1}", view.bounds.next - 1, self._losses)

    def _check_late(self, view: View, queue: QueueBounds) -> None:
        known = view.known
        if known is None or not view.knows(queue.guid, queue.ordinal):
            return
        more = queue.late - (known.late.get(queue.guid, 0) if known.started == view.bounds.start else 0)
        if more > 0:
            self._losses.report(
                f"{more} messages were moved into {queue.name} of {view.bounds.name}, perhaps behind arrival "
                f"number {view.end_of(queue.guid, queue.ordinal)}, up to which it was read",
                "those that lie behind it are left out",
            )

    def _plans(self, standings: list[_Standing], shares: list[Share]) -> list[Plan]:
        """Plans which rows of each queue the next batch reads, with one call for each queue manager. `shares`
        limit the rows and bytes that the queues contribute to the batch.
        """
        plans: list[Plan] = []
        wanted: dict[str, list[tuple[int, PlanRequest]]] = {}
        for index, (standing, share) in enumerate(zip(standings, shares, strict=True)):
            if share.rows == 0:
                plans.append(Plan((), standing.at, 0, 0))
                continue
            plans.append(Plan((), standing.stop, 0, 0))
            if standing.at < standing.stop and standing.queue.messages:
                request = PlanRequest(
                    standing.queue.name, standing.at, standing.stop, share.rows, share.bytes
                )
                wanted.setdefault(standing.view.bounds.qm, []).append((index, request))
        clients = {standing.view.bounds.qm: standing.view.client for standing in standings}
        for guid, asked in wanted.items():
            found = clients[guid].plans([request for _, request in asked], content=self._content)
            for (index, _), plan in zip(asked, found, strict=True):
                if isinstance(plan, BulkError):
                    raise plan
                plans[index] = plan
        return plans

    def _note_lag(self, seen: list[_Seen], behind: list[int]) -> None:
        standings = [standing for one in seen for standing in one.standings]
        rows = {
            standing.queue.name: count for standing, count in zip(standings, behind, strict=True) if count > 0
        }
        self.lag = Lag(
            sum(one.view.bounds.selected for one in seen),
            rows,
            {one.view.bounds.name: one.view.bounds.next for one in seen},
        )

    def _offset(self, seen: list[_Seen], plans: list[Plan]) -> Offset:
        managers: dict[str, ManagerSpot] = {}
        planned = iter(plans)
        for one in seen:
            spots = {}
            for standing, plan in zip(one.standings, planned, strict=False):
                if plan.rows or plan.stop != one.stop:
                    spots[standing.queue.guid] = Spot(standing.queue.name, standing.at, plan.stop, plan.rows)
            bounds = one.view.bounds
            managers[bounds.qm] = self._position(one.view.client, bounds, one.stop, spots)
        return Offset(MODE, managers)

    def _position(self, client: BulkClient, bounds: Bounds, at: int, spots: dict[str, Spot]) -> ManagerSpot:
        late = {queue.guid: queue.late for queue in bounds.queues if queue.late}
        others = self._managers.others(client, bounds, at)
        return ManagerSpot(bounds.name, bounds.incarnation, bounds.start, spots, others, late)

    def _ranges(self, guid: str, manager: ManagerSpot, total: int) -> list[RowsPartition]:
        """Returns the partitions of one queue manager in a batch of `total` rows. If Spark repeats the batch,
        fewer messages may be left in the queues than were planned at first; this is reported as a loss.
        """
        spots = [spot for spot in manager.queues.values() if spot.rows]
        if not spots:
            return []
        client = self._managers.client_of(guid, manager.name).with_incarnation(manager.incarnation)
        parts = [self._limits.parts(spot.rows, total) for spot in spots]
        few = [
            PlanRequest(spot.path, spot.begin, spot.end, parts=count)
            for spot, count in zip(spots, parts, strict=True)
            if count <= _MOST_PARTS
        ]
        found: list[RowsPartition] = []
        try:
            with client:
                plans = client.plans(few, content=self._content)
                for spot, count in zip(spots, parts, strict=True):
                    ranges = (
                        self._parted(client, spot, count)
                        if count > _MOST_PARTS
                        else self._checked(next(plans), spot, manager)
                    )
                    found += self._partitions(client, manager, spot, list(ranges))
        except WrongIncarnation as error:
            rows = sum(spot.rows for spot in spots)
            self._losses.report(
                f"the store of {manager.name} was restored or copied before {rows} rows of "
                f"{spots[0].path if len(spots) == 1 else f'{len(spots)} queues'} were read: {error}",
                "the batch does without them",
            )
            return []
        return found

    def _checked(self, plan: Plan | BulkError, spot: Spot, manager: ManagerSpot) -> tuple[Range, ...]:
        if isinstance(plan, QueueNotFound):
            self._losses.report(
                f"queue {spot.path} of {manager.name} was deleted before {spot.rows} rows of it were read",
                "the batch does without them",
            )
            return ()
        if isinstance(plan, BulkError):
            raise plan
        return plan.ranges

    def _partitions(
        self, client: BulkClient, manager: ManagerSpot, spot: Spot, ranges: list[Range]
    ) -> list[RowsPartition]:
        rows = sum(part.rows for part in ranges)
        if rows < spot.rows:
            self._losses.report(
                f"{spot.rows - rows} of {spot.rows} rows of {spot.path} of {manager.name} between "
                f"{spot.begin} and {spot.end - 1} went before they were read: received, expired or purged",
                "the batch does without them",
            )
        return [
            RowsPartition(
                client.endpoint,
                manager.incarnation,
                MODE,
                (QueueRange(spot.path, part.start, part.stop, part.rows, part.bytes),),
            )
            for part in ranges
        ]

    def _parted(self, client: BulkClient, spot: Spot, parts: int) -> Iterator[Range]:
        """Yields about `parts` ranges of one queue. It requests several plans from the server, because one
        plan cannot have so many ranges.
        """
        plans = -(-parts // _MOST_PARTS)
        rows = -(-spot.rows // plans)
        at = spot.begin
        while at < spot.end:
            plan = client.plan(
                spot.path, at, spot.end, content=self._content, max_rows=rows, parts=-(-parts // plans)
            )
            yield from plan.ranges
            if plan.stop <= at:
                return
            at = plan.stop

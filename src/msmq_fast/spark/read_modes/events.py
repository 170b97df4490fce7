"""Reads the event feed of queue managers: offsets are event numbers, which have no gaps."""

from __future__ import annotations

from typing import Final

from msmq_fast.client.bulk.client import Bounds, BulkClient, BulkError, SlotDropped, SubscriptionNotFound
from msmq_fast.spark.lag import Lag
from msmq_fast.spark.limits import Limits, Patience
from msmq_fast.spark.losses import Losses, log
from msmq_fast.spark.offsets import FEED, ManagerSpot, Offset, Spot, allot
from msmq_fast.spark.partitions import RowsPartition, dense_partitions
from msmq_fast.spark.queue_managers import QueueManagers, report_unknown_managers
from msmq_fast.spark.selection import Positions, resolve

MODE: Final = "events"
EVENT_BYTES: Final = 256
"""The assumed size of one event for limits in bytes."""


class EventsMode:
    """Plans the offsets and ranges of a query that reads events. With a subscription, the server keeps events
    until the query has confirmed them.
    """

    mode: Final = MODE

    def __init__(
        self,
        managers: QueueManagers,
        positions: Positions,
        limits: Limits,
        losses: Losses,
        subscription: str | None = None,
    ) -> None:
        self._managers = managers
        self._positions = positions
        self._limits = limits
        self._losses = losses
        self._subscription = subscription
        self._patience = Patience(limits)
        self._caps: dict[str, int] | None = None
        self._committed: dict[str, int] = {}
        self._subscribed: dict[str, int] = {}  # incarnations of the queue managers that know the subscription
        self._turn = 0
        self.lag = Lag()

    def initial(self) -> Offset:
        """Returns the offset at which the query begins, and creates the subscription if it does not exist."""
        managers = {}
        for client, bounds in self._managers.look(tolerant=False):
            at = self._resolved(client, bounds, self._positions)
            self._positions.check_reached(at, bounds.feed_next, "events")
            self._subscribe(client, bounds, at)
            managers[bounds.qm] = _manager(bounds, at, at)
        self._positions.check_used()
        return Offset(MODE, managers)

    def whole(self, ending: Positions) -> Offset:
        """Returns the offset at the end of a batch query. Its only batch reads, of the events that exist now,
        those from the starting positions to `ending`.
        """
        managers = {}
        for client, bounds in self._managers.look(tolerant=False):
            at = self._resolved(client, bounds, self._positions)
            stop = min(self._resolved(client, bounds, ending), bounds.feed_next)
            managers[bounds.qm] = _manager(bounds, at, max(at, stop))
        self._positions.check_used()
        ending.check_used()
        return Offset(MODE, managers)

    def prepare(self) -> None:
        """Limits the query to the events that exist now (trigger availableNow)."""
        self._caps = {bounds.qm: bounds.feed_next for _, bounds in self._managers.look(tolerant=True)}

    def latest(self, start: Offset, *, limited: bool) -> Offset:
        """Confirms to the subscription all events before the offset `start`, and returns the end of the next
        batch; returns `start` itself if there is nothing to read. `limited`: the limits of the options apply.
        """
        self.confirm(start)
        looked = self._managers.look(tolerant=True)
        report_unknown_managers(start, {bounds.qm for _, bounds in looked}, self._losses)
        limits = self._limits if limited else Limits()
        stands = []
        for client, bounds in looked:
            at = self._position(start.managers.get(bounds.qm), bounds)
            self._subscribe(client, bounds, at)
            stop = bounds.feed_next
            if self._caps is not None:
                stop = min(stop, self._caps.get(bounds.qm, 0))
            stands.append((bounds, at, max(at, stop)))
        total = sum(stop - at for _, at, stop in stands)
        self._note_lag([(bounds, stop - at) for bounds, at, stop in stands])
        if not total or (limited and self._caps is None and self._patience.wait(total)):
            return start
        self._turn += 1
        backlogs = [(stop - at, (stop - at) * EVENT_BYTES) for _, at, stop in stands]
        shares = allot(backlogs, limits.max_rows, limits.max_bytes, self._turn)
        managers, left = {}, []
        for (bounds, at, stop), share in zip(stands, shares, strict=True):
            rows = stop - at
            if share.rows is not None:
                rows = min(rows, share.rows)
            if share.bytes is not None and rows:
                rows = min(rows, max(1, share.bytes // EVENT_BYTES))
            managers[bounds.qm] = _manager(bounds, at, at + rows)
            left.append((bounds, stop - at - rows))
        self._note_lag(left)
        return Offset(MODE, managers)

    def partitions(self, start: Offset, stop: Offset) -> list[RowsPartition]:
        """Returns the partitions of the batch between two consecutive offsets."""
        return dense_partitions(self._managers, self._limits, start, stop)

    def confirm(self, offset: Offset) -> None:
        """Confirms to the subscription that all events up to `offset` have been processed. A failure is
        logged, not raised: a later call confirms these events, too.
        """
        if self._subscription is None:
            return
        for guid, manager in offset.managers.items():
            end = manager.queues[FEED].end
            if guid not in self._subscribed or self._committed.get(guid) == end:
                continue
            try:
                self._managers.client_of(guid, manager.name).commit(self._subscription, end)
                self._committed[guid] = end
            except (SlotDropped, SubscriptionNotFound) as error:
                log.warning("%s; creating it again", error)
                del self._subscribed[guid]
            except (BulkError, RuntimeError) as error:
                log.warning("the subscription %r will be confirmed later: %s", self._subscription, error)

    # ---- inside

    def _note_lag(self, left: list[tuple[Bounds, int]]) -> None:
        rows = {f"events of {bounds.name}": count for bounds, count in left if count > 0}
        self.lag = Lag(len(left), rows, {bounds.name: bounds.feed_next for bounds, _ in left})

    def _subscribe(self, client: BulkClient, bounds: Bounds, at: int) -> None:
        """Creates the subscription, which makes the server keep the events from number `at` on.

        Has no effect if this object has already created the subscription in the same incarnation of the
        store. The subscription is therefore created when the query starts, when the server has dropped it,
        and when the store has a new incarnation.
        """
        if self._subscription is not None and self._subscribed.get(bounds.qm) != bounds.incarnation:
            client.subscribe(self._subscription, position=at)
            self._subscribed[bounds.qm] = bounds.incarnation
            self._committed[bounds.qm] = at

    def _resolved(self, client: BulkClient, bounds: Bounds, wanted: Positions) -> int:
        return resolve(client, bounds, None, wanted.of(bounds, client.endpoint.url, None), "events")

    def _position(self, known: ManagerSpot | None, bounds: Bounds) -> int:
        if known is None:
            return bounds.feed_first
        at = known.queues[FEED].end
        name, first = bounds.name, bounds.feed_first
        if known.incarnation != bounds.incarnation:
            self._losses.report(
                f"the store of {name} was restored or copied: it is at incarnation {bounds.incarnation}, the "
                f"checkpoint is of incarnation {known.incarnation}; events that were numbered {at} and above "
                "may be others. A new checkpointLocation with startingOffsets begins again cleanly",
                "the feed is read again from the first event that is left",
            )
            return first
        if at > bounds.feed_next:
            self._managers.went_back(name, f"event {at - 1}", bounds.feed_next - 1, self._losses)
            return first
        if at < first:
            self._losses.report(
                f"the events {at} to {first - 1} of {name} are no longer kept (feed retention); a "
                "subscription (option 'subscription') makes the server keep them",
                f"the query goes on with event {first}",
            )
            return first
        return at


def _manager(bounds: Bounds, begin: int, end: int) -> ManagerSpot:
    spot = Spot("", begin, end, end - begin)
    return ManagerSpot(bounds.name, bounds.incarnation, bounds.start, {FEED: spot})

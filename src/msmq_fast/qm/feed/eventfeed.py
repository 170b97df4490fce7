"""The event feed of the queue manager: records events of queues and of the queue manager itself, and deletes
old events.
"""

from __future__ import annotations

from msmq_fast.qm.feed.callers import FeedCallers
from msmq_fast.qm.feed.feednames import FeedNames, FeedQueue
from msmq_fast.qm.feed.subscriptions import Subscriptions
from msmq_fast.qm.services import Services
from msmq_fast.store.feed import Feed
from msmq_fast.store.schema import EventKind

__all__ = ["EventFeed"]


class EventFeed:
    """The parts of the event feed.

    `feed` appends and reads events, `subscriptions` store the readers' positions, `names` has the names of
    deleted queues that events refer to by ordinal, `callers` the programs that events refer to by number.
    """

    def __init__(self, services: Services, *, enabled: bool) -> None:
        self._ledger = services.ledger
        self.feed = Feed(services.store, enabled=enabled)
        self.names = FeedNames(services)
        self.callers = FeedCallers(services, enabled=enabled)
        self.subscriptions = Subscriptions(services, self.feed)

    def load(self) -> None:
        """Read the stored names, callers and subscriptions at start."""
        self.names.load()
        self.callers.load()
        self.subscriptions.load()

    # ---- what the queue manager tells, with the current batch

    def started(self) -> None:
        """Record the start of the queue manager; the event also means that the express messages of the last
        run are lost.
        """
        self._tell(EventKind.STARTED)

    def stopped(self) -> None:
        """Record a clean stop. Events of work that was under way may still follow."""
        self._tell(EventKind.STOPPED)

    def created(self, queue: FeedQueue) -> None:
        """Record that a queue was created."""
        self._tell(EventKind.QUEUE_CREATED, queue)

    def deleted(self, queue: FeedQueue, kind: str) -> None:
        """Record that a queue was deleted. The events for its purged messages follow later.

        For `kind` see `QueueName`.
        """
        if self.feed.enabled:
            self._tell(EventKind.QUEUE_DELETED, queue)
            self.names.deleted(queue, kind)

    def _tell(self, kind: EventKind, queue: FeedQueue | None = None) -> None:
        now = self._ledger.now_us
        if queue is None:
            self.feed.append(kind, now)
        else:
            self.feed.append(kind, now, queue=queue.ordinal, subject=queue.guid.bytes_le)

    # ---- how long it is kept

    def trim(self, max_age_s: int, max_bytes: int, limit: int) -> int:
        """Delete records that are older than `max_age_s` seconds, and the oldest ones while the feed is
        larger than `max_bytes`; at most `limit` records. Returns how many were deleted.

        Records that a subscription may still read are kept.
        """
        keep = self.subscriptions.keep_from()
        dropped = self.feed.trim(self._ledger.now_us, max_age_s, max_bytes, limit, keep)
        if not dropped:
            self.names.trimmed(self.feed.bounds()[0])
        return dropped

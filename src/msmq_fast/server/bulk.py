"""The bulk API of a running server: its calls, over the parts that do the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aiohttp import web

from msmq_fast.app.auth import TokenTable
from msmq_fast.bulk import copying, planning, rows, slots
from msmq_fast.bulk.application import build
from msmq_fast.bulk.callers import Access
from msmq_fast.bulk.context import Context, Limits
from msmq_fast.bulk.reader import BulkReader
from msmq_fast.qm.manager import QueueManager
from msmq_fast.security.principals import Principals
from msmq_fast.server.bulkaccess import bulk_callers
from msmq_fast.server.clock import SystemClock
from msmq_fast.server.config import Config
from msmq_fast.server.counters import RefusalCounters
from msmq_fast.server.release import release
from msmq_fast.store.snapshots import Snapshots
from msmq_fast.store.store import Store

__all__ = ["BULK_PATH", "BulkService"]

BULK_PATH: Final = "/v1/bulk"


class BulkService:
    """Made when the queue manager runs. `application` is what the admin port serves under /v1/bulk."""

    def __init__(
        self,
        config: Config,
        manager: QueueManager,
        store: Store,
        snapshots: Snapshots,
        principals: Principals,
        tokens: TokenTable,
        refused: RefusalCounters,
        clock: SystemClock,
        touch: Callable[[], None],
        not_ready: Callable[[], str | None],
    ) -> None:
        bulk = config.bulk
        context = Context(
            manager,
            bulk_callers(Access(bulk.access), tokens, principals, clock.monotonic),
            touch,
            not_ready,
            refused.refuse,
            store.incarnation,
            clock.wall_us(),
            release(),
            Limits(bulk.streams, config.limits.slow_reader_timeout, bulk.max_stage_bytes),
        )
        self.figures = context.figures
        self.reader = BulkReader(
            manager,
            lambda: context.settled(manager.bounds.settled()),
            incarnation=store.incarnation,
            share=bulk.share,
        )
        events = manager.events
        self.application: web.Application = build(
            context,
            [
                *planning.routes(context, self.reader, events.feed),
                *rows.routes(context, self.reader),
                *slots.routes(context, events.subscriptions),
                *copying.routes(context, snapshots),
            ],
        )

    def close(self) -> None:
        """Before the store is closed; what is still read breaks off."""
        self.reader.close()

"""The bulk API of a running server: connects the calls of the API with the queue manager."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from aiohttp import web

from msmq_fast.admin.view import Labelled
from msmq_fast.bulk import copying, leasing, planning, publishing, rows, slots
from msmq_fast.bulk.application import build
from msmq_fast.bulk.context import Context, Limits
from msmq_fast.bulk.reader import BulkReader
from msmq_fast.release import release
from msmq_fast.security.callers import Access
from msmq_fast.server.admin.callers import callers_of
from msmq_fast.server.front_end import Runtime

__all__ = ["BULK_PATH", "BulkService"]

BULK_PATH: Final = "/v1/bulk"


class BulkService:
    """The bulk API; create it once the queue manager runs. The admin port serves `application`, the calls of
    the API, under /v1/bulk.
    """

    def __init__(self, runtime: Runtime, not_ready: Callable[[], str | None]) -> None:
        config, manager, store, clock = runtime.config, runtime.manager, runtime.store, runtime.clock
        bulk = config.bulk
        context = Context(
            manager,
            callers_of(Access(bulk.access), runtime.tokens, runtime.access.principals, clock.monotonic),
            runtime.commit_loop.touch,
            not_ready,
            runtime.refusals.refuse,
            store.incarnation,
            clock.wall_us(),
            release(),
            Limits(bulk.streams, config.limits.slow_reader_timeout, bulk.max_stage_bytes, bulk.uploads),
            signing=runtime.security.signing,
        )
        self._figures = context.figures
        self._subscriptions = manager.events.subscriptions
        self._leases = manager.leases
        self._staging = manager.staging
        self.reader = BulkReader(
            manager,
            lambda: context.settled(manager.bounds.settled()),
            incarnation=store.incarnation,
            share=bulk.share,
            holders=manager.leases.holders,
        )
        self._stagers = ThreadPoolExecutor(1, "stage")
        events = manager.events
        self.application: web.Application = build(
            context,
            [
                *planning.routes(context, self.reader, events.feed),
                *rows.routes(context, self.reader),
                *leasing.routes(context, manager.leases, bulk.lease),
                *publishing.routes(context, self._stagers),
                *slots.routes(context, events.subscriptions),
                *copying.routes(context, runtime.snapshots),
            ],
        )

    def labelled(self) -> Iterator[Labelled]:
        """Yield the metrics of the bulk API with their labels."""
        figures, read = self._figures, self.reader.figures
        requests: dict[tuple[str, ...], float] = {
            (call, str(status)): count for (call, status), count in figures.requests.items()
        }
        yield Labelled("bulk_requests", "Requests of the bulk API", ("call", "status"), requests)
        for name, about, value in (
            ("bulk_rows", "Messages read in bulk", read.rows),
            ("bulk_events", "Events read in bulk", read.events),
            ("bulk_gone", "Messages that were removed before a bulk reader got to them", read.gone),
            ("bulk_damaged", "Damaged messages and records that a bulk reader skipped", read.damaged),
            ("bulk_sent_bytes", "Bytes sent in streams of rows", figures.bytes_out),
            ("bulk_received_bytes", "Bytes of stages", figures.bytes_in),
            ("bulk_broken_streams", "Streams of rows that broke off", figures.broken),
            ("bulk_cpu_seconds", "Processor time of the bulk reader thread", self.reader.cpu_seconds),
        ):
            yield Labelled(name, about, (), {(): value})
        yield Labelled("bulk_streams", "Open streams of rows", (), {(): figures.streams}, grows=False)
        stages, staged = self._staging.totals()
        yield Labelled("stages", "Stages that are not published yet", (), {(): stages}, grows=False)
        yield Labelled(
            "staged_bytes",
            "Bytes of messages in stages that are not published yet",
            (),
            {(): staged},
            grows=False,
        )
        yield Labelled("leases_ended", "Leases that expired", (), {(): self._leases.ended})
        yield self._leased()
        slots = self._subscriptions.listed()
        for name, about, key in (
            ("subscription_lag_events", "Events that a subscription has not read yet", "lag_events"),
            ("subscription_lag_bytes", "Bytes of events that the feed keeps for a subscription", "lag_bytes"),
            (
                "subscription_max_lag_bytes",
                "Lag above which the feed keeps no events for a subscription",
                "max_lag_bytes",
            ),
            ("subscription_dropped", "1 if the subscription lost its place in the feed", "dropped"),
        ):
            values: dict[tuple[str, ...], float] = {(slot.name,): getattr(slot, key) for slot in slots}
            yield Labelled(name, about, ("subscription",), values, grows=False)

    def _leased(self) -> Labelled:
        held: Counter[tuple[str, ...]] = Counter()
        for lease in self._leases.listed():
            held[lease.subscription,] += lease.next - lease.start
        about = "Messages that a subscription has leased"
        return Labelled("leased_messages", about, ("subscription",), held, grows=False)

    def close(self) -> None:
        """Stop the bulk API: open streams break off. Call this before the store is closed."""
        self.reader.close()
        self._stagers.shutdown(cancel_futures=True)

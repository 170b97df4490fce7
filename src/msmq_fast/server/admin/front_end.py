"""The admin port: health, metrics, the management API, and the bulk API under a path of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from msmq_fast.admin.view import Labelled, View
from msmq_fast.security.callers import Access
from msmq_fast.server.admin.bulk import BULK_PATH, BulkService
from msmq_fast.server.admin.listener import AdminListener
from msmq_fast.server.front_end import Bound, FrontEnd, Runtime

__all__ = ["ADMIN", "AdminFrontEnd"]

ADMIN = "admin"


class AdminFrontEnd(FrontEnd):
    """Serves the data of `view`, and the bulk API unless `bulk.access` is off."""

    def __init__(self, runtime: Runtime, view: View, not_ready: Callable[[], str | None]) -> None:
        """`not_ready` returns the reason why the server does not accept rows of the bulk API now, None if it
        does.
        """
        config = runtime.config
        self._bulk = BulkService(runtime, not_ready) if config.bulk.access != Access.OFF else None
        admin = config.listen.admin
        self._listener = AdminListener(
            view,
            config.limits.metric_queues,
            runtime.refusals.refuse,
            runtime.acceptors,
            runtime.manager.settings.local_hosts,
            tls=runtime.tls.context(admin.tls_certificate, admin.tls_key, "listen.admin.tls_certificate"),
            parts={} if self._bulk is None else {BULK_PATH: self._bulk.application},
        )

    async def listen(self, bound: Bound) -> None:
        await self._listener.listen(bound[ADMIN])

    def labelled(self) -> Iterator[Labelled]:
        if self._bulk is not None:
            yield from self._bulk.labelled()

    async def close(self) -> None:
        await self._listener.close()
        if self._bulk is not None:
            await asyncio.to_thread(self._bulk.close)  # it waits for a thread that reads the disk

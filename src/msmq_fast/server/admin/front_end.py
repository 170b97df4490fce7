"""The admin port: health, metrics, the management API, the web console, and the bulk API."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator

from aiohttp import web

from msmq_fast.admin.api.api import Api
from msmq_fast.admin.api.router import API_PATH, build_api
from msmq_fast.admin.view import Labelled, View
from msmq_fast.app.service import Service
from msmq_fast.console.application import CONSOLE_PATH, build_console
from msmq_fast.console.sessions import Sessions
from msmq_fast.security.callers import Access
from msmq_fast.server.admin.bulk import BULK_PATH, BulkService
from msmq_fast.server.admin.callers import callers_of
from msmq_fast.server.admin.gateway import AppGateway
from msmq_fast.server.admin.listener import AdminListener
from msmq_fast.server.admin.logons import ConsoleLogons
from msmq_fast.server.front_end import Bound, FrontEnd, Runtime

__all__ = ["ADMIN", "AdminFrontEnd"]

ADMIN = "admin"


class AdminFrontEnd(FrontEnd):
    """Serves the data of `view`, the management API and the console unless `listen.admin.access` is off, and
    the bulk API unless `bulk.access` is off.
    """

    def __init__(
        self, runtime: Runtime, view: View, not_ready: Callable[[], str | None], service: Service
    ) -> None:
        """`not_ready` returns the reason why the server does not accept rows of the bulk API now, None if it
        does. `service` is the application protocol, of which the management API is a client.
        """
        config, names = runtime.config, runtime.manager.settings.local_hosts
        admin = config.listen.admin
        parts: dict[str, web.Application] = {}
        self._bulk = BulkService(runtime, not_ready) if config.bulk.access != Access.OFF else None
        if self._bulk is not None:
            parts[BULK_PATH] = self._bulk.application
        self._gateway = AppGateway(service, runtime.loop, runtime.commit_loop.touch)
        callers = callers_of(
            Access(admin.access),
            runtime.tokens,
            runtime.access.principals,
            runtime.clock.monotonic,
            names,
        )
        if admin.access != Access.OFF:
            api = Api(self._gateway, view)
            parts[API_PATH] = build_api(api, callers, runtime.refusals.refuse)
            access = runtime.access
            logons = ConsoleLogons(access.principals, runtime.tokens, access.logons, callers, os.urandom)
            sessions = Sessions(runtime.clock.monotonic, os.urandom)
            parts[CONSOLE_PATH] = build_console(api, logons, sessions, names)
        self._listener = AdminListener(
            view,
            config.limits.metric_queues,
            runtime.refusals.refuse,
            runtime.acceptors,
            callers,
            open_metrics=admin.open_metrics,
            tls=runtime.tls.context(admin.tls_certificate, admin.tls_key, "listen.admin.tls_certificate"),
            parts=parts,
        )

    async def listen(self, bound: Bound) -> None:
        await self._listener.listen(bound[ADMIN])

    def labelled(self) -> Iterator[Labelled]:
        if self._bulk is not None:
            yield from self._bulk.labelled()

    async def stop(self) -> None:
        await self._gateway.close()

    async def close(self) -> None:
        await self._listener.close()
        if self._bulk is not None:
            await asyncio.to_thread(self._bulk.close)  # it waits for a thread that reads the disk

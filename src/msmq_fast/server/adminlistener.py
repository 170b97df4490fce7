"""The admin port: aiohttp on our sockets."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable, Mapping

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from msmq_fast.admin.application import build
from msmq_fast.admin.view import View

__all__ = ["AdminListener"]


class _Refused(logging.Filter):
    """Counts what is the client's fault; aiohttp would log a traceback for each, as if we had failed."""

    def __init__(self, refuse: Callable[[str, str], None]) -> None:
        super().__init__()
        self._refuse = refuse

    def filter(self, record: logging.LogRecord) -> bool:
        """False for a request that could not be parsed, or whose client did not wait for the answer."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError | web.RequestPayloadError):
            self._refuse("admin request", "malformed")
        elif isinstance(error, ConnectionError):
            self._refuse("admin request", "client left")
        else:
            return True
        return False


class AdminListener:
    """Serves the admin application until it is closed; `refuse(what, reason)` hears of malformed requests.

    `parts` are applications of their own, by the path under which they are served.
    """

    def __init__(
        self,
        view: View,
        queue_limit: int,
        refuse: Callable[[str, str], None],
        *,
        tls: ssl.SSLContext | None = None,
        parts: Mapping[str, web.Application] | None = None,
    ) -> None:
        self._tls = tls
        application = build(view, queue_limit)
        for path, part in (parts or {}).items():
            application.add_subapp(path, part)
        logger = logging.Logger("msmq_fast.admin")
        logger.parent = logging.getLogger("msmq_fast")
        logger.addFilter(_Refused(refuse))
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=1.0,
            logger=logger,
        )

    async def listen(self, listeners: list[socket.socket]) -> None:
        """Accept on bound sockets."""
        await self._runner.setup()
        for listener in listeners:
            await web.SockSite(self._runner, listener, ssl_context=self._tls).start()

    async def close(self) -> None:
        """Close the sockets and all connections."""
        await self._runner.cleanup()

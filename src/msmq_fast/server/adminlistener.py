"""The admin port: aiohttp on our sockets."""

from __future__ import annotations

import socket

from aiohttp import web

from msmq_fast.admin.application import build
from msmq_fast.admin.view import View

__all__ = ["AdminListener"]


class AdminListener:
    """Serves the admin application until it is closed."""

    def __init__(self, view: View, queue_limit: int) -> None:
        self._runner = web.AppRunner(
            build(view, queue_limit), access_log=None, handle_signals=False, shutdown_timeout=1.0
        )

    async def listen(self, listeners: list[socket.socket]) -> None:
        """Accept on bound sockets."""
        await self._runner.setup()
        for listener in listeners:
            await web.SockSite(self._runner, listener).start()

    async def close(self) -> None:
        """Close the sockets and all connections."""
        await self._runner.cleanup()

"""Work that goes on after the answer to its request: the result is shown on the next page of the session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Final

from msmq_fast.admin.api.errors import refusal_of
from msmq_fast.console.sessions import Notice, Session
from msmq_fast.logfields import logged

__all__ = ["Jobs"]

_log = logging.getLogger("msmq_fast.admin")
_MOST: Final = 16


class Jobs:
    """All jobs of one server. They end with the server."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, session: Session, name: str, work: Coroutine[None, None, Notice]) -> bool:
        """Run `work`, and show its notice in the session. Return whether it has begun: False if too many jobs
        run already. `name` begins the notice of a failure.
        """
        if len(self._running) >= _MOST:
            work.close()
            return False
        task = asyncio.get_running_loop().create_task(_run(session, name, work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return True

    async def close(self) -> None:
        """Cancel the jobs, because the server stops."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


async def _run(session: Session, name: str, work: Coroutine[None, None, Notice]) -> None:
    try:
        session.tell(await work)
    except Exception as error:
        refusal = refusal_of(error)
        if refusal is None:
            _log.exception("%s failed", name, extra=logged(peer=session.address))
        session.tell(Notice("failed", f"{name}: {refusal or 'internal error; see the log of the server'}"))

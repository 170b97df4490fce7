"""Sends spans to a collector: OTLP/JSON over HTTP, in a task of its own, with bounded memory."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import aiohttp

from msmq_fast.admin.view import Labelled
from msmq_fast.server.tracing.spans import Attributes, Span, request

__all__ = ["Exporter"]

_log = logging.getLogger("msmq_fast.tracing")

_MOST: Final = 10_000  # spans that wait for the collector; more are dropped
_BATCH: Final = 100  # spans in one request: their text takes the event loop 3 ms
_TIMEOUT: Final = 10.0  # seconds for one request
_QUIET: Final = 60.0  # seconds between two log lines about a collector that takes nothing


class Exporter:
    """Sends spans to the collector at `endpoint`. A request that fails is not repeated: its spans are dropped
    and counted.
    """

    def __init__(
        self, endpoint: str, token: str, resource: Attributes, monotonic: Callable[[], float]
    ) -> None:
        self._endpoint = endpoint
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._resource = resource
        self._monotonic = monotonic
        self._waiting: deque[Span] = deque()
        self._task: asyncio.Task[None] | None = None
        self._quiet_until = 0.0
        self._exported = self._dropped = 0

    def add(self, span: Span) -> None:
        """Send a span with the next `flush`."""
        if len(self._waiting) >= _MOST:
            self._dropped += 1
        else:
            self._waiting.append(span)

    def drop(self, count: int) -> None:
        """Count spans that were not made for lack of room or rate."""
        self._dropped += count

    def flush(self) -> None:
        """Begin to send what waits, unless that is under way."""
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._send())

    async def close(self, timeout: float) -> None:  # noqa: ASYNC109 - of a stop that must end
        """Send what waits, for at most `timeout` seconds."""
        self.flush()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=timeout)
            self._task.cancel()

    def labelled(self) -> Iterator[Labelled]:
        """Yield the metrics of the exporter."""
        yield Labelled(
            "trace_spans",
            "Spans that the collector accepted, and spans that were dropped",
            ("result",),
            {("exported",): self._exported, ("dropped",): self._dropped},
        )

    async def _send(self) -> None:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout, headers=self._headers) as session:
            while self._waiting:
                batch = list(islice(self._waiting, _BATCH))
                for _ in batch:
                    self._waiting.popleft()
                if failure := await self._post(session, batch):
                    self._dropped += len(batch)
                    self._complain(failure)
                else:
                    self._exported += len(batch)

    async def _post(self, session: aiohttp.ClientSession, batch: list[Span]) -> str:
        """Send one request. Returns why it failed; "" if it did not."""
        try:
            async with session.post(self._endpoint, json=request(batch, self._resource)) as answer:
                return "" if answer.ok else f"status {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return str(error) or type(error).__name__

    def _complain(self, failure: str) -> None:
        now = self._monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + _QUIET
            fields = {"peer": self._endpoint}
            _log.warning("spans cannot be sent to %s: %s", self._endpoint, failure, extra={"fields": fields})

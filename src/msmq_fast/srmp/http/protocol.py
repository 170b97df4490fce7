"""The asyncio adapter of one HTTP connection: feeds a `ServerConnection`, passes its requests to the handler,
and writes the answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msmq_fast.adapter import Adapter
from msmq_fast.logfields import Refuse, logged
from msmq_fast.srmp.http.request import Handler, HttpRequest
from msmq_fast.srmp.http.server import BadRequest, Limits, Refused, ServerConnection
from msmq_fast.store.completion import Completion

__all__ = ["HttpProtocol", "Shared"]

_log = logging.getLogger("msmq_fast.srmp")

_AHEAD: Final = 64 << 10  # bytes of later requests that are read while one waits for its answer
_RATE: Final = 4096  # minimum bytes per second from a client after `Shared.slow`
_LINGER: Final = 5.0  # seconds in which further input is discarded, so that the peer gets the answer


@dataclass(slots=True)
class Shared:
    """The settings and functions that all connections of a server share.

    - `touch` is called before a request is passed to the handler.
    - `fixed` returns the header lines that every answer has.
    - `monotonic` returns seconds.
    """

    handler: Handler
    touch: Callable[[], None]
    refuse: Refuse
    fixed: Callable[[], bytes]
    monotonic: Callable[[], float]
    limits: Limits = field(default_factory=Limits)
    keep_alive: float = 120.0  # seconds that a connection may be idle
    slow: float = 120.0  # seconds without data of an incomplete request
    answers: Counter[int] = field(default_factory=Counter)


class HttpProtocol(Adapter, asyncio.Protocol):
    """The server side of one connection. Handles one request at a time, so answers are in request order."""

    def __init__(self, shared: Shared, loop: asyncio.AbstractEventLoop, used: Callable[[], None]) -> None:
        """`used` is called when a request has been answered."""
        super().__init__(loop)
        self._shared = shared
        self._used = used
        self._engine = ServerConnection(shared.limits)
        self._peer = ""
        self._full = False  # the client does not take its answers
        self._working = False
        self._last_active = 0.0
        self._began = 0.0  # when the first byte of an unfinished request came
        self._timer: asyncio.TimerHandle | None = None

    @property
    def held(self) -> int:
        """The bytes of memory that this connection uses."""
        return self._engine.held

    @property
    def silent(self) -> bool:
        """Whether no data has arrived on this connection yet."""
        return not self._began

    @property
    def waits(self) -> float:
        """Seconds for which the server has waited for more data of an incomplete request.

        0 if it waits for nothing, because a request is being handled or the client does not read; infinity if
        the connection is idle.
        """
        if self._engine.waiting or self._full:
            return 0.0
        return float("inf") if self._engine.idle else self._shared.monotonic() - self._last_active

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._peer = str(peer[0]) if isinstance(peer, tuple) else ""
        tls = transport.get_extra_info("sslcontext") is not None
        self._engine = ServerConnection(self._shared.limits, self._peer, tls=tls)
        self._last_active = self._shared.monotonic()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._last_active = self._shared.monotonic()
        engine = self._engine
        if engine.idle:
            self._began = self._last_active
        engine.receive(data)
        if not (engine.waiting or self._full):
            self._work()
        elif engine.arrived > _AHEAD:
            self._read(False)

    def eof_received(self) -> bool:
        """Called by asyncio when the client has closed its side of the connection. The request under way
        still gets its answer if the transport can send after that.
        """
        transport = self._transport
        if not self._engine.waiting or transport is None or not transport.can_write_eof():
            return False
        self._engine.last_one()
        return True

    def pause_writing(self) -> None:
        """Called by asyncio when the client does not read its answers: no further requests are handled."""
        self._full = True
        self._last_active = self._shared.monotonic()
        self._read(False)

    def resume_writing(self) -> None:
        """Called by asyncio when the client reads its answers again."""
        self._full = False
        self._read(True)
        if not self._engine.waiting:
            self._work()

    def close(self) -> None:
        """Close the connection as soon as the request under way is answered."""
        if self._engine.waiting:
            self._engine.last_one()
        elif self._transport is not None:
            self._transport.close()

    def _work(self) -> None:
        """Pass complete requests to the handler. An answer that is available at once is written before the
        next request is read.
        """
        if self._working:
            return
        self._working = True
        engine, shared = self._engine, self._shared
        try:
            while self._transport is not None and not self._full and (item := engine.next()) is not None:
                if isinstance(item, Refused):
                    shared.refuse("http request", item.reason, self._peer, peer=self._peer)
                    self._answer(item.status)
                    continue
                shared.touch()
                self._handle(item).add_done_callback(self._answered)
        except BadRequest as error:
            shared.refuse("http connection", "not HTTP", f"{self._peer}: {error}", peer=self._peer)
            if self._transport is not None:
                self._transport.abort()
        finally:
            self._working = False
        output = engine.take_output()
        if output and self._transport is not None:
            self._transport.write(output)

    def _handle(self, request: HttpRequest) -> Completion[int]:
        try:
            return self._shared.handler(request)
        except Exception:
            _log.exception(
                "a message of %s failed with an unexpected exception",
                self._peer,
                extra=logged(peer=self._peer),
            )
            return Completion.of(500)

    def _answered(self, done: Completion[int]) -> None:
        self._answer(500 if done.exception() is not None else int(done.result()))
        self._work()

    def _answer(self, status: int) -> None:
        self._shared.answers[status] += 1
        self._last_active = self._shared.monotonic()
        self._used()
        output = self._engine.answer(status, self._shared.fixed())
        transport = self._transport
        if transport is None:
            return
        transport.write(output)
        if self._engine.ended:
            if transport.can_write_eof():
                transport.write_eof()
            self._loop.call_later(_LINGER, transport.close)
        self._began = self._last_active
        if not self._full:
            self._read(True)

    # ---- time

    def _watch(self) -> None:
        """Start the timer of the connection. The timer is started again each time that it has fired: the
        connection has one timer, not one for each request.
        """
        self._timer = self._loop.call_later(min(self._shared.keep_alive, self._shared.slow), self._check)

    def _check(self) -> None:
        transport = self._transport
        if transport is None:
            return
        shared = self._shared
        now = shared.monotonic()
        silent = now - self._last_active
        if self._full:
            if silent >= shared.slow:
                shared.refuse("http connection", "slow reader", self._peer, peer=self._peer)
                transport.abort()
            else:
                self._watch()
        elif self._engine.waiting:
            self._watch()
        elif self._engine.idle:
            if silent >= shared.keep_alive:
                transport.close()
            else:
                self._timer = self._loop.call_later(shared.keep_alive - silent, self._check)
        elif silent >= shared.slow or now - self._began >= shared.slow + self._engine.arrived / _RATE:
            shared.refuse("http connection", "slow request", self._peer, peer=self._peer)
            transport.abort()
        else:
            self._timer = self._loop.call_later(max(shared.slow - silent, 0.01), self._check)

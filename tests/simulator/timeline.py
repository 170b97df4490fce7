"""Virtual time: one line of events for all computers, and an event loop for each of them that runs on it."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from msmq_fast.server.runtime.clock import SystemClock

if TYPE_CHECKING:
    from .network import Network

DNS_DELAY = 0.02


class Event:
    """Something that happens at a time; with a loop, only while its computer runs."""

    __slots__ = ("_arguments", "_callback", "cancelled", "loop", "time")

    def __init__(
        self,
        time: float,
        callback: Callable[..., object],
        arguments: tuple[Any, ...],
        loop: ComputerLoop | None,
    ) -> None:
        self.time = time
        self._callback = callback
        self._arguments = arguments
        self.loop = loop
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
        self._callback = print
        self._arguments = ()

    def when(self) -> float:
        """Monotonic seconds of the loop, as asyncio.TimerHandle has it."""
        return self.loop.clock.at(self.time) if self.loop is not None else self.time

    def run(self) -> None:
        self._callback(*self._arguments)


class Timeline:
    """Runs events in the order of their times; equal times in the order in which they were entered."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0
        self.failure: Exception | None = None  # of a task
        self._heap: list[tuple[float, int, Event]] = []
        self._number = 0

    def at(
        self,
        time: float,
        callback: Callable[..., object],
        *arguments: object,
        loop: ComputerLoop | None = None,
    ) -> Event:
        """Have something happen; the past means now."""
        event = Event(max(time, self.now), callback, arguments, loop)
        self._number += 1
        heapq.heappush(self._heap, (event.time, self._number, event))
        return event

    def after(
        self,
        delay: float,
        callback: Callable[..., object],
        *arguments: object,
        loop: ComputerLoop | None = None,
    ) -> Event:
        return self.at(self.now + delay, callback, *arguments, loop=loop)

    def run(self, until: float, most: int = 1 << 62) -> None:
        """Run what happens up to a time; RuntimeError when that makes more than `most` events in all."""
        heap = self._heap
        running: ComputerLoop | None = None
        try:
            while heap and heap[0][0] <= until:
                time, _, event = heapq.heappop(heap)
                loop = event.loop
                if event.cancelled or (loop is not None and loop.dead):
                    continue
                self.now = time
                self.events += 1
                if self.events > most:
                    raise RuntimeError(f"{most} events, and no end")
                if loop is None:
                    event.run()
                    continue
                if loop is not running:
                    asyncio._set_running_loop(loop)
                    running = loop
                event.run()
                if not loop.dead:
                    loop.on_turn()
                if self.failure is not None:
                    raise self.failure
        finally:
            asyncio._set_running_loop(None)
        self.now = max(self.now, until)


class ComputerClock(SystemClock):
    """The clocks of one computer: both go at their own rate, and the wall clock can be set."""

    __slots__ = ("_boot", "_rate", "_timeline", "_wall")

    def __init__(self, timeline: Timeline, *, boot: float, rate: float, wall: float) -> None:
        """`boot`: monotonic seconds at the time 0; `wall`: Unix seconds at the time 0."""
        self._timeline = timeline
        self._boot = boot
        self._rate = rate
        self._wall = wall

    def at(self, time: float) -> float:
        """Monotonic seconds at a time."""
        return self._boot + time * self._rate

    def time_of(self, monotonic: float) -> float:
        """The inverse."""
        return (monotonic - self._boot) / self._rate

    def monotonic(self) -> float:
        return self.at(self._timeline.now)

    def wall_us(self) -> int:
        return int((self._wall + self._timeline.now * self._rate) * 1_000_000)

    def wall_s(self) -> int:
        return self.wall_us() // 1_000_000

    def step(self, seconds: float) -> None:
        """Somebody sets the wall clock."""
        self._wall += seconds


class ComputerLoop(asyncio.AbstractEventLoop):
    """The event loop of one run of one server. Sockets are those of the simulated network."""

    def __init__(
        self, timeline: Timeline, clock: ComputerClock, network: Network, address: str, random: Random
    ) -> None:
        self.timeline = timeline
        self.clock = clock
        self.network = network
        self.address = address
        self.random = random
        self.dead = False
        self.on_turn: Callable[[], None] = lambda: None  # called after each event of this loop
        self.readers: dict[int, Callable[[], object]] = {}

    # -- time

    def time(self) -> float:
        return self.clock.monotonic()

    def call_soon(
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Any:
        return self.timeline.at(self.timeline.now, callback, *args, loop=self)

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Any:
        return self.call_at(self.time() + delay, callback, *args)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Any:
        # The computer must find, when it looks at its clock, that the moment has come.
        return self.timeline.at(self.clock.time_of(when) + 1e-7, callback, *args, loop=self)

    # -- tasks

    def create_task(self, coro: Coroutine[Any, Any, Any], *, name: Any = None, context: Any = None) -> Any:
        return asyncio.Task(coro, loop=self)

    def run_in_executor(self, executor: Any, func: Callable[..., object], *args: Any) -> Any:
        """At once: no other thread shall decide what happens when."""
        done: asyncio.Future[object] = asyncio.Future(loop=self)
        result = func(*args)
        self.call_soon(lambda: done.done() or done.set_result(result))
        return done

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self.dead

    def is_closed(self) -> bool:
        return self.dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What nobody handles fails the run; tasks of a computer that crashed end unfinished."""
        if not self.dead:
            error = context.get("exception")
            self.timeline.failure = error if isinstance(error, Exception) else RuntimeError(str(context))

    # -- descriptors

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        self.readers[fd] = callback

    def remove_reader(self, fd: Any) -> bool:
        return self.readers.pop(fd, None) is not None

    # -- network

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        await asyncio.sleep(DNS_DELAY)
        return [(2, 1, 6, "", (address, port)) for address in self.network.resolve(host)]

    async def sock_connect(self, sock: Any, address: Any) -> None:
        sock.connection = await self.network.connect(self, address[0], address[1])

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], *, sock: Any, **_: Any
    ) -> Any:
        end = sock.connection.dialler
        end.begin(protocol_factory)
        return end, end.protocol

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], *, sock: Any, **_: Any
    ) -> Any:
        return self.network.listen(self, lambda _address: protocol_factory(), sock.port)

    async def create_datagram_endpoint(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], *, sock: Any = None, **_: Any
    ) -> Any:
        return self.network.datagrams(self, protocol_factory(), bound=sock is not None)

"""The connection of a program: one link at a time, and the next one when it is lost, if the program wants
that.

1. A link ends. Its calls raise ConnectionLost (sends: SendInDoubt), but for those that change nothing; its
   transactions are aborted.
2. `_run` connects again, after pauses that double from `Reconnect.first` to `Reconnect.most` seconds.
3. What was open is opened again on the new link, in the order in which it was opened: `Restorable.restore`.
4. Calls that came meanwhile go on: they wait in `live`, and so do those that change nothing.

To let something survive a lost link: implement Restorable, and `add` it when it is open and `remove` it when
it is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from msmq_fast.client.errors import ConnectionLost
from msmq_fast.client.transport import Link
from msmq_fast.protocol.errors import MSMQError, ServiceNotAvailable
from msmq_fast.protocol.frames import Frame

Dial = Callable[[Callable[[], None]], Awaitable[tuple[Link, dict[str, Any]]]]
"""Connects and says hello, with the callback for the end of the link; the link and the answer to
the hello.
"""

_REPEATABLE: Final = frozenset(  # requests that change nothing
    (
        Frame.PING,
        Frame.STATS,
        Frame.SHOW_SNAPSHOT,
        Frame.GET_QUEUE,
        Frame.LIST_QUEUES,
        Frame.SHOW_ACL,
        Frame.EXPLAIN,
        Frame.LIST_OUTGOING,
        Frame.SHOW_OUTGOING,
        Frame.LIST_DIRECTORY,
        Frame.SHOW_DIRECTORY,
        Frame.LIST_TRANSACTIONS,
        Frame.LIST_CERTIFICATES,
        Frame.SHOW_KEYS,
    )
)

_LOG = logging.getLogger("msmq_fast.client")


@dataclass(frozen=True, slots=True)
class Reconnect:
    """How a lost connection is made again. Pauses are seconds, each is drawn from the upper half of its
    length, so that the clients of a server that starts again do not come all at once.
    """

    first: float = 0.1
    most: float = 10.0
    attempts: int | None = None
    """How often without success before the connection is given up; None: for ever."""

    def pause(self, attempt: int) -> float:
        """The pause before an attempt, which counts from 0."""
        import random  # late: few programs lose their connection

        longest = min(self.first * 2.0 ** min(attempt, 60), self.most)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


class Restorable(Protocol):
    """Something that is open at the server and is opened again after the link was lost."""

    async def restore(self, link: Link) -> None:
        """Open it again. Raises ConnectionLost; what the server refuses it with ends it, and is not
        raised.
        """

    def give_up(self, error: MSMQError) -> None:
        """No further link comes: calls that wait raise the error."""


class OpenQueue(Protocol):
    """What senders and subscriptions know of their queue."""

    @property
    def handle(self) -> int:
        """Its number on the present link."""

    @property
    def ended(self) -> MSMQError | None:
        """Why it could not be opened again."""


class Channel:
    """See the module. Made by `Channel.open`."""

    def __init__(self, dial: Dial, policy: Reconnect | None) -> None:
        self._dial = dial
        self._policy = policy
        self._link: Link
        self._hello: dict[str, Any]
        self._open: dict[Restorable, None] = {}
        self._ready = asyncio.Event()  # the link has everything that is open
        self._failed: MSMQError | None = None  # no further attempt is made
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, dial: Dial, policy: Reconnect | None) -> Channel:
        """The channel with its first link. Raises ConnectionLost, AccessDenied."""
        channel = cls(dial, policy)
        await channel._begin()
        return channel

    async def _begin(self) -> None:
        self._link, self._hello = await self._dial(self._ended)
        self._ready.set()
        if self._link.lost is not None:
            self._ended()

    @property
    def hello(self) -> dict[str, Any]:
        """What the server said of itself and its limits."""
        return self._hello

    @property
    def link(self) -> Link:
        """The newest link, which may be lost."""
        return self._link

    @property
    def lasting(self) -> bool:
        """A lost link is followed by another one."""
        return self._policy is not None and self._failed is None and not self._link.disowned

    async def live(self) -> Link:
        """The link, when everything that is open is open on it. Raises what ended the channel."""
        while self._link.lost is not None or not self._ready.is_set():
            if not self.lasting:
                raise self._failed or self._link.lost or ConnectionLost("the connection was closed")
            await self._ready.wait()
        return self._link

    async def request(self, kind: Frame, payload: Any) -> Any:
        """One request on the live link; one that changes nothing is repeated on the next link."""
        while True:
            link = await self.live()
            try:
                return await link.request(kind, payload)
            except ConnectionLost:
                if kind not in _REPEATABLE or not self.lasting:
                    raise

    def add(self, opened: Restorable) -> None:
        """It is open on the link."""
        self._open[opened] = None

    def remove(self, closed: Restorable) -> None:
        """It is closed, or has ended."""
        self._open.pop(closed, None)

    async def close(self) -> None:
        """Close; pending and later calls raise ConnectionLost."""
        if self._task is not None:
            self._task.cancel()
        self._give_up(self._failed or ConnectionLost("the connection was closed by this program"))
        await self._link.close()

    # ------------------------------------------------------------------------------------------- inside

    def _ended(self) -> None:
        """A link ended; also one that ended while it was made."""
        if self._ready.is_set() and self.lasting:
            self._ready.clear()
            _LOG.warning("%s; connecting again", self._link.lost.detail if self._link.lost else "lost")
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        policy = self._policy
        assert policy is not None  # noqa: S101 - `lasting`
        attempt = 0
        while True:
            await asyncio.sleep(policy.pause(attempt))
            try:
                self._link, self._hello = await self._dial(self._ended)
                for opened in list(self._open):
                    if opened in self._open:  # not closed meanwhile
                        await opened.restore(self._link)
            except ServiceNotAvailable as error:  # ConnectionLost is one
                attempt += 1
                await self._link.close()  # it is still open if the server refused a queue for now
                if attempt == policy.attempts:
                    _LOG.error("not connected again: %s", error)
                    self._give_up(error)
                    return
            except MSMQError as error:  # a token that is not valid any more: no pause cures that
                _LOG.error("not connected again: %s", error)
                self._give_up(error)
                return
            except Exception as error:  # nothing else would wake those that wait
                _LOG.exception("not connected again")
                self._give_up(ConnectionLost(f"not connected again: {error!r}"))
                return
            else:
                break
        _LOG.info("connected again after %d attempts", attempt + 1)
        self._task = None
        self._ready.set()
        if self._link.lost is not None:
            self._ended()

    def _give_up(self, error: MSMQError) -> None:
        self._failed = error
        self._task = None
        self._ready.set()
        for opened in list(self._open):
            opened.give_up(error)

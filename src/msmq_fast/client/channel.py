"""The connection of a program. It uses one link at a time; if the program asks for reconnection, a new link
replaces a lost one.

1. A link ends. Its pending calls raise ConnectionLost (sends: SendInDoubt), except calls that change nothing.
   Its transactions are aborted.
2. `_run` connects again, after pauses that double from `Reconnect.first` to `Reconnect.most` seconds.
3. Everything that was open is opened again on the new link, in its original order: `Restorable.restore`.
4. Calls that were made in the meantime, and the pending calls that change nothing, have waited in `live`:
   they now use the new link.

To let an object survive a lost link: implement Restorable, call `add` when the object is open and `remove`
when it is closed.
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
"""A function that connects and sends the hello. It returns (link, reply to the hello). Its argument is a
function that is called when the link ends.
"""

_REPEATABLE: Final = frozenset(  # requests that change nothing
    (
        Frame.PING,
        Frame.STATS,
        Frame.SHOW_SNAPSHOT,
        Frame.GET_QUEUE,
        Frame.LIST_QUEUES,
        Frame.PAGE_QUEUES,
        Frame.SHOW_ACL,
        Frame.EXPLAIN,
        Frame.LIST_OUTGOING,
        Frame.SHOW_OUTGOING,
        Frame.LIST_DIRECTORY,
        Frame.SHOW_DIRECTORY,
        Frame.LIST_TRANSACTIONS,
        Frame.LIST_CERTIFICATES,
        Frame.SHOW_KEYS,
        Frame.LIST_USERS,
        Frame.SHOW_CONFIG,
        Frame.CHECK_CONFIG,
    )
)

_LOG = logging.getLogger("msmq_fast.client")


@dataclass(frozen=True, slots=True)
class Reconnect:
    """How a lost connection is established again. Pauses are in seconds.

    Each pause is chosen at random between half of its nominal length and the full length, so that the clients
    of a restarted server do not all connect at once.
    """

    first: float = 0.1
    most: float = 10.0
    attempts: int | None = None
    """Number of failed attempts after which the client no longer tries to connect; None: no limit."""

    def pause(self, attempt: int) -> float:
        """Return the pause in seconds before an attempt to connect; `attempt` counts from 0."""
        import random  # late: few programs lose their connection

        longest = min(self.first * 2.0 ** min(attempt, 60), self.most)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


class Restorable(Protocol):
    """An object that is open at the server and is opened again after its link was lost."""

    async def restore(self, link: Link) -> None:
        """Open the object again on `link`. Raises ConnectionLost. If the server refuses to open the object,
        the object ends, and the error is not raised.
        """

    def give_up(self, error: MSMQError) -> None:
        """Handle the end of the channel: the client does not connect again, and waiting calls raise
        `error`.
        """


class OpenQueue(Protocol):
    """The interface of a queue that its senders and subscriptions use."""

    @property
    def handle(self) -> int:
        """The queue's handle on the current link."""

    @property
    def ended(self) -> MSMQError | None:
        """The error with which the server refused to open the queue again; None while the queue is usable."""


class Channel:
    """The connection of a program over successive links: see the text of the module. Made by
    `Channel.open`.
    """

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
        """Return a channel with its first link. Raises ConnectionLost, AccessDenied."""
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
        """The server's reply to the hello: its identity and its limits."""
        return self._hello

    @property
    def link(self) -> Link:
        """The newest link, which may already be lost."""
        return self._link

    @property
    def lasting(self) -> bool:
        """Whether a lost link is replaced by a new one."""
        return self._policy is not None and self._failed is None and not self._link.disowned

    async def live(self) -> Link:
        """Return the current link once all restorable objects are open on it. Raises the error that ended the
        channel.
        """
        while self._link.lost is not None or not self._ready.is_set():
            if not self.lasting:
                raise self._failed or self._link.lost or ConnectionLost("the connection was closed")
            await self._ready.wait()
        return self._link

    async def request(self, kind: Frame, payload: Any) -> Any:
        """Make one request on the live link. If the link is lost, a request that changes nothing is repeated
        on the next link.
        """
        while True:
            link = await self.live()
            try:
                return await link.request(kind, payload)
            except ConnectionLost:
                if kind not in _REPEATABLE or not self.lasting:
                    raise

    def add(self, opened: Restorable) -> None:
        """Register an object that is open on the current link, so that it is opened again on the next
        link.
        """
        self._open[opened] = None

    def remove(self, closed: Restorable) -> None:
        """Deregister an object that was closed or has ended."""
        self._open.pop(closed, None)

    async def close(self) -> None:
        """Close the channel; pending and later calls raise ConnectionLost."""
        if self._task is not None:
            self._task.cancel()
        self._give_up(self._failed or ConnectionLost("the connection was closed by this program"))
        await self._link.close()

    # ------------------------------------------------------------------------------------------- inside

    def _ended(self) -> None:
        """Handle the end of a link, including one that ended while it was being established."""
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
            except Exception as error:  # nothing else would wake the waiting callers
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

"""A connection to a queue manager."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

from msmq_fast.client.channel import Channel, Reconnect
from msmq_fast.client.endpoint import Endpoint, parse_endpoint
from msmq_fast.client.errors import ConnectionLost
from msmq_fast.client.opening import Opening
from msmq_fast.client.queue import Queue
from msmq_fast.client.transaction import Transaction
from msmq_fast.client.transport import Link, open_link
from msmq_fast.protocol.frames import PROTOCOL_VERSION, Access, Frame, Share

if TYPE_CHECKING:
    from msmq_fast.client.admin import Admin

_NAME_LENGTH: Final = 64  # characters: as many as the server keeps


class Connection:
    """A connection to a queue manager; its requests are pipelined. Made by `connect()`, closed by `close()`
    or `async with`.

    `admin` holds the requests of operators. Calls that are pending when the connection is lost raise
    ConnectionLost. The argument `reconnect` of `connect()` decides whether the client connects again.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._admin: Admin | None = None

    @property
    def admin(self) -> Admin:
        """The requests of operators, grouped by what they concern: see Admin."""
        if self._admin is None:
            from msmq_fast.client.admin import Admin  # late: its many types take as long as all the rest

            self._admin = Admin(self._channel)
        return self._admin

    @property
    def hello(self) -> dict[str, Any]:
        """The server's reply to the hello: its identity and its limits."""
        return self._channel.hello

    @property
    def connected(self) -> bool:
        """Whether the connection is established; False from its loss until the client has connected again."""
        return self._channel.link.lost is None

    @property
    def computer_name(self) -> str:
        """Name of the queue manager's computer."""
        return str(self.hello["name"])

    @property
    def guid(self) -> UUID:
        """GUID of the queue manager."""
        return UUID(bytes_le=self.hello["guid"])

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection and all its queues; pending calls raise ConnectionLost."""
        await self._channel.close()

    async def request(self, kind: Frame, payload: Any) -> Any:
        """Make one request for which the client has no method; returns the payload of the reply."""
        return await self._channel.request(kind, payload)

    async def ping(self) -> None:
        """Make one round trip to the server."""
        await self._channel.request(Frame.PING, [])

    def open(
        self, name: str, access: Access = Access.SEND | Access.RECEIVE, share: Share = Share.DENY_NONE
    ) -> Opening[Queue]:
        """Open a queue by name: `await connection.open(…)`, or `async with connection.open(…) as queue`.

        The name is a path (`.\\private$\\orders`, `orders`) or a format name
        (`DIRECT=TCP:10.0.0.7\\private$\\orders`). For sending, it may also be several names separated by
        commas, or a distribution list: each message then goes to all of the queues.

        Raises QueueNotFound, IllegalFormatName, SharingViolation, AccessDenied, UnsupportedAccessMode.
        """
        return Opening(Queue(self._channel, name, access, share).opened())

    def transaction(self) -> Transaction:
        """Return a transaction: its sends and receives take effect together or not at all. See
        Transaction.
        """
        return Transaction(self._channel, next(self._numbers))


class Instrumentation(Protocol):
    """Makes the connections of programs that are observed; `msmq_fast.client.telemetry.Telemetry` is one."""

    def connection(self, channel: Channel, target: Endpoint) -> Connection:
        """Return the connection over `channel`, which leads to `target`."""


def connect(
    endpoint: str | None = None,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    timeout: float = 10.0,
    client: str = "",
    reconnect: bool | Reconnect = False,
    telemetry: Instrumentation | None = None,
) -> Opening[Connection]:
    """Connect to a queue manager: `await connect(…)`, or `async with connect(…) as connection`.

    `endpoint` is the path of a Unix socket, `unix:/path`, `tcp://host:port` or `tls://host:port`; None: the
    value of the variable MSMQ_FAST_ENDPOINT. `timeout` is in seconds and limits connecting and the hello
    together. `client` is the name of the program in traces; default: the name of its script. Raises
    ValueError for an invalid endpoint, ConnectionLost, AccessDenied for a wrong token.

    With `reconnect`, the client connects again when the connection is lost, with the pauses of `Reconnect`.
    Queues, senders and subscriptions continue; new calls wait for the new connection, and pending calls that
    change nothing are repeated. Of the other pending calls, a send raises SendInDoubt, a commit raises
    CommitInDoubt, and the rest raise ConnectionLost; open transactions are aborted, and cursors are closed.
    The default is off, since only the program can decide what to do with a message in doubt.

    `telemetry` makes spans and metrics of OpenTelemetry for this connection: see
    `msmq_fast.client.telemetry.Telemetry`.
    """
    target = parse_endpoint(endpoint)
    policy = (Reconnect() if reconnect else None) if isinstance(reconnect, bool) else reconnect

    async def dial(ended: Callable[[], None]) -> tuple[Link, dict[str, Any]]:
        try:
            async with asyncio.timeout(timeout):
                return await _dial(target, token, tls, client, ended)
        except TimeoutError:
            raise ConnectionLost(f"no answer from {target} within {timeout} s") from None

    async def made() -> Connection:
        channel = await Channel.open(dial, policy)
        return Connection(channel) if telemetry is None else telemetry.connection(channel, target)

    return Opening(made())


def _program() -> str:
    """Return the name of the running script, or "" in an interactive interpreter."""
    return Path(sys.argv[0]).name[:_NAME_LENGTH] if sys.argv else ""


async def _dial(
    target: Endpoint, token: str | None, tls: ssl.SSLContext | None, client: str, ended: Callable[[], None]
) -> tuple[Link, dict[str, Any]]:
    link = await open_link(target, tls, ended)
    hello: dict[str, Any] = {"version": PROTOCOL_VERSION, "client": client or _program()}
    if token is not None:
        hello["token"] = token
    try:
        return link, await link.request(Frame.HELLO, hello)
    except ConnectionLost as lost:
        await link.close()
        if link.answered or target.path or target.tls:
            raise
        raise ConnectionLost(
            f"no answer from {target} ({lost.detail}): a port with TLS needs {target.other_scheme}"
        ) from None
    except BaseException:
        await link.close()
        raise

"""The network operations of the transfer engine: resolves names, opens connections, sends pings over UDP."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from uuid import UUID

from msmq_fast.mqqb.endpoint import Endpoint, SendPing
from msmq_fast.mqqb.hops import Progress
from msmq_fast.mqqb.transfer import Connect, Resolve
from msmq_fast.packet.session import Ping
from msmq_fast.server.net.connections import Share, Slot

__all__ = ["Network", "PeerPorts", "Unreachable", "ask"]

_COOKIE = 1
_TOO_MANY = "too many connections are open (limits.outgoing_connections)"
_V6_FIELDS = 4  # address, port, flow, scope

_log = logging.getLogger("msmq_fast.network")

# Makes the protocol of a dialled connection, which calls Slot.leave when it is lost.
Dialled = Callable[[int, Slot], asyncio.BaseProtocol]

# Creates the engine from the function that executes its effects.
MakeEngine = Callable[[Callable[[Resolve | Connect | SendPing], None]], Endpoint]


@dataclass(frozen=True, slots=True)
class PeerPorts:
    """The ports of other queue managers, and the time limit of a connect in seconds."""

    mqqb: int
    ping: int
    connect_timeout: float


class Network:
    """Executes the network operations (effects) that one Endpoint, `engine`, requests, on one event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        touch: Callable[[], None],
        ports: PeerPorts,
        source: str | None,
        share: Share,
        make_engine: MakeEngine,
        dialled: Dialled,
    ) -> None:
        """`source` is the local address of outgoing connections; None if the system chooses it. `share`
        counts and limits the connections; `dialled` makes the protocol object of each one.
        """
        self._loop = loop
        self._monotonic = monotonic
        self._touch = touch
        self._ports = ports
        self._source = source
        self._share = share
        self._ping_transports: dict[int, asyncio.DatagramTransport] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._dialled = dialled
        self.engine = make_engine(self.effect)

    def effect(self, effect: Resolve | Connect | SendPing) -> None:
        """Start a network operation that the engine requests. Its result is reported to the engine later."""
        match effect:
            case Resolve(link, host):
                self._spawn(self._resolve(link, host))
            case Connect(link, address):
                self._spawn(self._connect(link, address))
            case SendPing(address, datagram):
                self._spawn(self._ping(address, datagram))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _resolve(self, link: int, host: str) -> None:
        try:
            found = await asyncio.wait_for(
                self._loop.getaddrinfo(host, self._ports.mqqb, type=socket.SOCK_STREAM),
                self._ports.connect_timeout,
            )
        except (OSError, TimeoutError, UnicodeError) as error:
            self._touch()
            self.engine.transfer.failed(link, _reason(error), self._monotonic())
        else:
            self._touch()
            addresses = [_address(entry[4]) for entry in found]
            self.engine.transfer.resolved(link, addresses, self._monotonic())

    async def _connect(self, link: int, address: str) -> None:
        try:
            await asyncio.wait_for(self._open(link, address), self._ports.connect_timeout)
        except _Unopened as error:
            self._touch()
            self.engine.transfer.failed(link, str(error), self._monotonic(), error.cause)
        except (OSError, TimeoutError) as error:
            self._touch()
            cause = _cause(error, Progress.CONNECT_FAILURE)
            self.engine.transfer.failed(link, _reason(error), self._monotonic(), cause)

    async def _open(self, link: int, address: str) -> None:
        slot = self._share.enter(address)
        if slot is None:
            raise _Unopened(OSError(errno.EMFILE, _TOO_MANY), Progress.CREATE_FAILURE)
        try:
            opened = self._socket(address)
        except BaseException:
            slot.leave()
            raise
        try:
            await self._loop.sock_connect(opened, _endpoint(address, self._ports.mqqb))
            await self._loop.create_connection(lambda: self._dialled(link, slot), sock=opened)
        except BaseException:
            slot.leave()
            opened.close()
            raise

    def _socket(self, address: str) -> socket.socket:
        """Return a socket for one connection, bound to the source address. Raises _Unopened."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            made = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            raise _Unopened(error, Progress.CREATE_FAILURE) from None
        made.setblocking(False)
        if self._source and _same_family(self._source, address):
            try:
                made.bind((self._source, 0))
            except OSError as error:
                made.close()
                raise _Unopened(error, Progress.BIND_FAILURE) from None
        return made

    # ------------------------------------------------------------------------------------------------- ping

    async def _ping(self, address: str, datagram: bytes) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            transport = self._ping_transports.get(family)
            if transport is None:
                transport, _ = await self._loop.create_datagram_endpoint(
                    lambda: _Answers(self._answered), family=family
                )
                self._ping_transports[family] = transport
            transport.sendto(datagram, (address, self._ports.ping))
        except OSError as error:
            # Nothing was asked, so nothing is answered: the engine's timer ends it.
            _log.info("ping of %s: %s", address, _reason(error))

    def _answered(self, datagram: bytes) -> None:
        self._touch()
        self.engine.ping_answered(datagram, self._monotonic())

    def close(self) -> None:
        """Cancel all operations in progress."""
        for task in self._tasks:
            task.cancel()
        for transport in self._ping_transports.values():
            transport.close()
        self._ping_transports.clear()


class _Answers(asyncio.DatagramProtocol):
    def __init__(self, received: Callable[[bytes], None]) -> None:
        self._received = received

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._received(data)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = getattr(error, "strerror", None) or str(error)
    if isinstance(error, OSError) and error.errno is not None and text.startswith("Connect call failed"):
        return os.strerror(error.errno)  # asyncio writes the address in place of the reason
    return text


class _Unopened(Exception):
    """No socket could be opened for a connection; `cause` is reported to the outgoing queues that wait for
    it.
    """

    def __init__(self, error: OSError, cause: Progress) -> None:
        super().__init__(_reason(error))
        self.cause = _cause(error, cause)


_CAUSES = {
    errno.ENOBUFS: Progress.LOW_RESOURCE,
    errno.ENOMEM: Progress.LOW_RESOURCE,
    errno.EAFNOSUPPORT: Progress.NOT_ENABLED,
    errno.ENETUNREACH: Progress.UNREACHABLE,
    errno.EHOSTUNREACH: Progress.UNREACHABLE,
}
"""The progress to report, by the error of the system; for other errors it depends on what failed."""


def _cause(error: Exception, usual: Progress) -> Progress:
    if isinstance(error, TimeoutError):
        return Progress.TIMED_OUT
    code = error.errno if isinstance(error, OSError) else None
    return usual if code is None else _CAUSES.get(code, usual)


def _address(found: tuple[object, ...]) -> str:
    """Return the text of a resolved address; a link-local address keeps its interface."""
    scope = found[3] if len(found) == _V6_FIELDS else 0
    return f"{found[0]}%{scope}" if scope and "%" not in str(found[0]) else str(found[0])


def _endpoint(address: str, port: int) -> tuple[object, ...]:
    """Return the socket address for an IP address given as text and a port."""
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return found[0][4]


def _same_family(first: str, second: str) -> bool:
    return (":" in first) == (":" in second)


class Unreachable(Exception):
    """Raised if the ping cannot be sent. Its text is a single line for the user."""


async def ask(host: str, port: int, own: UUID, seconds: float) -> tuple[str, UUID, bool] | None:
    """Send one ping. Return (address, GUID of the queue manager, whether it accepts sessions); None if no
    answer arrives in time.

    Raises Unreachable.
    """
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Ping] = loop.create_future()

    def received(datagram: bytes) -> None:
        answer = Ping.decode(datagram[: Ping.SIZE])
        if answer is not None and answer.cookie == _COOKIE and not answered.done():
            answered.set_result(answer)

    try:
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Answers(received), remote_addr=(host, port)
        )
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"{host}: {_reason(error)}") from None
    address = str(transport.get_extra_info("peername")[0])
    try:
        transport.sendto(Ping(_COOKIE, own).encode())
        answer = await asyncio.wait_for(answered, seconds)
    except TimeoutError:
        return None
    finally:
        transport.close()
    return address, answer.manager, not answer.refused

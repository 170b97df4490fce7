"""The network between the computers: TCP connections that are slow, stall, break in the middle of a packet,
are known to one side only; datagrams that get lost, come twice or late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from .timeline import ComputerLoop, Timeline

HIGH_WATER = 256 << 10  # bytes under way and in the sender's memory above which it is told to pause
LOW_WATER = 64 << 10


@dataclass
class Weather:
    """How one pair of computers is connected. Times in seconds."""

    latency: float = 0.0005
    jitter: float = 0.0002
    splits: float = 0.1  # chance that what was written in one piece arrives in several
    refusals: float = 0.0  # chance that a connect fails
    orphans: float = 0.0  # chance that only the accepting side believes in a connection
    losses: float = 0.0  # of datagrams; as many come twice
    stalled_until: float = 0.0
    severed_until: float = 0.0

    def calm(self) -> None:
        """No more trouble."""
        self.splits = self.refusals = self.orphans = self.losses = 0.0
        self.stalled_until = self.severed_until = 0.0


class End(asyncio.Transport):
    """One end of a connection, as its protocol sees it."""

    def __init__(self, connection: Connection, loop: ComputerLoop, peer: str) -> None:
        super().__init__()
        self._connection = connection
        self.loop = loop
        self.peer = peer
        self.other: End
        self.protocol: Any = None
        self.closed = False  # nothing more is written, or comes in
        self._arrived = 0.0  # when the last byte on its way to the other end gets there
        self._held = 0.0  # before that none does
        self._flying = 0  # bytes on their way to the other end
        self._pieces: list[tuple[bytes, bool]] = []  # (bytes, last) that wait for this end to read
        self._paused = False  # the protocol was told to write no more
        self._reading = True

    # -- what a protocol calls

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self.peer, 40000) if name == "peername" else default

    def write(self, data: Any) -> None:
        if self.closed or not data:
            return
        self._connection.carry(self, bytes(data))
        self._flying += len(data)
        if self._flying > HIGH_WATER and not self._paused:
            self._paused = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        return max(0, self._flying - LOW_WATER)

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        if self._pieces:
            self.loop.call_soon(self._read)

    def close(self) -> None:
        if not self.closed:
            self._connection.carry(self, b"", last=True)
            self._lose()

    def abort(self) -> None:
        if not self.closed:
            self._connection.cut(self)
            self._lose()

    # -- what the network does

    def begin(self, factory: Callable[[], Any]) -> None:
        self.protocol = factory()
        self.protocol.connection_made(self)
        if self.closed:
            self.loop.call_soon(self.protocol.connection_lost, None)

    def arrived(self, data: bytes, last: bool) -> None:
        """Bytes got to this end."""
        self.other._flying -= len(data)
        if self.closed:
            return
        self._pieces.append((data, last))
        self._read()
        other = self.other
        if other._paused and other._flying <= LOW_WATER and not other.closed:
            other._paused = False
            other.loop.call_soon(other.protocol.resume_writing)

    def _read(self) -> None:
        while self._pieces and self._reading and not self.closed:
            data, last = self._pieces.pop(0)
            rest = memoryview(data)
            while rest and not self.closed and not isinstance(self.protocol, asyncio.BufferedProtocol):
                self.protocol.data_received(bytes(rest))
                rest = rest[len(rest) :]
            while rest and not self.closed:
                room = self.protocol.get_buffer(len(rest))
                count = min(len(room), len(rest))
                room[:count] = rest[:count]
                self.protocol.buffer_updated(count)
                rest = rest[count:]
                if not self._reading and rest:
                    self._pieces.insert(0, (bytes(rest), last))
                    return
            if last and not self.closed:
                self.protocol.eof_received()
                self.close()

    def _lose(self, error: Exception | None = None) -> None:
        if not self.closed:
            self.closed = True
            self._connection.ended(self)
            if self.protocol is not None:  # not yet: its computer is about to begin
                self.loop.call_soon(self.protocol.connection_lost, error)

    def reset(self) -> None:
        """This end hears that the connection is broken."""
        self._lose(ConnectionResetError(104, "Connection reset by peer"))


class Connection:
    """Two ends. Each direction keeps its order."""

    def __init__(self, network: Network, dialler: ComputerLoop, acceptor: ComputerLoop) -> None:
        self.network = network
        self.weather = network.weather(dialler.address, acceptor.address)
        self.dialler = End(self, dialler, acceptor.address)
        self.acceptor = End(self, acceptor, dialler.address)
        self.dialler.other, self.acceptor.other = self.acceptor, self.dialler
        self.broken = False

    def carry(self, sender: End, data: bytes, *, last: bool = False) -> None:
        """Bytes leave one end; when the connection is broken they go nowhere."""
        network, weather = self.network, self.weather
        timeline, random = network.timeline, network.random
        if self.broken:
            # Whoever writes into a broken connection hears of it, sooner or later.
            timeline.after(random.uniform(0.001, 20.0), sender.reset, loop=sender.loop)
            return
        pieces = [data]
        if len(data) > 1 and random.random() < weather.splits:
            at = random.randrange(1, len(data))
            pieces = [data[:at], data[at:]]
        for number, piece in enumerate(pieces):
            delay = weather.latency + random.random() * weather.jitter
            start = max(timeline.now, weather.stalled_until, weather.severed_until)
            sender._arrived = max(sender._arrived, start + delay)
            timeline.at(sender._arrived, self._arrive, sender, piece, last and number == len(pieces) - 1)

    def _arrive(self, sender: End, piece: bytes, last: bool) -> None:
        weather, timeline = self.weather, self.network.timeline
        stalled = max(weather.stalled_until, weather.severed_until)
        if stalled > timeline.now:
            sender._held = max(sender._held, stalled + weather.latency)
            sender._arrived = max(sender._arrived, sender._held)
        if sender._held > timeline.now:
            # Everything on the way waits, in its order.
            timeline.at(sender._held, self._arrive, sender, piece, last)
            return
        if self.broken:
            return
        target = sender.other
        timeline.at(timeline.now, target.arrived, piece, last, loop=target.loop)

    def cut(self, knower: End | None = None, *, silent: bool = False) -> None:
        """Everything on its way is lost. `knower` knows already; `silent`: nobody is told before long."""
        if self.broken:
            return
        self.broken = True
        for end in (self.dialler, self.acceptor):
            if end is not knower and not end.closed:
                delay = self.network.random.uniform(30.0, 400.0) if silent else self.weather.latency
                self.network.timeline.after(delay, end.reset, loop=end.loop)

    def ended(self, end: End) -> None:
        """An end was closed."""
        if self.dialler.closed and self.acceptor.closed:
            self.network.connections.pop(self, None)


class Socket:
    """Stands for a socket that is to be connected."""

    def __init__(self) -> None:
        self.connection: Connection | None = None

    def getsockname(self) -> tuple[str, int]:
        return "", 0

    def close(self) -> None:
        if self.connection is not None:
            self.connection.dialler.abort()


class Server:
    """What create_server returns."""

    def __init__(self, network: Network, address: str, port: int) -> None:
        self._network = network
        self._at = (address, port)

    def close(self) -> None:
        self._network.listeners.pop(self._at, None)


class Datagrams(asyncio.DatagramTransport):
    """A UDP socket."""

    def __init__(self, network: Network, loop: ComputerLoop, protocol: Any, port: int) -> None:
        super().__init__({"sockname": (loop.address, port)})
        self._network = network
        self.loop = loop
        self.protocol = protocol
        self.port = port

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self.loop.address, self.port) if name == "sockname" else default

    def sendto(self, data: Any, addr: Any = None) -> None:
        self._network.datagram(self, bytes(data), addr)

    def close(self) -> None:
        self._network.sockets.pop((self.loop.address, self.port), None)


MQQB_PORT, PING_PORT, HTTP_PORT = 1801, 3527, 80


class Network:
    """All links. `names` are the host names that can be resolved."""

    def __init__(self, timeline: Timeline, random: Random) -> None:
        self.timeline = timeline
        self.random = random
        self.names: dict[str, str] = {}
        self.listeners: dict[tuple[str, int], tuple[ComputerLoop, Callable[[], Any]]] = {}
        self.sockets: dict[tuple[str, int], Datagrams] = {}
        self.connections: dict[Connection, None] = {}
        self.opened = 0
        self._weather: dict[tuple[str, str], Weather] = {}
        self._port = 50_000

    def weather(self, first: str, second: str) -> Weather:
        """Of one pair."""
        pair = (min(first, second), max(first, second))
        return self._weather.setdefault(pair, Weather())

    def everywhere(self) -> list[tuple[tuple[str, str], Weather]]:
        """All pairs that were used so far."""
        return list(self._weather.items())

    def resolve(self, host: str) -> list[str]:
        """The addresses of a name. Raises OSError."""
        address = self.names.get(host.casefold())
        if address is None or self.random.random() < 0.02:
            raise OSError(-2, "Name or service not known")
        return [address]

    # -- TCP

    def listen(self, loop: ComputerLoop, factory: Callable[[str], Any], port: int = MQQB_PORT) -> Server:
        """`factory` makes the protocol of a connection from an address."""
        self.listeners[loop.address, port] = (loop, factory)
        return Server(self, loop.address, port)

    async def connect(self, loop: ComputerLoop, address: str, port: int = MQQB_PORT) -> Connection:
        """Raises OSError; may never end, as a connect into nowhere does."""
        weather = self.weather(loop.address, address)
        done: asyncio.Future[Connection] = loop.create_future()
        self.timeline.after(self._delay(weather), self._incoming, loop, (address, port), weather, done)
        connection = await done
        if connection.broken:
            raise ConnectionResetError(104, "Connection reset by peer")
        return connection

    def _delay(self, weather: Weather) -> float:
        return weather.latency + self.random.random() * weather.jitter

    def _incoming(
        self, loop: ComputerLoop, at: tuple[str, int], weather: Weather, done: asyncio.Future[Connection]
    ) -> None:
        if loop.dead or done.done() or weather.severed_until > self.timeline.now:
            return  # nobody answers
        listener = self.listeners.get(at)
        if listener is None or self.random.random() < weather.refusals:
            error = ConnectionRefusedError(111, "Connection refused")
            self.timeline.after(self._delay(weather), _fail, done, error, loop=loop)
            return
        there, factory = listener
        connection = Connection(self, loop, there)
        self.connections[connection] = None
        self.opened += 1
        accepted = partial(factory, loop.address)
        self.timeline.at(self.timeline.now, connection.acceptor.begin, accepted, loop=there)
        if self.random.random() < weather.orphans:
            connection.broken = True
            connection.dialler.closed = True
            self.timeline.after(self.random.uniform(0.01, 300.0), connection.acceptor.reset, loop=there)
            error = ConnectionResetError(104, "Connection reset by peer")
            self.timeline.after(self._delay(weather), _fail, done, error, loop=loop)
            return
        self.timeline.after(self._delay(weather), self._established, connection, done)

    def _established(self, connection: Connection, done: asyncio.Future[Connection]) -> None:
        if connection.dialler.loop.dead or done.done():
            connection.dialler.closed = True
            connection.cut(connection.dialler)
            return
        self.timeline.at(self.timeline.now, _succeed, done, connection, loop=connection.dialler.loop)

    # -- UDP

    def datagrams(self, loop: ComputerLoop, protocol: Any, *, bound: bool) -> tuple[Datagrams, Any]:
        port = PING_PORT
        if not bound:
            self._port += 1
            port = self._port
        transport = Datagrams(self, loop, protocol, port)
        self.sockets[loop.address, port] = transport
        protocol.connection_made(transport)
        return transport, protocol

    def datagram(self, sender: Datagrams, data: bytes, to: tuple[str, int]) -> None:
        weather = self.weather(sender.loop.address, to[0])
        copies = 1 if self.random.random() >= weather.losses else self.random.choice([0, 2])
        source = (sender.loop.address, sender.port)
        for _ in range(copies):
            self.timeline.after(self._delay(weather), self._deliver, weather, to, data, source)

    def _deliver(self, weather: Weather, to: tuple[str, int], data: bytes, source: tuple[str, int]) -> None:
        socket = self.sockets.get((to[0], to[1]))
        if socket is not None and weather.severed_until <= self.timeline.now:
            received = socket.protocol.datagram_received
            self.timeline.at(self.timeline.now, received, data, source, loop=socket.loop)

    # -- trouble

    def gone(self, loop: ComputerLoop, *, silent: bool) -> None:
        """A computer crashed: its peers hear of it, or not (the power went out)."""
        for at in [at for at in self.listeners if at[0] == loop.address]:
            del self.listeners[at]
        for key in [key for key in self.sockets if key[0] == loop.address]:
            del self.sockets[key]
        for connection in list(self.connections):
            for end in (connection.dialler, connection.acceptor):
                if end.loop is loop:
                    end.closed = True
                    connection.cut(end, silent=silent)
                    connection.ended(end)

    def between(self, pair: tuple[str, str]) -> list[Connection]:
        """The connections of a pair of computers."""
        return [
            connection
            for connection in self.connections
            if {connection.dialler.loop.address, connection.acceptor.loop.address} == set(pair)
        ]


def _fail(done: asyncio.Future[Connection], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)


def _succeed(done: asyncio.Future[Connection], connection: Connection) -> None:
    if done.done():
        connection.dialler.closed = True
        connection.cut(connection.dialler)
    else:
        done.set_result(connection)

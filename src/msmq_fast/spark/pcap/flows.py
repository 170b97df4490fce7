"""Tracks the connections of a capture: both endpoints, both directions in stream order, and how each
connection ended.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar

from msmq_fast.spark.pcap.layers import ACK, FIN, RST, SYN, Segment, address_text
from msmq_fast.spark.pcap.reassembly import Direction, Piece

MAX_CONNECTIONS: Final = 65_536  # the limit at one time, closed connections included
Endpoint = tuple[bytes, int]
Item = TypeVar("Item")


class Reader(Protocol[Item]):
    """Converts the bytes of one direction of a connection to items, such as rows of a table."""

    def begin(self, *, whole: bool) -> None:
        """Called before the first call of `feed`. `whole`: the bytes of that call are the beginning of the
        stream.
        """

    def feed(self, data: bytes) -> list[Item]:
        """Processes the next bytes in stream order. Returns the items that they complete."""

    def gap(self, missing: int) -> list[Item]:
        """Called when the next `missing` bytes of the stream were not captured. Returns the items that are
        complete by then.
        """

    def end(self) -> list[Item]:
        """Called at the end of the stream. Returns the remaining items."""


class Connection:
    """One TCP connection. Direction 0 is from the client to the server."""

    __slots__ = (
        "bytes",
        "client",
        "closed",
        "directions",
        "finished",
        "first_us",
        "handshake",
        "initial",
        "last_us",
        "missing",
        "name",
        "readers",
        "segments",
        "server",
        "turn",
    )

    def __init__(self, client: Endpoint, server: Endpoint, turn: int, first_us: int, limit: int) -> None:
        self.client = client
        self.server = server
        self.turn = turn  # number of this connection among those between the same two endpoints, from 1
        self.first_us = self.last_us = first_us
        self.directions = (Direction(limit), Direction(limit))
        self.readers: list[Reader[object] | None] = [None, None]
        self.closed: str | None = None  # the reason: fin, rst, replaced, forgotten, end_of_capture
        self.handshake = False  # whether its SYN was captured
        self.initial = -1
        self.finished: list[int | None] = [None, None]  # the sequence number after the last byte
        self.segments = 0
        self.bytes = [0, 0]
        self.missing = [0, 0]
        again = f"#{turn}" if turn > 1 else ""  # the two ports were reused
        self.name = f"{endpoint_text(client)}->{endpoint_text(server)}{again}"


def endpoint_text(endpoint: Endpoint) -> str:
    """Returns address:port, with an IPv6 address in brackets."""
    text = address_text(endpoint[0])
    return f"[{text}]:{endpoint[1]}" if len(endpoint[0]) == 16 else f"{text}:{endpoint[1]}"


def share_of(segment: Segment, shares: int) -> int:
    """The connections of a capture are divided into `shares` shares. Returns the number of the share, from 0,
    to which the connection of a segment belongs. The number is the same for both directions of the
    connection.
    """
    ends = sorted(((segment.source, segment.source_port), (segment.destination, segment.destination_port)))
    key = b"".join(address + port.to_bytes(2, "big") for address, port in ends)
    return zlib.crc32(key) % shares


class Conversations(Generic[Item]):
    """Tracks all connections of a capture.

    Memory is bounded. At most `flow_limit` bytes in one direction of a connection, and at most `total_limit`
    bytes in all directions together, wait for missing segments. At most `max_connections` connections are
    remembered, closed ones included. If the beginning of a connection was not captured, the side whose port
    is in `ports` is the server.
    """

    def __init__(
        self,
        new_reader: Callable[[Connection, int], Reader[Item]],
        ports: frozenset[int],
        *,
        flow_limit: int,
        total_limit: int,
        max_connections: int = MAX_CONNECTIONS,
        ended: Callable[[Connection], None] = lambda connection: None,
    ) -> None:
        """`new_reader(connection, direction)` returns the Reader of a direction. `ended` is called once for
        each connection, after its last item.
        """
        self._new_reader = new_reader
        self._ports = ports
        self._flow_limit = flow_limit
        self._total_limit = total_limit
        self._max_connections = max_connections
        self._known: dict[tuple[Endpoint, Endpoint], tuple[Connection, int]] = {}
        self._waiting = 0
        self._ended = ended

    def add(self, segment: Segment) -> Iterator[tuple[Connection, int, Item]]:
        """Yields (connection, direction, item) for all items that this segment completes."""
        source = (segment.source, segment.source_port)
        destination = (segment.destination, segment.destination_port)
        flags = segment.flags
        found = self._known.get((source, destination))
        if flags & SYN and not flags & ACK and found is not None:
            connection = found[0]
            if connection.closed is not None or connection.initial != segment.sequence:
                yield from self._close(connection, "replaced")
                found = None
        if found is None:
            if len(self._known) >= 2 * self._max_connections:
                yield from self._forget()
            found = self._open(segment, source, destination)
        connection, side = found
        connection.segments += 1
        connection.last_us = segment.time_us
        if connection.closed is None:
            yield from self._follow(connection, side, segment)

    def end(self) -> Iterator[tuple[Connection, int, Item]]:
        """Yields the remaining items at the end of the capture."""
        for connection, side in list(self._known.values()):
            if side == 0:
                yield from self._close(connection, "end_of_capture")

    def _open(self, segment: Segment, source: Endpoint, destination: Endpoint) -> tuple[Connection, int]:
        calling = segment.flags & SYN
        if calling:
            answered = bool(segment.flags & ACK)
        else:
            answered = segment.source_port in self._ports and (
                segment.destination_port not in self._ports or segment.source_port < segment.destination_port
            )
        client, server = (destination, source) if answered else (source, destination)
        before = self._known.get((client, server))
        connection = Connection(
            client, server, 1 + (before[0].turn if before else 0), segment.time_us, self._flow_limit
        )
        connection.handshake = bool(calling)
        self._known[client, server] = (connection, 0)
        self._known[server, client] = (connection, 1)
        return connection, int(answered)

    def _follow(
        self, connection: Connection, side: int, segment: Segment
    ) -> Iterator[tuple[Connection, int, Item]]:
        direction = connection.directions[side]
        sequence, flags = segment.sequence, segment.flags
        if flags & SYN:
            if not direction.started:
                if not flags & ACK:
                    connection.initial = sequence
                direction.begin(sequence + 1)
                self._begin(connection, side, whole=True)
            sequence += 1
        elif not direction.started:
            direction.begin(sequence)
            self._begin(connection, side, whole=False)
        if segment.length:
            before = direction.waiting
            if segment.payload:
                yield from self._read(connection, side, direction.add(sequence, segment.payload))
            cut = segment.length - len(segment.payload)
            yield from self._read(connection, side, direction.lose(sequence + len(segment.payload), cut))
            self._waiting += direction.waiting - before
            while self._waiting > self._total_limit:
                yield from self._relieve()
        if flags & FIN:
            connection.finished[side] = sequence + segment.length
        if flags & RST:
            yield from self._close(connection, "rst")
        elif all(
            last is not None and one.place(last) <= 0
            for one, last in zip(connection.directions, connection.finished, strict=True)
        ):
            yield from self._close(connection, "fin")

    def _begin(self, connection: Connection, side: int, *, whole: bool) -> None:
        reader = self._new_reader(connection, side)
        reader.begin(whole=whole)
        connection.readers[side] = reader  # type: ignore[assignment]

    def _read(
        self, connection: Connection, side: int, pieces: Iterator[Piece]
    ) -> Iterator[tuple[Connection, int, Item]]:
        reader: Reader[Item] = connection.readers[side]  # type: ignore[assignment]
        for piece in pieces:
            if piece.data:
                connection.bytes[side] += len(piece.data)
                items = reader.feed(piece.data)
            else:
                connection.missing[side] += piece.missing
                items = reader.gap(piece.missing)
            for item in items:
                yield connection, side, item

    def _relieve(self) -> Iterator[tuple[Connection, int, Item]]:
        """Frees memory: treats all missing segments in the direction with the most waiting bytes as not
        captured, so that no bytes wait for them any longer.
        """
        connection, side = max(self._known.values(), key=lambda entry: entry[0].directions[entry[1]].waiting)
        direction = connection.directions[side]
        self._waiting -= direction.waiting
        yield from self._read(connection, side, direction.end())

    def _close(self, connection: Connection, reason: str) -> Iterator[tuple[Connection, int, Item]]:
        if connection.closed is not None:
            return
        connection.closed = reason
        for side, direction in enumerate(connection.directions):
            reader: Reader[Item] | None = connection.readers[side]  # type: ignore[assignment]
            if reader is not None:
                self._waiting -= direction.waiting
                yield from self._read(connection, side, direction.end())
                for item in reader.end():
                    yield connection, side, item
                connection.readers[side] = None
        self._ended(connection)

    def _forget(self) -> Iterator[tuple[Connection, int, Item]]:
        """Closes and forgets one eighth of the connections: those whose last segment is the oldest."""
        connections = [connection for connection, side in self._known.values() if side == 0]
        connections.sort(key=lambda connection: connection.last_us)
        for connection in connections[: max(1, len(connections) // 8)]:
            yield from self._close(connection, "forgotten")
            for ends in ((connection.client, connection.server), (connection.server, connection.client)):
                self._known.pop(ends, None)

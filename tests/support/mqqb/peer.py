"""A scripted queue manager at the other end of a socket, which keeps what was said on it."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from uuid import UUID, uuid4

from tests.support.captures.capture import Capture, Stream
from tests.support.mqqb import frames, wire

PATIENCE = 10.0
SESSION_ACK = wire.base(0x1B, 36) + struct.pack("<HH", 0, 1)
"""What a SessionAck begins with: IN and SH, priority 3, then PT 1."""


class Line:
    """One connection: whole packets in, bytes out, and the counts that a session keeps."""

    def __init__(self, connection: socket.socket, stream: Stream | None) -> None:
        self.socket = connection
        self.stream = stream
        self.rest = b""
        self.sent = self.sent_recoverable = 0
        self.heard = self.heard_recoverable = 0

    def send(self, data: bytes) -> None:
        """Bytes to the server; UserMessages among them are counted."""
        if self.stream is not None:
            self.stream.client(data)
        self.socket.sendall(data)

    def say(self, packet: bytes) -> None:
        """One UserMessage, counted."""
        self.sent += 1
        self.sent_recoverable += packet[60] >> 5 & 3
        self.send(packet)

    def packet(self, timeout: float = PATIENCE) -> bytes | None:
        """The next packet; None at the end of the connection. TimeoutError: nothing came."""
        deadline = time.monotonic() + timeout
        while True:
            size = self._whole()
            if size:
                packet, self.rest = self.rest[:size], self.rest[size:]
                if wire.kind(packet) == "MSG":
                    self.heard += 1
                    self.heard_recoverable += packet[60] >> 5 & 3
                return packet
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                assert not self.rest, f"{len(self.rest)} bytes of a packet, then the end"
                return None
            if self.stream is not None:
                self.stream.server(data)
            self.rest += data

    def _whole(self) -> int:
        if len(self.rest) < 16:
            return 0
        flags, size = struct.unpack_from("<2xH4xI", self.rest)
        if flags & 0x18 == 0x10:
            size += 16  # a SessionHeader stands outside PacketSize
        return size if len(self.rest) >= size else 0

    def expect(self, kind: str, timeout: float = PATIENCE) -> bytes:
        """The next packet, which is of this kind (EC, CP, ACK or MSG)."""
        packet = self.packet(timeout)
        assert packet is not None, f"closed, expected {kind}"
        assert wire.kind(packet) == kind, packet.hex()
        return packet

    def message(self, timeout: float = PATIENCE) -> frames.Message:
        """The next UserMessage; SessionAcks before it are passed over."""
        deadline = time.monotonic() + timeout
        while True:
            packet = self.packet(max(0.001, deadline - time.monotonic()))
            assert packet is not None, "closed, expected a message"
            if wire.kind(packet) == "MSG":
                return frames.read(packet)
            assert wire.kind(packet) == "ACK"

    def ack(self, timeout: float = PATIENCE) -> tuple[int, int, int, int, int, int]:
        """The next packet, a SessionAck: (acknowledged, base, flags, sent, sent recoverable, window)."""
        packet = self.expect("ACK", timeout)
        assert packet[:20] == SESSION_ACK, packet.hex()
        return wire.read_header(packet)

    def acked(self, count: int, timeout: float = PATIENCE) -> tuple[set[int], list[tuple[int, ...]]]:
        """SessionAcks until `count` messages are acknowledged: what is named, and all headers."""
        named: set[int] = set()
        headers: list[tuple[int, ...]] = []
        deadline = time.monotonic() + timeout
        while not headers or headers[-1][0] < count:
            header = self.ack(max(0.001, deadline - time.monotonic()))
            headers.append(header)
            named |= {header[1] + bit for bit in range(32) if header[1] and header[2] >> bit & 1}
        return named, headers

    def header(self, **fields: int) -> bytes:
        """A truthful SessionHeader: everything heard is acknowledged, with up to 32 recoverable messages."""
        last = self.heard_recoverable
        first = max(1, last - 31)
        values = {
            "ack": self.heard & 0xFFFF,
            "base_ack": first & 0xFFFF if last else 0,
            "flags": (1 << last - first + 1) - 1 if last else 0,
            "sent": self.sent & 0xFFFF,
            "recoverable": self.sent_recoverable & 0xFFFF,
        }
        return wire.header(**{**values, **fields})

    def acknowledge(self, **fields: int) -> None:
        """A truthful SessionAck, but for `fields`."""
        self.send(SESSION_ACK + self.header(**fields))

    def closed(self, timeout: float = PATIENCE) -> None:
        """The server ends the connection and says nothing more."""
        packet = self.packet(timeout)
        assert packet is None, f"a packet instead of the end: {packet.hex()}"

    def no_message(self, seconds: float) -> None:
        """No UserMessage comes for some time, and the connection stays."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(TimeoutError):
            while (left := deadline - time.monotonic()) > 0:
                self.expect("ACK", left)

    def silent(self, seconds: float) -> None:
        """Nothing comes for some time, and the connection stays."""
        with contextlib.suppress(TimeoutError):
            packet = self.packet(seconds)
            raise AssertionError("closed" if packet is None else f"a packet: {packet.hex()}")

    def close(self) -> None:
        self.socket.close()


class Peer:
    """A queue manager at an address of its own, 127.0.9.x."""

    def __init__(self, address: str, capture: Capture | None = None, guid: UUID | None = None) -> None:
        self.address = address
        self.guid = guid or uuid4()
        self.capture = capture
        self.numbers = 0
        self.lines: list[Line] = []
        self.listener: socket.socket | None = None

    def number(self) -> int:
        """The next MessageID."""
        self.numbers += 1
        return self.numbers

    def message(self, queue: str | frames.Name, **fields: object) -> bytes:
        """A message from here, to a queue of the server by its name alone or as a field says it."""
        name = frames.direct(rf"OS:server\private$\{queue}") if isinstance(queue, str) else queue
        fields.setdefault("sent", int(time.time()))
        return frames.message(self.number(), self.guid, name, **fields)  # type: ignore[arg-type]

    def queue(self, name: str) -> frames.Name:
        """A private queue of this peer, by direct name."""
        return frames.direct(rf"TCP:{self.address}\private$\{name}")

    # -------------------------------------------------------------------------------------------- dialling

    def connect(self, host: str, port: int) -> Line:
        """A connection to the server from our address; nothing is said yet."""
        connection = socket.socket()
        connection.bind((self.address, 0))
        connection.settimeout(PATIENCE)
        connection.connect((host, port))
        return self._line(connection)

    def dial(
        self, host: str, port: int, *, window: int = 64, recoverable: int = 500, ack: int = 20_000
    ) -> Line:
        """An open session."""
        line = self.connect(host, port)
        line.send(wire.establish(self.guid))
        line.expect("EC")
        line.send(wire.parameters(recoverable, ack, window))
        line.expect("CP")
        return line

    # ------------------------------------------------------------------------------------------- listening

    def listen(self, port: int = 0) -> int:
        """Wait for the server at our address; the port."""
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((self.address, port))
        self.listener.listen()
        found: int = self.listener.getsockname()[1]
        return found

    def deaf(self) -> None:
        """Connections are refused from now on."""
        assert self.listener is not None
        self.listener.close()

    def accepted(self, timeout: float = PATIENCE) -> Line:
        """The server's next connection; nothing is said yet."""
        assert self.listener is not None
        self.listener.settimeout(timeout)
        connection, _ = self.listener.accept()
        return self._line(connection)

    def answer(self, timeout: float = PATIENCE, window: int = 64) -> Line:
        """The server's next session, opened."""
        line = self.accepted(timeout)
        request = line.expect("EC")
        line.send(
            wire.establish(UUID(bytes_le=request[20:36]), self.guid, *struct.unpack_from("<IH", request, 52))
        )
        proposed = line.expect("CP")
        line.send(wire.parameters(*struct.unpack_from("<II", proposed, 20), window))
        return line

    def _line(self, connection: socket.socket) -> Line:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        port = 40_000 + len(self.lines)
        stream = self.capture.stream(self.address, port) if self.capture is not None else None
        line = Line(connection, stream)
        self.lines.append(line)
        return line

    def close(self) -> None:
        for line in self.lines:
            line.close()
        if self.listener is not None:
            self.listener.close()

"""What a hostile peer may do with sound packets: wrong order, lies in counts, connections left or cut off."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Iterator
from uuid import UUID

from tests.support.hostile.hostile_model import Position
from tests.support.mqqb import wire

QUEUE = "OS:host\\private$\\queue"
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with RST
STRANGER = UUID("22222222-2222-2222-2222-222222222222")


def abuses(own: UUID, now: int) -> Iterator[tuple[str, Position, bytes]]:
    """(what is done, when, bytes) for one session each."""

    def message(number: int, **fields: object) -> bytes:
        return wire.message(number, queue=QUEUE, sent_time=now, source=STRANGER, **fields)  # type: ignore[arg-type]

    opening = wire.establish() + wire.parameters()
    for name, packet in (
        ("data", message(1)),
        ("acknowledgment", wire.session_ack()),
        ("parameters", wire.parameters()),
    ):
        yield f"{name} before anything", Position.NEW, packet
    yield "data before parameters", Position.GREETED, message(1)
    yield "acknowledgment before parameters", Position.GREETED, wire.session_ack()
    yield "two EstablishConnections", Position.GREETED, wire.establish()
    yield "EstablishConnection in an open session", Position.OPEN, wire.establish()
    yield "ConnectionParameters twice", Position.OPEN, wire.parameters()
    yield "the whole handshake twice", Position.NEW, opening + opening
    yield "another server meant", Position.NEW, wire.establish(server=STRANGER)
    yield "our own GUID", Position.NEW, wire.establish(client=own)
    for recoverable, ack in ((0, 120_000), (499, 20_000), (500, 0xFFFFFFFF), (0xFFFFFFFF, 0)):
        yield f"time-outs {recoverable}, {ack}", Position.GREETED, wire.parameters(recoverable, ack)
    yield "a window of nothing", Position.GREETED, wire.parameters(window=0)

    for ack in (1, 2, 0x7FFF, 0xFFFF):
        yield f"acknowledges {ack}", Position.OPEN, wire.session_ack(ack=ack)
        yield (
            f"acknowledges recoverable {ack}",
            Position.OPEN,
            wire.session_ack(base_ack=ack, flags=0xFFFFFFFF),
        )
    yield "flags without base", Position.OPEN, wire.session_ack(flags=0xFFFFFFFF)
    for count in (1, 2, 0x7FFF, 0xFFFF):
        yield f"claims {count} messages", Position.OPEN, wire.session_ack(sent=count)
        yield f"claims {count} recoverable ones", Position.OPEN, wire.session_ack(recoverable=count)

    three = message(1) + message(2, recoverable=True) + message(3)
    yield "counts that are right", Position.OPEN, three + wire.session_ack(sent=3, recoverable=1)
    for sent, recoverable in ((2, 1), (4, 1), (3, 0), (3, 2), (1, 3), (0, 0)):
        lie = wire.session_ack(sent=sent, recoverable=recoverable)
        yield f"{sent} of 3 and {recoverable} of 1", Position.OPEN, three + lie
        header = wire.header(sent=sent + 1, recoverable=recoverable)
        inside = message(4, session=header, header_inside=True)
        yield f"{sent + 1} of 4 on a message", Position.OPEN, three + inside
        yield f"{sent + 1} of 4 behind a message", Position.OPEN, three + message(4, session=header)
    jump = message(1) + message(900_000) + message(5) + message(5)
    yield "jumping identifiers", Position.OPEN, jump + wire.session_ack(sent=4)
    overrun = b"".join(message(number) for number in range(10, 500))
    yield "far beyond the window", Position.OPEN, overrun
    around = message(7) * 0x10001
    yield "counts around 16 bits", Position.OPEN, around + wire.session_ack(sent=1)
    yield "counts not around 16 bits", Position.OPEN, around + wire.session_ack(sent=2)


class Raw:
    """A plain connection with a session that is open, as far as asked for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(
        cls, host: str, port: int, *, client: UUID | None = None, source: str | None = None
    ) -> Raw:
        """With `client` given the handshake is done."""
        address = (source, 0) if source is not None else None
        connection = cls(*await asyncio.open_connection(host, port, local_addr=address))
        if client is not None:
            connection.writer.write(wire.establish(client))
            connection.writer.write(wire.parameters())
            await connection.reader.readexactly(572 + 32)
        return connection

    async def ended(self, within: float) -> bool:
        """Whether the server closes within that many seconds."""
        try:
            async with asyncio.timeout(within):
                while await self.reader.read(1 << 16):
                    pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    async def dribble(self, data: bytes, pause: float) -> None:
        """One byte at a time until it is all there or the server has enough."""
        with contextlib.suppress(ConnectionError):
            for at in range(len(data)):
                if self.writer.is_closing():
                    return
                self.writer.write(data[at : at + 1])
                await self.writer.drain()
                await asyncio.sleep(pause)

    def reset(self) -> None:
        """Cut the connection off without a word."""
        plain: socket.socket = self.writer.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.writer.transport.abort()

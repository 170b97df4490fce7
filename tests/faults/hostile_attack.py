"""Drives hostile sessions against a listening port, many at a time, and sees what becomes of each."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from tests.support.hostile.hostile_model import Expected, Model, Position
from tests.support.mqqb import wire

PROBE_SIZE = 36
HANDSHAKE_SIZE = 572 + 32
PATIENCE = 20.0  # seconds for a verdict of a busy server


def guid(kind: int, number: int) -> UUID:
    """A GUID that no other session or message of the run has."""
    return UUID(int=(0xBAD << 100) | (kind << 64) | number + 1)


def identified(packet: bytes, number: int, now: int) -> bytes:
    """A UserMessage with an identifier of its own, sent now; shorter packets stay as they are."""
    if len(packet) < 60:
        return packet
    return packet[:16] + guid(1, number).bytes_le + packet[32:52] + struct.pack("<I", now) + packet[56:]


@dataclass(slots=True)
class Case:
    """Bytes for one session, what they are, and what is to become of the session."""

    name: str
    position: Position
    stream: bytes
    expected: Expected
    number: int

    @classmethod
    def of(cls, name: str, position: Position, stream: bytes, own: UUID, number: int) -> Case:
        return cls(name, position, stream, Model(own, position).feed(stream), number)

    def sent(self, now: int, probe_queue: str) -> bytes:
        """Everything that the hostile peer writes; a recoverable message at the end proves that the session
        goes on.
        """
        data = b""
        if self.position is not Position.NEW:
            data += wire.establish(guid(2, self.number))
        if self.position is Position.OPEN:
            data += wire.parameters()
        data += self.stream
        if self.expected.open and not self.expected.waits:
            data += wire.message(
                1, queue=probe_queue, recoverable=True, source=guid(3, self.number), sent_time=now
            )
        return data


class Peer(asyncio.Protocol):
    """Writes what the case says and waits for the end, or for the acknowledgment of the probe."""

    def __init__(self, case: Case, data: bytes) -> None:
        self.case = case
        self.data = data
        self.received = 0
        self.closed = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.stream = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self.data)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        self.stream += data
        if self.case.expected.open and not self.case.expected.waits and self.acknowledged:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._end()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    @property
    def acknowledged(self) -> bool:
        """A SessionHeader covers the hostile messages and the probe behind them; OrderAcks may come, too."""
        rest = self.stream[HANDSHAKE_SIZE:]
        wanted = (self.case.expected.received + 1) & 0xFFFF
        while len(rest) >= PROBE_SIZE:
            packet = wire.split(rest)[0]
            if packet[2] & 0x10 and wire.read_header(packet)[0] == wanted:
                return True
            rest = rest[len(packet) :]
        return False

    def complaint(self) -> str | None:
        """What is not as expected."""
        expected = self.case.expected
        seen = "closed" if self.closed else f"open, {self.received} bytes received"
        if expected.reason is not None:
            right = self.closed
        elif expected.open and not expected.waits:
            right = not self.closed and self.acknowledged
        else:
            right = not self.closed
        return None if right else f"{self.case.position.value}: {self.case.name}: {seen}, expected {expected}"


class Attack:
    """Runs cases with at most `width` sessions at a time.

    Sessions that are to stay silent are held open until the end.
    """

    def __init__(self, host: str, port: int, now: int, probe_queue: str, width: int = 64) -> None:
        self._address = (host, port)
        self._now = now
        self._probe_queue = probe_queue
        self._width = width
        self._silent: list[Peer] = []
        self.complaints: list[str] = []

    async def run(self, cases: Iterable[Case]) -> None:
        """Every case once."""
        waiting = iter(cases)
        async with asyncio.TaskGroup() as group:
            for _ in range(self._width):
                group.create_task(self._worker(waiting))

    async def settle(self) -> None:
        """Look at the silent sessions, then cut them off."""
        await asyncio.sleep(0.5)  # a session that is wrongly closed is closed by then
        for peer in self._silent:
            self._judge(peer)
        self._silent.clear()

    async def _worker(self, cases: Iterator[Case]) -> None:
        for case in cases:
            await self._one(case)

    async def _one(self, case: Case) -> None:
        loop = asyncio.get_running_loop()
        data = case.sent(self._now, self._probe_queue)
        _, peer = await loop.create_connection(lambda: Peer(case, data), *self._address)
        if case.expected.reason is None and (case.expected.waits or not case.expected.open):
            self._silent.append(peer)
            return
        with contextlib.suppress(TimeoutError):  # the verdict tells
            await asyncio.wait_for(asyncio.shield(peer.ended), PATIENCE)
        self._judge(peer)

    def _judge(self, peer: Peer) -> None:
        complaint = peer.complaint()
        if complaint is not None:
            self.complaints.append(complaint)
        peer.transport.abort()

"""Well-behaved peers, programs and operators, in a process of their own, while others attack.

    python tests/support/hostile/hostile_witness.py HOST MQQB-PORT ADMIN-PORT UNIX-SOCKET PATIENCE

Six kinds of work go on side by side:

1. `peer`: a queue manager sends numbered recoverable messages and waits until each is kept.
2. `program`: a local program does the same; `delivery` is the time until a reader has either.
3. `deadline`: a message expires in its queue, and the server says so to the administration queue.
4. `newcomer`: a queue manager that the server has never seen, at another address each time, opens a session,
   sends one transactional message and waits for its OrderAck; the message must arrive, too.
5. `connect`: a program connects, as every command of the CLI does.
6. `readyz`: the admin port answers that the server is ready.

The process prints `ready` when the peer and the programs are connected and runs until its input ends. Then
each of 3 to 6 is done once more, so that it is known to work after the attack, too. One line of JSON tells
the rest: see `main`. What takes longer than PATIENCE seconds is trouble.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

sys.path.insert(0, str(Path(__file__).parents[3]))

import msmq_fast
from msmq_fast.protocol.errors import IOTimeout
from tests.support.mqqb import frames, wire

INTERVAL = 0.05
PAUSE = 0.4  # between two probes of one kind
RECEIVES = 4
"""Receives of one reader at a time. One alone reads fewer messages than the two senders send as soon as a
round trip takes longer than INTERVAL; `delivery` would then grow with the length of the attack.
"""
QUEUE, STREAMS, LATE, TOLD = "witness", "witness-streams", "witness-late", "witness-told"
_HANDSHAKE = 572 + 32
_NACK_RECEIVE = 8
_RECEIVE_TIMEOUT = 0xC002  # MQMSG_CLASS_NACK_RECEIVE_TIMEOUT
_ORDER_ACK = 0x00FF


def elsewhere() -> str:
    """A loopback address that no other test uses: as the source of a connection, another computer."""
    return f"127.{random.randrange(128, 250)}.{random.randrange(250)}.{random.randrange(1, 250)}"


def spread(values: list[float]) -> dict[str, float]:
    """How many there are, and the median, the 99th percentile and the longest in seconds."""
    if not values:
        return {"count": 0, "p50": 0.0, "p99": 0.0, "max": 0.0}
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "count": len(ordered),
        "p50": ordered[last // 2],
        "p99": ordered[round(last * 0.99)],
        "max": ordered[-1],
    }


class Witness:
    """Everything that goes on beside an attack."""

    def __init__(self, host: str, mqqb: int, admin: int, endpoint: str, patience: float) -> None:
        self.host = host
        self.mqqb = mqqb
        self.admin = admin
        self.endpoint = endpoint
        self.patience = patience
        self.took: dict[str, list[float]] = defaultdict(list)
        self.sent: dict[str, int] = defaultdict(int)
        self.received: dict[str, list[int]] = defaultdict(list)
        self.retried = 0
        self.trouble: list[str] = []
        self.stop = asyncio.Event()
        self.senders_done = asyncio.Event()
        self.working: dict[str, asyncio.Event] = {}

    def body(self, what: str, number: int) -> bytes:
        return f"{what} {number} {time.monotonic()}".encode()

    async def guarded(self, what: str, work: Awaitable[None]) -> None:
        """What goes wrong is told at the end, and the others go on."""
        try:
            await work
        except TimeoutError:
            self.trouble.append(f"{what}: took longer than {self.patience} s")
        except Exception as error:
            self.trouble.append(f"{what}: {error!r}")
        self.working[what].set()

    async def probing(self, what: str, probe: Callable[[], Awaitable[None]]) -> None:
        """One kind of probe, again and again, and once more after the end of the attack."""
        after = False
        while not after:
            after = self.stop.is_set()
            began = time.monotonic()
            async with asyncio.timeout(self.patience):
                await probe()
            self.took[what].append(time.monotonic() - began)
            if not after:
                await self.pause()

    async def pause(self) -> None:
        try:
            async with asyncio.timeout(PAUSE):
                await self.stop.wait()
        except TimeoutError:
            pass

    # ---------------------------------------------------------------------------------------- queue managers

    async def session(self, guid: UUID) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """An open session from another computer."""
        streams = await asyncio.open_connection(self.host, self.mqqb, local_addr=(elsewhere(), 0))
        streams[1].write(wire.establish(guid) + wire.parameters())
        await streams[0].readexactly(_HANDSHAKE)
        return streams

    async def peer(self) -> None:
        """One session, for all of the time."""
        own = uuid4()
        async with asyncio.timeout(self.patience):
            reader, writer = await self.session(own)
        self.working["peer"].set()
        while not self.stop.is_set():
            number = self.sent["peer"] + 1
            began = time.monotonic()
            packet = wire.message(
                number,
                queue=f"OS:host\\private$\\{QUEUE}",
                recoverable=True,
                source=own,
                body=self.body("peer", number),
                sent_time=int(time.time()),
            )
            writer.write(packet)
            self.sent["peer"] = number
            async with asyncio.timeout(self.patience):
                while True:
                    acks = wire.read_header(await reader.readexactly(36))
                    if acks[0] == number & 0xFFFF and acks[1]:
                        break
            self.took["peer"].append(time.monotonic() - began)
            await asyncio.sleep(INTERVAL)
        writer.close()

    async def newcomer(self) -> None:
        """One transactional message of a stranger; like any queue manager it tries again if it is cut off."""
        own, number = uuid4(), self.sent["newcomer"] + 1
        self.sent["newcomer"] = number
        packet = wire.message(
            1,
            queue=f"OS:host\\private$\\{STREAMS}",
            source=own,
            body=self.body("newcomer", number),
            sent_time=int(time.time()),
            transaction=frames.transaction(1, int(time.time()), 1, 0),
        )
        while True:
            try:
                reader, writer = await self.session(own)
                try:
                    writer.write(packet)
                    await self.order_ack(reader)
                    return
                finally:
                    writer.close()
            except (OSError, asyncio.IncompleteReadError):
                self.retried += 1
                await asyncio.sleep(0.5)

    async def order_ack(self, reader: asyncio.StreamReader) -> None:
        """Reads packets until one is the OrderAck of the first message of a stream."""
        while True:
            packet = await reader.readexactly(16)
            size = int.from_bytes(packet[8:12], "little") + 16 * (packet[2] & 0x18 == 0x10)
            packet += await reader.readexactly(size - 16)
            if wire.kind(packet) == "MSG":
                found = frames.read(packet)
                if found.kind == _ORDER_ACK and frames.ordering(found).number == 1:
                    return

    # ---------------------------------------------------------------------------------------------- programs

    async def program(self) -> None:
        """One connection, for all of the time."""
        async with (
            await msmq_fast.connect(self.endpoint) as connection,
            await connection.open(QUEUE) as opened,
        ):
            self.working["program"].set()
            while not self.stop.is_set():
                number = self.sent["program"] + 1
                began = time.monotonic()
                async with asyncio.timeout(self.patience):
                    await opened.send(self.body("program", number), delivery=msmq_fast.RECOVERABLE)
                self.sent["program"] = number
                self.took["program"].append(time.monotonic() - began)
                await asyncio.sleep(INTERVAL)

    async def reader(self, name: str) -> None:
        """Takes all messages of a queue, until the senders are done and it is empty."""
        async with (
            await msmq_fast.connect(self.endpoint) as connection,
            await connection.open(name) as opened,
        ):
            await asyncio.gather(*(self.receiving(opened) for _ in range(RECEIVES)))

    async def receiving(self, opened: msmq_fast.Queue) -> None:
        """One of the receives of a reader, again and again."""
        while True:
            try:
                async with asyncio.timeout(self.patience):  # the second is a timer of the server's
                    message = await opened.receive(timeout=1)
            except IOTimeout:
                if self.senders_done.is_set():
                    return
                continue
            what, number, began = message.body.decode().split()
            self.took["delivery"].append(time.monotonic() - float(began))
            self.received[what].append(int(number))

    async def deadlines(self) -> None:
        """Messages that nothing reads within their second."""
        async with (
            await msmq_fast.connect(self.endpoint) as connection,
            await connection.open(LATE) as late,
            await connection.open(TOLD) as told,
        ):

            async def probe() -> None:
                await late.send(
                    b"",
                    time_to_be_received=1,
                    acknowledge=_NACK_RECEIVE,
                    admin_queue=f"DIRECT=OS:.\\private$\\{TOLD}",
                )
                message = await told.receive()
                assert message.message_class == _RECEIVE_TIMEOUT, hex(message.message_class)

            await self.probing("deadline", probe)

    async def connect(self) -> None:
        """What each command of the CLI does first."""
        async with await msmq_fast.connect(self.endpoint) as connection:
            await connection.ping()

    async def readyz(self) -> None:
        """The admin port, over a connection of its own."""
        reader, writer = await asyncio.open_connection(self.host, self.admin)
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200 "), answer[:200]

    # ------------------------------------------------------------------------------------------------- all

    def start(self, what: str, work: Awaitable[None]) -> asyncio.Task[None]:
        self.working[what] = asyncio.Event()
        return asyncio.create_task(self.guarded(what, work))

    async def run(self) -> None:
        """Work until the input ends."""
        readers = [self.start(f"reader of {name}", self.reader(name)) for name in (QUEUE, STREAMS)]
        senders = [
            self.start("peer", self.peer()),
            self.start("program", self.program()),
            self.start("newcomer", self.probing("newcomer", self.newcomer)),
            self.start("deadline", self.deadlines()),
            self.start("connect", self.probing("connect", self.connect)),
            self.start("readyz", self.probing("readyz", self.readyz)),
        ]
        for what in ("peer", "program"):
            await self.working[what].wait()
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        self.stop.set()
        await asyncio.gather(*senders)
        self.senders_done.set()
        await asyncio.gather(*readers)

    def missing(self) -> dict[str, int]:
        """How many messages did not arrive, by sender; twice or out of order is trouble."""
        missing = {}
        for what, count in self.sent.items():
            numbers = self.received[what]
            if len(numbers) != len(set(numbers)):
                self.trouble.append(f"{what}: messages came twice")
            if numbers != sorted(numbers):
                self.trouble.append(f"{what}: messages came out of order")
            missing[what] = len(set(range(1, count + 1)) - set(numbers))
        return missing


async def main() -> None:
    host, mqqb, admin, endpoint, patience = sys.argv[1:]
    witness = Witness(host, int(mqqb), int(admin), endpoint, float(patience))
    await witness.run()
    seen: dict[str, Any] = {
        "took": {what: spread(values) for what, values in witness.took.items()},
        "sent": witness.sent,
        "lost": witness.missing(),
        "retried": witness.retried,
        "trouble": witness.trouble,
    }
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    asyncio.run(main())

"""A well-behaved MS-MQQB peer and a well-behaved program, in a process of their own, while others attack.

    python -m tests.faults.hostile_witness HOST PORT UNIX-SOCKET QUEUE

Both send numbered recoverable messages at a steady rate and wait for each to be kept; a third connection
receives all. It prints `ready`, runs until its input ends, and prints what it saw as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[2]))

import msmq_fast
from tests.mqqb import wire

INTERVAL = 0.05
SELF = UUID("0f0f0f0f-1111-2222-3333-444444444444")


class Seen:
    """What happened so far; times in seconds."""

    def __init__(self) -> None:
        self.sent: dict[str, int] = {"peer": 0, "program": 0}
        self.slowest: dict[str, float] = {"peer": 0.0, "program": 0.0, "delivery": 0.0}
        self.received: dict[str, list[int]] = {"peer": [], "program": []}
        self.trouble: list[str] = []

    def slow(self, what: str, since: float) -> None:
        self.slowest[what] = max(self.slowest[what], time.monotonic() - since)


def body(what: str, number: int) -> bytes:
    return f"{what} {number} {time.monotonic()}".encode()


async def peer(host: str, port: int, queue: str, seen: Seen, stop: asyncio.Event) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(wire.establish(SELF) + wire.parameters())
    await reader.readexactly(572 + 32)
    while not stop.is_set():
        number = seen.sent["peer"] + 1
        began = time.monotonic()
        writer.write(
            wire.message(
                number,
                queue=f"OS:host\\private$\\{queue}",
                recoverable=True,
                source=SELF,
                body=body("peer", number),
                sent_time=int(time.time()),
            )
        )
        seen.sent["peer"] = number
        while True:
            acks = wire.read_header(await reader.readexactly(36))
            if acks[0] == number & 0xFFFF and acks[1]:
                break
        seen.slow("peer", began)
        await asyncio.sleep(INTERVAL)
    writer.close()


async def program(endpoint: str, queue: str, seen: Seen, stop: asyncio.Event) -> None:
    async with await msmq_fast.connect(endpoint) as connection, await connection.open(queue) as opened:
        while not stop.is_set():
            number = seen.sent["program"] + 1
            began = time.monotonic()
            await opened.send(body("program", number), delivery=msmq_fast.RECOVERABLE)
            seen.sent["program"] = number
            seen.slow("program", began)
            await asyncio.sleep(INTERVAL)


async def reader(endpoint: str, queue: str, seen: Seen, senders: asyncio.Event) -> None:
    async with await msmq_fast.connect(endpoint) as connection, await connection.open(queue) as opened:
        while True:
            try:
                message = await opened.receive(timeout=1)
            except msmq_fast.errors.IOTimeout:
                if senders.is_set():
                    return
                continue
            what, number, began = message.body.decode().split()
            seen.slow("delivery", float(began))
            seen.received[what].append(int(number))


async def main() -> None:
    host, port, endpoint, queue = sys.argv[1:]
    seen, stop, senders = Seen(), asyncio.Event(), asyncio.Event()

    async def guarded(what: str, work: object) -> None:
        try:
            await work  # type: ignore[misc]
        except Exception as error:
            seen.trouble.append(f"{what}: {error!r}")

    tasks = [
        asyncio.create_task(guarded("peer", peer(host, int(port), queue, seen, stop))),
        asyncio.create_task(guarded("program", program(endpoint, queue, seen, stop))),
    ]
    reading = asyncio.create_task(guarded("reader", reader(endpoint, queue, seen, senders)))
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    stop.set()
    await asyncio.gather(*tasks)
    senders.set()
    await reading
    print(json.dumps(vars(seen)))


if __name__ == "__main__":
    asyncio.run(main())

"""Two queue managers, recoverable traffic from A to B, SIGKILLs at random moments; then an account of
every message.

A message counts as sent once A has answered for it. The sender numbers its messages (label); what A had not
answered for when it was killed is sent again under a new message identifier, and is known to have been.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast.client import RECOVERABLE, Access, Connection, Message, MSMQError, connect
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.support.processes.servers import Server

QUEUE = "inbox"
CHUNK = 50
PATIENCE = 120.0


@dataclass
class Account:
    """What happened, as seen from outside."""

    count: int
    kills: list[tuple[str, int]] = field(default_factory=list)  # (host, Unix microseconds)
    repeated: set[int] = field(default_factory=set)  # numbers that the test itself sent more than once
    received: list[tuple[int, str]] = field(default_factory=list)  # (number, message id) in order

    def missing(self) -> set[int]:
        return set(range(self.count)) - {number for number, _ in self.received}

    def duplicate_ids(self) -> set[str]:
        return {identifier for identifier, n in Counter(i for _, i in self.received).items() if n > 1}

    def repeated_numbers(self) -> set[int]:
        """Numbers that arrived under more than one identifier."""
        seen = Counter(number for number, _ in {*self.received})
        return {number for number, n in seen.items() if n > 1}

    def out_of_order(self) -> list[tuple[int, int]]:
        """Neighbours in the wrong order among the messages that were sent once."""
        once = [number for number, _ in self.received if number not in self.repeated]
        return [(a, b) for a, b in itertools.pairwise(once) if b <= a]


class Pair:
    """A sends to B; both are real processes on one port number."""

    def __init__(self, directory: Path, port: int, seed: int) -> None:
        environment = {"MSMQ_FAST_MQQB__RETRY_INTERVAL": "0.2"}
        flags = ("--port", str(port))
        self.a = Server(directory / "a", *flags, "--name", "ALPHA", host="127.0.0.2", environment=environment)
        self.b = Server(directory / "b", *flags, "--name", "BETA", host="127.0.0.3", environment=environment)
        self.random = random.Random(seed)
        self.target = f"DIRECT=TCP:{self.b.host}\\private$\\{QUEUE}"
        self.sent = 0
        self._progress = asyncio.Condition()
        self._allowed = 0  # messages that may be sent before the next kill

    async def run(self, count: int, kills: int, body: bytes) -> Account:
        """Send `count` messages while B, then A, is killed and started again `kills` times each."""
        account = Account(count)
        self.a.start()
        self.b.start()
        self.b.ok("queue", "create", QUEUE)
        try:
            await asyncio.gather(self._send(account, body), self._kill(account, kills))
            await self._drained()
            await self._receive(account)
        finally:
            codes = [server.stop() for server in (self.a, self.b)]
        assert codes == [0, 0], codes
        return account

    async def _send(self, account: Account, body: bytes) -> None:
        while self.sent < account.count:
            numbers: list[int] = []
            try:
                async with await connect(self.a.endpoint) as connection:
                    queue = await connection.open(self.target, Access.SEND)
                    while self.sent < account.count:
                        async with self._progress:
                            await self._progress.wait_for(lambda: self.sent < self._allowed)
                        numbers = list(range(self.sent, min(self.sent + CHUNK, self._allowed)))
                        await queue.send_many(
                            [Message(body, label=str(number), delivery=RECOVERABLE) for number in numbers]
                        )
                        async with self._progress:
                            self.sent += len(numbers)
                            numbers = []
                            self._progress.notify_all()
            except (OSError, MSMQError):  # A is down, or was killed under us
                account.repeated.update(numbers)
                await asyncio.sleep(0.02)

    async def _kill(self, account: Account, kills: int) -> None:
        """B and A in turn, each time at a random moment of a stretch of its own."""
        stretch = account.count // (2 * kills)
        for step in range(2 * kills):
            moment = step * stretch + self.random.randrange(1, stretch)
            async with self._progress:
                self._allowed = (step + 1) * stretch
                self._progress.notify_all()
                await self._progress.wait_for(lambda moment=moment: self.sent >= moment)
            server = (self.b, self.a)[step % 2]
            account.kills.append((server.host, time.time_ns() // 1000))
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        async with self._progress:
            self._allowed = account.count
            self._progress.notify_all()

    async def _drained(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while any(queue["messages"] for queue in self.a.ok("outgoing", "list")):
            assert time.monotonic() < deadline, self.a.ok("outgoing", "list")
            await asyncio.sleep(0.1)

    async def _receive(self, account: Account) -> None:
        connection: Connection
        async with await connect(self.b.endpoint) as connection:
            there = next(
                info["messages"]
                for info in [one.as_map() for one in await connection.admin.queues.all()]
                if info["kind"] == "queue"
            )
            queue = await connection.open(QUEUE, Access.RECEIVE)
            async with queue.subscribe(1024, acknowledge=False) as messages:
                while len(account.received) < there:
                    account.received += [
                        (int(message.label), message.message_id) for message in await messages.batch()
                    ]

    # ------------------------------------------------------------------------------ explaining duplicates

    def unexplained(self, account: Account) -> set[str]:
        """Duplicates that no kill explains.

        A duplicate is explained when between its two arrivals somebody was killed while either A's record of
        the acknowledgment or B's record of the arrival was not committed: nothing in the feed of the killed
        side, written before the kill, shows it.
        """
        duplicates = account.duplicate_ids()
        if not duplicates:
            return set()
        acked = _event_times(self.a.data, decode.EventKind.ACKED)
        arrived = _event_times(self.b.data, decode.EventKind.ARRIVED)
        unexplained = set()
        for identifier in duplicates:
            times = arrived.get(identifier, [])
            explained = any(
                times[0] <= moment <= times[-1] and not any(t < moment for t in acked.get(identifier, []))
                for _, moment in account.kills
                if times
            )
            if not explained:
                unexplained.add(identifier)
        return unexplained


def _event_times(directory: Path, kind: decode.EventKind) -> dict[str, list[int]]:
    """Times of a kind of event by message identifier, from a stopped store."""
    tables: Any = LmdbTables(directory, read_only=True)
    times: dict[str, list[int]] = {}
    try:
        for key, value in tables.scan(Table.FEED):
            for event in decode.feed(key, value):
                if event.kind == kind:
                    identifier = f"{{{UUID(bytes_le=event.source)}}}\\{event.ordinal}"
                    times.setdefault(identifier, []).append(event.time_us)
    finally:
        tables.close()
    return times

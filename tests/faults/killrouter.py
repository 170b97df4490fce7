"""Four senders, a router, two receivers, all real processes that are killed at random while transactions
are sent; then an account of every message.

Each sender has one stream to each receiver; the label of a message says which stream and which place in it. A
transaction whose end its sender did not hear of has happened or has not, as a whole.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from uuid import UUID

from msmq_fast.client import Access, Message, MSMQError, connect
from tests.support.processes.chain import free_port
from tests.support.processes.servers import Server

SENDERS, RECEIVERS = 4, 2
PATIENCE = 240.0
STARTED = 90.0  # seconds; many processes start at once
QUEUE = "inbox"
Stream = tuple[int, int]  # (sender, receiver)


@dataclass
class Account:
    """What the senders know, and what was found in the queues."""

    kept: dict[Stream, list[int]] = field(default_factory=lambda: defaultdict(list))
    doubtful: list[list[tuple[Stream, int]]] = field(default_factory=list)
    found: dict[Stream, list[int]] = field(default_factory=lambda: defaultdict(list))
    kills: Counter[str] = field(default_factory=Counter)

    def summary(self) -> str:
        total = sum(map(len, self.found.values()))
        doubts = sum(map(len, self.doubtful))
        return f"{total} messages, {doubts} of them doubtful or not sent, kills {dict(self.kills)}"

    def check(self) -> None:
        """Exactly once, in order, nothing lost, no half transaction."""
        for stream, numbers in self.found.items():
            wrong = [(a, b) for a, b in pairwise(numbers) if b <= a]
            assert not wrong, (stream, wrong[:10])
        there = {stream: set(numbers) for stream, numbers in self.found.items()}
        for stream, kept in self.kept.items():
            lost = set(kept) - there.get(stream, set())
            assert not lost, (stream, sorted(lost)[:10])
        allowed = {stream: set(kept) for stream, kept in self.kept.items()}
        for members in self.doubtful:
            arrived = {number in there.get(stream, ()) for stream, number in members}
            assert len(arrived) == 1, members
            for stream, number in members:
                allowed.setdefault(stream, set()).add(number)
        for stream, numbers in there.items():
            assert numbers <= allowed.get(stream, set()), (stream, sorted(numbers - allowed[stream])[:10])


class Line:
    """The seven processes."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.account = Account()
        names = (
            [f"SENDER{n}" for n in range(SENDERS)] + ["ROUTER"] + [f"RECEIVER{n}" for n in range(RECEIVERS)]
        )
        hosts = [f"127.0.0.{2 + n}" for n in range(len(names))]
        guids = [UUID(int=self.random.getrandbits(128), version=4) for _ in names]
        port = str(free_port())
        self.servers: list[Server] = []
        router = hosts[SENDERS]
        for name, host, guid in zip(names, hosts, guids, strict=True):
            file = directory / f"{name}.toml"
            lines = [f'server.guid = "{guid}"', "mqqb.retry_interval = 0.3", "mqqb.resend_short = 1.0"]
            lines += ["mqqb.resend_medium = 2.0", "mqqb.resend_long = 2.0", "mqqb.resend_final = 2.0"]
            if host == router:
                lines.append("mqqb.router = true")
            for other, there in zip(hosts, guids, strict=True):
                if other != host:
                    via = other if host == router else router
                    lines += ["[[routes]]", f'destination = "{there}"', f'via = "{via}"']
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            flags = ("--port", port, "--name", name, "--config", str(file))
            self.servers.append(Server(directory / name.lower(), *flags, host=host))
        self.senders = self.servers[:SENDERS]
        self.receivers = self.servers[SENDERS + 1 :]
        self.targets: list[str] = []
        self.ended = False

    async def run(self, messages: int, seconds: float, pause: float, body: bytes) -> Account:
        """Send so many messages in about `seconds`, somebody killed about every `pause` seconds."""
        with ExitStack() as stack:
            for server in self.servers:
                stack.callback(server.kill)
            await asyncio.gather(*(asyncio.to_thread(server.start, STARTED) for server in self.servers))
            for receiver in self.receivers:
                receiver.ok("queue", "create", QUEUE, "--transactional")
                self.targets.append(str(receiver.ok("queue", "show", QUEUE)[0]["format_name"]))
            killer = asyncio.create_task(self._kill(pause))
            each = messages // SENDERS
            await asyncio.gather(*(self._send(n, each, seconds, body) for n in range(SENDERS)))
            self.ended = True
            await killer
            await self._drained()
            for number, receiver in enumerate(self.receivers):
                await self._collect(number, receiver)
            codes = [server.stop() for server in self.servers]
        assert not any(codes), codes
        return self.account

    # ------------------------------------------------------------------------------------------------ sending

    async def _send(self, sender: int, count: int, seconds: float, body: bytes) -> None:
        """Transactions of several sizes to one receiver or both, spread over the time."""
        chance = random.Random(f"{sender}{self.random.random()}")
        began, sent = time.monotonic(), 0
        last = dict.fromkeys(range(RECEIVERS), 0)
        while sent < count:
            members: list[tuple[Stream, int]] = []
            try:
                async with await connect(self.senders[sender].endpoint) as connection:
                    queues = [await connection.open(target, Access.SEND) for target in self.targets]
                    while sent < count:
                        members = []
                        async with connection.transaction() as transaction:
                            for receiver in chance.sample(range(RECEIVERS), chance.randint(1, RECEIVERS)):
                                size = min(chance.choice([1, 10, 100]), count - sent - len(members))
                                numbers = range(last[receiver] + 1, last[receiver] + 1 + size)
                                last[receiver] += size
                                members += [((sender, receiver), number) for number in numbers]
                                labels = [f"{sender}.{receiver}.{number}" for number in numbers]
                                await queues[receiver].send_many(
                                    [Message(body, label=label) for label in labels], transaction=transaction
                                )
                        for stream, number in members:
                            self.account.kept[stream].append(number)
                        sent += len(members)
                        members = []
                        await asyncio.sleep(max(0.0, began + seconds * sent / count - time.monotonic()))
            except (OSError, MSMQError):
                if members:
                    self.account.doubtful.append(members)
                    sent += len(members)
                await asyncio.sleep(0.05)

    async def _kill(self, pause: float) -> None:
        while not self.ended:
            await asyncio.sleep(self.random.uniform(0.5, 1.5) * pause)
            if self.ended:
                return
            # The router holds what matters here: every third kill is its.
            server = (
                self.servers[SENDERS] if self.random.random() < 0.33 else self.random.choice(self.servers)
            )
            self.account.kills[server.data.name] += 1
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(self.random.choice([0.0, 0.2, 2.0]))
            await asyncio.to_thread(server.start, STARTED)

    # ----------------------------------------------------------------------------------------------- counting

    async def _drained(self) -> None:
        deadline = time.monotonic() + PATIENCE
        for server in self.servers:
            async with await connect(server.endpoint) as connection:
                while left := [
                    queue
                    for queue in [one.as_map() for one in await connection.admin.outgoing.all()]
                    if queue["messages"]
                ]:
                    assert time.monotonic() < deadline, (server.data.name, left)
                    await asyncio.sleep(0.2)

    async def _collect(self, number: int, receiver: Server) -> None:
        """Everything in the queue of a receiver, in its order."""
        async with await connect(receiver.endpoint) as connection:
            there = next(
                info["messages"]
                for info in [one.as_map() for one in await connection.admin.queues.all()]
                if info["kind"] == "queue"
            )
            queue = await connection.open(QUEUE, Access.RECEIVE)
            taken = 0
            async with queue.subscribe(1024, acknowledge=False) as messages:
                while taken < there:
                    batch = await messages.batch()
                    taken += len(batch)
                    for message in batch:
                        sender, target, place = map(int, message.label.split("."))
                        assert target == number, message.label
                        self.account.found[sender, number].append(place)

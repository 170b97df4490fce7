"""What the tests of the operator's verbs share: servers with many messages, and verbs that are killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from msmq_fast.cli.exportfile import ExportWriter, Header, Section
from msmq_fast.client import sync
from msmq_fast.client.connection import connect
from msmq_fast.client.exchange import Stored
from msmq_fast.client.message import Message
from msmq_fast.packet import message as packet
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.user import TransactionHeader
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.frames import Access
from tests.support.processes.servers import Server, data_directory


@contextlib.contextmanager
def running(*flags: str, name: str = "ALPHA") -> Iterator[Server]:
    """A server for a while."""
    with data_directory() as data:
        server = Server(data, "--name", name, *flags).start()
        try:
            yield server
        finally:
            server.kill()


def fill(server: Server, queue: str, count: int, *, size: int = 100, start: int = 0) -> None:
    """`count` recoverable messages: bodies begin with their number, labels and priorities go round."""

    async def send() -> None:
        async with await connect(server.endpoint) as connection:
            with contextlib.suppress(MSMQError):
                await connection.admin.queues.create(queue)
            opened = await connection.open(queue, Access.SEND)
            async with opened.sender() as sender:
                for number in range(start, start + count):
                    await sender.send(
                        Message(
                            body=b"%08d" % number + b"x" * size,
                            label=f"label {number % 10}",
                            delivery=1,
                            priority=number % 8,
                        )
                    )

    asyncio.run(send())


def numbers(server: Server, *queues: str) -> Counter[int]:
    """The numbers that `fill` wrote into the messages of these queues."""

    async def look() -> Counter[int]:
        found: Counter[int] = Counter()
        async with await connect(server.endpoint) as connection:
            for name in queues:
                queue = await connection.open(name, Access.PEEK)
                after = upto = 0
                finished = False
                while not finished:
                    page = await connection.admin.messages.browse(queue, after=after, upto=upto)
                    after, upto, finished = page.next, page.upto, page.finished
                    found.update(number_of(message.packet) for message in page.messages)
        return found

    return asyncio.run(look())


def number_of(packet: bytes) -> int:
    """The number in the body of a packet."""
    at = packet.index(b"x" * 8) - 8
    return int(packet[at : at + 8])


def write_file(path: Path, queue: str, packets: list[bytes], reason: int = 0) -> None:
    """An export made by hand: these packets in one queue that transactional messages may enter."""
    with path.open("wb") as file:
        writer = ExportWriter(file, "msgpack")
        writer.header(Header("", "HAND", "", 0, secrets.token_bytes(16)))
        writer.section(Section(queue, {"name": queue, "kind": "user", "transactional": True}))
        for packet in packets:
            writer.message(Stored(0, 1_700_000_000_000_000, 3, 4, packet, reason))
        writer.end()


def transactional_packets(destination: str, count: int) -> list[bytes]:
    """Messages of one transaction from another host, the place in its sequence filled in."""
    source = uuid4()
    return [
        packet.Message(
            body=b"%08d" % number + b"x" * 100,
            label=f"label {number % 10}",
            destination=parse_format_name(destination),
            source_machine=source,
            message_id=number + 1,
            sent_time=1_700_000_000,
            transaction=TransactionHeader(7, 8, number + 1, number, 0x12345, first=number == 0),
        ).to_packet()
        for number in range(count)
    ]


def count(server: Server, queue: str) -> int:
    """Messages in a queue."""
    with Watch(server) as watch:
        return watch.count(queue)


class Watch:
    """Looks at a server as often as a test likes, over one connection."""

    def __init__(self, server: Server) -> None:
        self._connection = sync.connect(server.endpoint)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(MSMQError):
            self._connection.close()

    def count(self, queue: str) -> int:
        """Messages in a queue, 0 if there is no queue or no server."""
        try:
            return int(self._connection.admin.queues.get(queue).messages)
        except MSMQError:
            return 0


def begin(server: Server, *arguments: str, stdin: int | None = None) -> subprocess.Popen[bytes]:
    """A verb that goes on while the test does something."""
    return subprocess.Popen(
        [sys.executable, "-m", "msmq_fast", *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "MSMQ_FAST_ENDPOINT": server.endpoint},
    )


def kill_when(process: subprocess.Popen[bytes], condition: Callable[[], Any]) -> bool:
    """SIGKILL a verb as soon as something is true; False if it ended before."""
    wait_for(process, condition)
    ended = process.poll() is not None
    process.kill()
    process.communicate()
    return not ended


def wait_for(process: subprocess.Popen[bytes], condition: Callable[[], Any]) -> None:
    """Until something is true or a verb has ended, looked at closely."""
    deadline = time.monotonic() + 60
    while process.poll() is None and not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def kill_server_when(server: Server, process: subprocess.Popen[bytes], condition: Callable[[], Any]) -> bool:
    """SIGKILL the server as soon as something is true; False if the verb ended before. The server is back."""
    wait_for(process, condition)
    server.kill()
    process.communicate(timeout=30)
    server.start()
    return process.returncode == Exit.UNREACHABLE


def kill(
    process: subprocess.Popen[bytes], watch: Watch, queue: str, reached: int, server: Server | None
) -> bool:
    """Kill the verb, or the server if there is one, when a queue holds more than `reached` messages."""
    if server is None:
        return kill_when(process, lambda: watch.count(queue) > reached)
    return kill_server_when(server, process, lambda: watch.count(queue) > reached)


def on_terminal(server: Server, *arguments: str) -> tuple[int, str]:
    """A verb whose stderr is a terminal: exit code and what the terminal shows."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "msmq_fast", *arguments],
        stdout=subprocess.PIPE,
        stderr=follower,
        env={**os.environ, "MSMQ_FAST_ENDPOINT": server.endpoint},
    )
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):
        while data := os.read(leader, 65536):
            shown += data
    os.close(leader)
    process.communicate()
    return process.returncode, shown.decode()


def peak_memory(process: subprocess.Popen[bytes]) -> int:
    """The greatest resident size that a process that still runs had, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

"""A server process under a storm of RPC clients, a remote reader beside them, and what the server counted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
import struct
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.faults.rpc_stubs import Batch
from tests.support.hostile.attacked import Witness, log_is_clean
from tests.support.processes.servers import Server, data_directory, until
from tests.support.rpc import wire
from tests.support.rpc.socketreader import readable

ROOT = Path(__file__).parents[2]
STOCK = 20_000
"""Messages that the witness has to read."""
KEPT = 50
"""Messages of the queue that is attacked."""
SLOWEST = 15.0
_SETTINGS = {
    "MSMQ_FAST_LISTEN__RPC__MAX_CONNECTIONS": "40000",
    "MSMQ_FAST_LISTEN__RPC__MAX_CONNECTIONS_PER_ADDRESS": "40000",
    "MSMQ_FAST_LIMITS__NETWORK_CONNECTIONS": "40000",
    "MSMQ_FAST_LIMITS__NETWORK_PER_ADDRESS": "40000",
    "MSMQ_FAST_RPC__ALLOW_UNAUTHENTICATED": "true",
}


@dataclass
class Storm:
    """The server and its witness."""

    server: Server
    reader: subprocess.Popen[str]
    witness: Witness

    @property
    def address(self) -> str:
        return self.server.host

    def port(self, name: str) -> int:
        return self.server.port(name)

    def _get(self, path: str) -> str:
        url = f"http://127.0.0.1:{self.server.port('admin')}{path}"
        with urllib.request.urlopen(url, timeout=60) as got:
            return bytes(got.read()).decode()

    def refusals(self) -> Counter[str]:
        """Connections that were ended, by reason."""
        prefix = "rpc connection: "
        counted: dict[str, int] = json.loads(self._get("/api/v1/server/stats"))["refusals"]
        return Counter({key[len(prefix) :]: n for key, n in counted.items() if key.startswith(prefix)})

    def connections(self) -> int:
        """Those that are open at the RPC ports."""
        return int(json.loads(self._get("/api/v1/server/stats"))["rpc_connections"])

    def metrics(self) -> dict[str, float]:
        """Those of RPC."""
        rows = (line.rpartition(" ") for line in self._get("/metrics").splitlines())
        return {name: float(value) for name, _, value in rows if name.startswith("msmq_fast_rpc_")}

    def faults(self) -> Counter[int]:
        """Faults that were sent, by status."""
        prefix = 'msmq_fast_rpc_faults_total{status="'
        return Counter(
            {
                int(name[len(prefix) : -2], 16): int(value)
                for name, value in self.metrics().items()
                if name.startswith(prefix)
            }
        )

    def calm(self) -> None:
        """Wait until no client but the reader is there: two connections, two clients, one open queue."""
        until(lambda: self.connections() == 2, timeout=60, what="the end of the hostile connections")
        figures = self.metrics()
        assert figures["msmq_fast_rpc_associations"] == 2
        assert figures["msmq_fast_rpc_open_queues"] == 1
        assert figures["msmq_fast_rpc_failures_total"] == 0

    def testify(self) -> None:
        """End the reader and the witness: they noticed nothing, and the messages are those expected."""
        print(self.witness.check())
        out, _ = self.reader.communicate("", timeout=60)
        seen: dict[str, Any] = json.loads(out)
        assert seen["trouble"] == []
        assert seen["taken"] > 1
        assert seen["slowest"] < SLOWEST, seen
        assert len(self.server.messages("stock")) == STOCK - seen["taken"]
        assert len(self.server.messages("victim")) == KEPT
        until(lambda: self.connections() == 0, what="the end of the reader")
        assert self.metrics()["msmq_fast_rpc_open_queues"] == 0
        log_is_clean(self.server)


@contextlib.contextmanager
def storm(**settings: str) -> Iterator[Storm]:
    """A fresh server, two queues that everyone may read, a remote reader of one of them, and the witness."""
    with data_directory() as data, _many_files():
        server = Server(data, environment=_SETTINGS | settings).start()
        assert server.process is not None
        _, most = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (most, most))
        reader: subprocess.Popen[str] | None = None
        witness: Witness | None = None
        try:
            for name, count in (("stock", STOCK), ("victim", KEPT)):
                readable(server, name)
                server.ok("send", name, "--body", "x" * 200, "--count", str(count))
            ports = [str(server.port(name)) for name in ("rpc", "qm2qm")]
            reader = subprocess.Popen(
                [
                    sys.executable,
                    str(ROOT / "tests/faults/rpc_witness.py"),
                    server.host,
                    *ports,
                    "stock",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"
            witness = Witness(server)
            yield Storm(server, reader, witness)
            assert server.stop() == 0
        finally:
            if reader is not None:
                reader.kill()
                reader.wait(10)
            if witness is not None:
                witness.kill()
            server.kill()


@contextlib.contextmanager
def _many_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


# -------------------------------------------------------------------------------------------------- attackers


async def converse(address: str, port: int, stream: bytes, answers: int | None = None) -> bytes:
    """Send all, and read until so many answers are there (fragments count as one), or the server closes: that
    is what None waits for."""
    reader, writer = await asyncio.open_connection(address, port)
    heard, at = bytearray(), 0
    writer.write(stream)
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(120):
            while (answers is None or answers > 0) and (more := await reader.read(1 << 18)):
                heard += more
                while len(heard) - at >= 16:
                    (length,) = struct.unpack_from("<H", heard, at + 8)
                    if len(heard) - at < length:
                        break
                    if answers is not None:
                        answers -= heard[at + 3] >> 1 & 1
                    at += length
    writer.transport.abort()
    return bytes(heard)


async def tell(storm: Storm, batches: Iterable[Batch], width: int = 4) -> Counter[int]:
    """All lies of these batches; the faults that answered them."""
    turns, faults = asyncio.Semaphore(width), Counter[int]()

    async def one(batch: Batch) -> None:
        async with turns:
            stream = await converse(storm.address, storm.port(batch.port), batch.stream, batch.answers)
            faults.update(batch.check(stream))

    async with asyncio.TaskGroup() as group:
        for batch in batches:
            group.create_task(one(batch))
    return faults


def broken(random: Random, interface: wire.Syntax, count: int) -> Iterator[tuple[str, bytes]]:
    """Conversations after which the server closes, and the reason that it counts; there is a fault, or a
    bind_nak, in front of the end."""
    good = wire.bind([(0, interface, [wire.NDR])], 1)
    again = (0, interface, [wire.NDR])
    kinds = (
        ("request before bind", wire.request(1, 0)),
        ("alter_context before bind", wire.alter([again])),
        ("auth3", good + wire.auth3(wire.Auth(10, 2, 1, b"x"))),
        ("bind twice", good + wire.bind([again], 2)),
        ("PDU type", good + wire.pdu(wire.RESPONSE, 2, bytes(40))),
        ("call_id", good + wire.request(0x80000000, 7, bytes(4))),
        ("request within another", good + _halves(interleaved=True)),
        ("request too large", good + wire.request(2, 0, bytes(100), flags=wire.FIRST, alloc_hint=0x400001)),
        ("first fragment twice", good + _halves(interleaved=False)),
        ("request without its first fragment", good + wire.request(2, 0, bytes(8), flags=wire.LAST)),
        ("request: auth_length", good + wire.request(2, 0, bytes(16), auth_length=0xFFF0)),
        ("association group", wire.bind([again], 1, group=0x12345678)),
        ("bind: truncated", wire.pdu(wire.BIND, 1, bytes(4))),
        ("authentication", good + wire.request(2, 0, bytes(16), auth=wire.Auth(10, 5, 77, bytes(16)))),
    )
    for _ in range(count):
        yield random.choice(kinds)


def _halves(*, interleaved: bool) -> bytes:
    first = wire.request(2, 0, bytes(1000), flags=wire.FIRST)
    return first + wire.request(3 if interleaved else 2, 0, bytes(1000), flags=wire.FIRST)


async def break_off(storm: Storm, port: str, told: Iterable[bytes], width: int = 16) -> int:
    """Conversations that the server ends; how many of them had an answer before the end."""
    turns, answered = asyncio.Semaphore(width), 0

    async def one(stream: bytes) -> None:
        nonlocal answered
        async with turns:
            heard = await converse(storm.address, storm.port(port), stream)
            kinds = {raw[2] for raw in wire.split(heard)}
            answered += bool(kinds & {wire.FAULT, wire.BIND_NAK})

    async with asyncio.TaskGroup() as group:
        for stream in told:
            group.create_task(one(stream))
    return answered


def sockets(address: str, port: int, count: int, hello: bytes = b"") -> list[socket.socket]:
    """Connections that say no more than `hello`."""
    found = []
    for _ in range(count):
        found.append(socket.create_connection((address, port), 30))
        found[-1].sendall(hello)
    return found

"""Connections of the sending side on real sockets, against a server that is a script of this test."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.server.net.connections import Pool as Connections
from msmq_fast.server.srmp.pool import Pool, PoolSettings, Proxy
from msmq_fast.srmp.endpoint import Endpoint, Progress
from msmq_fast.srmp.returnpath import ReturnPaths
from msmq_fast.srmp.transfer import Timers, Transfer
from tests.srmp.certificates import issue
from tests.srmp.transfers import Queue

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Posted:
    """A request of the pool."""

    body: bytes
    target: bytes = b"/msmq/private$/q"

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"Host", b"server.test"), (b"Content-Length", b"%d" % len(self.body))]


class Messages(Queue):
    """A queue whose requests are real ones."""

    def take(self) -> Posted | None:  # type: ignore[override]
        taken = super().take()
        return None if taken is None else Posted(taken.encode())


@dataclass
class Server:
    """Answers by a script: for each request what to write, None to hang up; the last one repeats."""

    script: list[bytes | None] = field(default_factory=lambda: [OK])
    delay: float = 0.0
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    most: int = 0
    closed: int = 0
    port: int = 0
    hold: asyncio.Event | None = None

    async def start(self, tls: ssl.SSLContext | None = None) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await self._talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            self.closed += 1
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            self.requests.append(head + await reader.readexactly(length))
            if self.hold is not None:
                await self.hold.wait()
            answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            if answer is None:
                return
            writer.write(answer)
            await writer.drain()


class World:
    """A pool and an engine with short timers."""

    def __init__(self, tls: ssl.SSLContext | None = None, **settings: object) -> None:
        loop = asyncio.get_running_loop()
        made = PoolSettings(tls or ssl.create_default_context(), **settings)  # type: ignore[arg-type]
        share = Connections(100, 100, lambda *_: None, lambda: 0.0).share("outgoing", 100)
        self.pool = Pool(
            loop,
            made,
            loop.time,
            lambda: None,
            share,
            lambda execute: Transfer(execute, Timers(0.2, 1000.0, 1.0)),
        )
        self.transfer: Transfer[Posted] = self.pool.transfer  # type: ignore[assignment,type-var]
        self._loop = loop

    def submit(self, *queues: Messages) -> None:
        for queue in queues:
            self.transfer.submit(queue, self._loop.time())  # type: ignore[arg-type]

    async def until(self, met: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not met():
                due = self.transfer.next_deadline()
                if due is not None and due <= self._loop.time():
                    self.transfer.expire(self._loop.time())
                await asyncio.sleep(0.002)


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def queue(server: Server, *messages: str, scheme: str = "http", host: str = "127.0.0.1") -> Messages:
    return Messages(*messages, endpoint=Endpoint(scheme, host, server.port))


@pytest.mark.rule("SR-221")
def test_one_connection_carries_all_messages_of_a_queue() -> None:
    async def test() -> None:
        server, world = Server(), World()
        await server.start()
        sent = queue(server, *"abcdef")
        world.submit(sent)
        await world.until(lambda: len(sent.done) == 6)
        assert server.connections == 1
        assert [request.rpartition(b"\r\n")[2] for request in server.requests] == [
            b"a",
            b"b",
            b"c",
            b"d",
            b"e",
            b"f",
        ]
        assert sent.heard == [Progress.IN_PROCESS, Progress.ESTABLISHED]
        world.pool.close()

    run(test)


def test_connections_to_a_server_are_bounded_and_shared() -> None:
    async def test() -> None:
        server, world = Server(hold=asyncio.Event()), World(per_host=3)
        await server.start()
        queues = [queue(server, *"ab") for _ in range(12)]
        world.submit(*queues)
        assert server.hold is not None
        await world.until(lambda: len(server.requests) == 3)
        assert world.pool.connections == 3
        server.hold.set()
        await world.until(lambda: all(len(each.done) == 2 for each in queues))
        assert server.most == 3
        assert server.connections == 3
        world.pool.close()

    run(test)


def test_a_connection_that_the_server_closed_meanwhile_costs_no_message_and_no_time() -> None:
    async def test() -> None:
        server, world = Server([OK, None, OK]), World()
        await server.start()
        sent = queue(server, *"ab")
        world.submit(sent)
        await world.until(lambda: len(sent.done) == 2)
        assert server.connections == 2
        assert len(server.requests) == 3
        assert Progress.SEND_FAILURE not in sent.heard
        world.pool.close()

    run(test)


@pytest.mark.rule("SR-192", "SR-210")
@pytest.mark.parametrize("answer", [None, BUSY, b"HTTP/1.1 200 OK\r\nContent-Le", b"nonsense\r\n\r\n"])
def test_failures_close_the_connection_and_are_tried_again(answer: bytes | None) -> None:
    async def test() -> None:
        server, world = Server([answer, OK]), World()
        await server.start()
        sent = queue(server, "a")
        world.submit(sent)
        await world.until(lambda: len(sent.done) == 1)
        assert server.connections == 2
        assert server.requests[0] == server.requests[1]
        assert sent.heard[2] in (Progress.SEND_FAILURE, Progress.ANSWERED_BADLY, Progress.NO_ANSWER)
        await world.until(lambda: server.closed == 1)
        world.pool.close()

    run(test)


def test_a_server_that_does_not_answer() -> None:
    async def test() -> None:
        server, world = Server(hold=asyncio.Event()), World()
        await server.start()
        sent = queue(server, "a")
        world.submit(sent)
        await world.until(lambda: Progress.NO_ANSWER in sent.heard)
        await world.until(lambda: world.pool.connections == 0)
        assert server.hold is not None
        server.hold.set()
        await world.until(lambda: len(sent.done) == 1)
        world.pool.close()

    run(test)


def test_nobody_listens_and_no_such_host() -> None:
    async def test() -> None:
        server, world = Server(), World()
        (await server.start()).close()
        nobody = queue(server, "a")
        nowhere = queue(server, "a", host="nowhere.invalid")
        world.submit(nobody, nowhere)
        await world.until(lambda: Progress.REFUSED in nobody.heard and Progress.DNS_FAILURE in nowhere.heard)
        assert nobody.messages == nowhere.messages == ["a"]
        world.pool.close()

    run(test)


@pytest.mark.rule("SR-003")
def test_servers_are_verified(tmp_path: Path) -> None:
    """Toy 14: the wrong authority, the wrong name; and the right ones."""

    async def test() -> None:
        authority, good = issue(tmp_path, "localhost")
        _, strange = issue(tmp_path / "other", "localhost")
        trusting = ssl.create_default_context(cafile=str(authority))
        server, impostor = Server(), Server()
        await server.start(good)
        await impostor.start(strange)
        world = World(trusting)
        right = queue(server, "a", scheme="https", host="localhost")
        wrong_name = queue(server, "a", scheme="https", host="127.0.0.1")
        wrong_authority = queue(impostor, "a", scheme="https", host="localhost")
        world.submit(right, wrong_name, wrong_authority)
        await world.until(lambda: len(right.done) == 1)
        for refused in (wrong_name, wrong_authority):
            await world.until(lambda refused=refused: Progress.CERTIFICATE_FAILURE in refused.heard)  # type: ignore[misc]
            assert refused.done == []
        assert impostor.requests == []
        world.pool.close()

    run(test)


def test_a_proxy_for_http_gets_whole_urls() -> None:
    async def test() -> None:
        proxy = Server()
        await proxy.start()
        world = World(proxy=lambda host: Proxy("127.0.0.1", proxy.port))
        sent = Messages("a", endpoint=Endpoint("http", "server.test", 8080))
        world.submit(sent)
        await world.until(lambda: len(sent.done) == 1)
        assert proxy.requests[0].startswith(b"POST http://server.test:8080/msmq/private$/q HTTP/1.1\r\n")
        world.pool.close()

    run(test)


def test_a_proxy_for_https_is_asked_for_a_tunnel(tmp_path: Path) -> None:
    async def test() -> None:
        authority, good = issue(tmp_path, "server.test")
        server = Server()
        await server.start(good)
        asked: list[bytes] = []

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            if len(asked) == 1:
                writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
                writer.close()
                return
            behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

            async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
                while data := await source.read(4096):
                    target.write(data)
                target.close()

            await asyncio.gather(copy(reader, behind_writer), copy(behind_reader, writer))

        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        trusting = ssl.create_default_context(cafile=str(authority))
        world = World(trusting, proxy=lambda host: Proxy("127.0.0.1", port))
        sent = Messages("a", "b", endpoint=Endpoint("https", "server.test", 443))
        world.submit(sent)
        await world.until(lambda: len(sent.done) == 2)
        assert Progress.REFUSED in sent.heard
        assert asked[1].startswith(b"CONNECT server.test:443 HTTP/1.1\r\n")
        assert b"\r\nProxy-Accept: NonInteractiveClient\r\n" in asked[1]
        assert len(server.requests) == 2
        assert server.requests[0].startswith(b"POST /msmq/private$/q HTTP/1.1\r\n")
        world.pool.close()

    run(test)


# ---- receipts, whose URLs peers choose


class Names:
    """What names resolve to: another list at each question, the last one for ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *lists: list[str]) -> None:
        self.lists = list(lists)
        self.asked = 0

        async def getaddrinfo(_: object, host: str, port: int, **__: object) -> list[Any]:
            self.asked += 1
            found = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
            return [(0, 0, 0, "", (each, port)) for each in found]

        monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)


def receipt(server: Server, host: str, only: str) -> Messages:
    return Messages("a", endpoint=Endpoint("http", host, server.port, only))


def test_a_receipt_goes_to_the_address_that_asked_for_it_and_the_name_is_looked_up_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        names = Names(monkeypatch, ["192.0.2.9", "127.0.0.1"], ["127.0.0.2"])
        server, world = Server(), World()
        await server.start()
        sent = receipt(server, "sender.test", "127.0.0.1")
        world.submit(sent)
        await world.until(lambda: len(sent.done) == 1)
        assert (names.asked, server.connections) == (1, 1)
        world.pool.close()

    run(test)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("inside.test", ()),
        ("127.0.0.1", ()),
        ("inside.test", ("other.test", "10.0.0.0/8")),
        ("inside.test", ("*.test",)),  # a name says nothing of the loopback of this computer
    ],
)
def test_a_receipt_connects_to_no_other_host(
    monkeypatch: pytest.MonkeyPatch, host: str, allowed: tuple[str, ...]
) -> None:
    """Also when the name meant its sender a moment ago, or will."""

    async def test() -> None:
        Names(monkeypatch, ["127.0.0.1"])
        server, world = Server(), World(paths=ReturnPaths(allowed))
        await server.start()
        sent = receipt(server, host, "192.0.2.66")
        world.submit(sent)
        await world.until(lambda: sent.heard.count(Progress.DNS_FAILURE) == 3)
        assert (server.connections, sent.done) == (0, [])
        world.pool.close()

    run(test)


@pytest.mark.parametrize("allowed", ["127.0.0.0/8", "127.0.0.1"])
def test_a_receipt_goes_where_the_configuration_allows(monkeypatch: pytest.MonkeyPatch, allowed: str) -> None:
    async def test() -> None:
        Names(monkeypatch, ["127.0.0.1"])
        server, world = Server(), World(paths=ReturnPaths([allowed]))
        await server.start()
        sent = receipt(server, "relay.test", "192.0.2.66")
        world.submit(sent)
        await world.until(lambda: len(sent.done) == 1)
        world.pool.close()

    run(test)


def test_the_receipt_of_a_peer_takes_no_proxy_that_would_resolve_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        Names(monkeypatch, ["127.0.0.1"])
        server, proxy = Server(), Server()
        await server.start()
        await proxy.start()
        world = World(proxy=lambda host: Proxy("127.0.0.1", proxy.port), paths=ReturnPaths(["named.test"]))
        checked, named = (
            receipt(server, "sender.test", "127.0.0.1"),
            receipt(server, "named.test", "192.0.2.1"),
        )
        world.submit(checked, named)
        await world.until(lambda: len(checked.done) == len(named.done) == 1)
        assert (server.connections, proxy.connections) == (1, 1)
        world.pool.close()

    run(test)


def test_names_that_peers_chose_are_looked_up_one_at_a_time_and_their_addresses_have_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A peer whose name server does not answer holds up neither the names of programs nor long those of
    other peers.
    """

    async def test() -> None:
        under_way, most = 0, 0
        asked: list[str] = []

        async def getaddrinfo(_: object, host: str, port: int, **__: object) -> list[Any]:
            nonlocal under_way, most
            asked.append(host)
            if host.startswith("silent"):
                under_way += 1
                most = max(most, under_way)
                try:
                    await asyncio.Event().wait()
                finally:
                    under_way -= 1
            return [(0, 0, 0, "", ("127.0.0.1", port))]

        monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
        server, world = Server(), World(connect_timeout=0.2)
        await server.start()
        silent = [receipt(server, f"silent{n}.test", f"2001:db8::{n:x}") for n in range(20)]
        honest, own = receipt(server, "honest.test", "127.0.0.1"), queue(server, "b", host="program.test")
        world.submit(*silent)
        await world.until(lambda: under_way == 1)
        world.submit(honest, own)
        await world.until(lambda: len(honest.done) == len(own.done) == 1)
        assert most == 1
        assert len([host for host in asked if host.startswith("silent")]) <= 2
        world.pool.close()

    run(test)

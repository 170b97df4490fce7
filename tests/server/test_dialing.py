"""Connections on real sockets: addresses of names, what is told of those that fail."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Iterator

import pytest

from msmq_fast.mqqb.hops import Progress
from msmq_fast.mqqb.transfer import Connect, Resolve
from msmq_fast.server.net import dialing
from msmq_fast.server.net.connections import Pool, Share, Slot
from msmq_fast.server.net.dialing import Network, PeerPorts


class Engine:
    """What the network tells the transfer engine."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self.transfer = self
        self.done = asyncio.Event()

    def failed(self, link: int, detail: str, now: float, cause: Progress = Progress.CONNECT_FAILURE) -> None:
        self.told.append((link, cause))
        self.done.set()

    def resolved(self, link: int, addresses: list[str], now: float) -> None:
        self.told.append((link, addresses))
        self.done.set()


def a_share(limit: int = 10) -> Share:
    """Of connections that are opened."""
    return Pool(limit, limit, lambda *_, peer: None, lambda: 0.0).share("outgoing", limit)


def outcome(effect: Resolve | Connect, port: int = 1, source: str | None = None) -> tuple[object, ...]:
    """What becomes of one effect."""

    async def run() -> tuple[object, ...]:
        loop = asyncio.get_running_loop()
        engine = Engine()

        def dialled(link: int, slot: Slot) -> asyncio.BaseProtocol:
            engine.told.append((link, "connected"))
            engine.done.set()
            return asyncio.Protocol()

        ports = PeerPorts(port, 1, 5.0)
        made = Network(loop, loop.time, lambda: None, ports, source, a_share(), lambda _: engine, dialled)  # type: ignore[arg-type, return-value]
        made.effect(effect)
        await asyncio.wait_for(engine.done.wait(), 10)
        made.close()
        return engine.told[0]

    return asyncio.run(run())


@pytest.fixture(params=["127.0.0.1", "::1"])
def listener(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.socket(family) as made:
        made.bind((request.param, 0))
        made.listen()
        yield request.param, made.getsockname()[1]


@pytest.mark.rule("QB-169")
def test_addresses_of_both_families_are_dialled(listener: tuple[str, int]) -> None:
    address, port = listener
    assert outcome(Connect(4, address), port) == (4, "connected")


@pytest.mark.rule("QB-003")
@pytest.mark.parametrize("source", [None, "127.0.0.1"])
def test_each_connection_comes_from_a_port_of_its_own(source: str | None) -> None:
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        ports = {1801, listening.getsockname()[1]}
        for _ in range(2):
            effect = Connect(4, "127.0.0.1")
            assert outcome(effect, listening.getsockname()[1], source) == (4, "connected")
            accepted, (_, port) = listening.accept()
            stack.enter_context(accepted)  # while it is open nobody else has its port
            ports.add(port)
    assert len(ports) == 4


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert outcome(Connect(4, "127.0.0.1"), taken.getsockname()[1]) == (4, Progress.CONNECT_FAILURE)


def test_the_own_address_is_not_there() -> None:
    assert outcome(Connect(4, "127.0.0.1"), source="192.0.2.1") == (4, Progress.BIND_FAILURE)


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (errno.EMFILE, Progress.CREATE_FAILURE),
        (errno.ENOMEM, Progress.LOW_RESOURCE),
        (errno.ENOBUFS, Progress.LOW_RESOURCE),
        (errno.EAFNOSUPPORT, Progress.NOT_ENABLED),
    ],
)
def test_there_is_no_socket(monkeypatch: pytest.MonkeyPatch, code: int, cause: Progress) -> None:
    def refuse(*_: object) -> socket.socket:
        raise OSError(code, "refused")

    original: Callable[..., socket.socket] = socket.socket

    class Module:
        """The socket module, as far as connections need it."""

        def __getattr__(self, name: str) -> object:
            return refuse if name == "socket" else getattr(socket, name)

    monkeypatch.setattr(dialing, "socket", Module())
    assert outcome(Connect(4, "127.0.0.1")) == (4, cause)
    assert socket.socket is original


def test_names_are_resolved() -> None:
    assert outcome(Resolve(4, "localhost"))[1] != []
    assert outcome(Resolve(4, "nowhere.invalid"))[1] is Progress.CONNECT_FAILURE


def test_a_link_local_address_keeps_its_interface() -> None:
    assert dialing._address(("fe80::1", 1801, 0, 3)) == "fe80::1%3"
    assert dialing._address(("fe80::1%eth0", 1801, 0, 3)) == "fe80::1%eth0"
    assert dialing._address(("fd00::1", 1801, 0, 0)) == "fd00::1"
    assert dialing._address(("10.0.0.1", 1801)) == "10.0.0.1"


def test_connections_that_are_opened_are_counted() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        share = a_share(1)
        held = share.enter("127.0.0.1")
        assert held is not None
        engine = Engine()
        made = Network(
            loop,
            loop.time,
            lambda: None,
            PeerPorts(1, 1, 5.0),
            None,
            share,
            lambda _: engine,  # type: ignore[arg-type, return-value]
            lambda link, slot: asyncio.Protocol(),
        )
        made.effect(Connect(1, "127.0.0.1"))
        await asyncio.wait_for(engine.done.wait(), 10)
        assert engine.told == [(1, Progress.CREATE_FAILURE)]
        held.leave()
        engine.done.clear()
        made.effect(Connect(2, "127.0.0.1"))
        await asyncio.wait_for(engine.done.wait(), 10)
        assert engine.told[1:] == [(2, Progress.CONNECT_FAILURE)]  # nothing listens at port 1
        assert len(share) == 0
        made.close()

    asyncio.run(run())

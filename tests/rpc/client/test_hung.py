"""A server that keeps its connections and answers nothing more: no program waits for ever, and what became of
each message is known.
"""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast.protocol.errors import RemoteMachineNotAvailable, StaleHandle
from msmq_fast.rpc.client.binding import MOST_CONNECTIONS
from msmq_fast.rpc.client.remoteread import ANSWER_TIMEOUT, PURGE_TIMEOUT
from tests.support.rpc.fake_computers import HOST, OldComputer, Reader, RemoteReadComputer, packet
from tests.support.rpc.fakes import Later, Network

MODERN = (6, 1, 7601)


@pytest.fixture
def network() -> Network:
    return Network()


def servers(network: Network, kind: str, *bodies: bytes) -> tuple[Any, Any]:
    """A computer, and the server that its queues are read from."""
    if kind == "qm2qm":
        old = OldComputer(network, MODERN, *bodies)
        return old, old.qm2qm
    modern = RemoteReadComputer(network, *bodies)
    return modern, modern.server


def hang(server: Any, name: str, *, does_it: bool) -> None:
    """It never answers this operation, and may carry it out."""
    carry_out = server.handlers.get(name)

    def hung(args: Any) -> None:
        if does_it and carry_out is not None:
            carry_out(args)

    server.handlers[name] = hung


def run_down(computer: Any) -> None:
    """The server notices that the connection is gone."""
    computer.queue.locked.clear()


KINDS = pytest.mark.parametrize("kind", ["RemoteRead", "qm2qm"])


@KINDS
@pytest.mark.parametrize("removes", [False, True])
def test_an_end_without_an_answer_is_settled(network: Network, kind: str, removes: bool) -> None:
    computer, server = servers(network, kind, b"first", b"second")
    queue = Reader(network).open()
    hang(server, "end_receive", does_it=removes)
    read = queue.receive(0)
    network.run()
    network.pass_time(ANSWER_TIMEOUT - 1)
    assert not read.completion.done
    assert server.connections[0].open
    run_down(computer)
    network.pass_time(1)
    assert not server.connections[0].open, "only so the other computer puts the message back"
    network.pass_time(10)
    if removes:
        assert read.completion.result().packet == packet(b"first")
        assert list(computer.queue.messages) == [2]
    else:
        assert isinstance(read.completion.exception(), RemoteMachineNotAvailable)
        assert list(computer.queue.messages) == [1, 2]
    with pytest.raises(StaleHandle):
        queue.receive(0)


@KINDS
def test_a_computer_that_hangs_as_a_whole_keeps_nobody(network: Network, kind: str) -> None:
    _computer, server = servers(network, kind, b"first")
    reader = Reader(network)
    queue = reader.open()
    for name in list(server.handlers):
        hang(server, name, does_it=name == "start_receive")
    server.handlers["start_receive"] = server.handlers["start_receive2"] = lambda args: None
    waits, peeks = queue.receive(5_000), queue.receive(0, peek=True)
    network.run()
    network.pass_time(ANSWER_TIMEOUT)
    for read in (waits, peeks):
        assert isinstance(read.completion.exception(), RemoteMachineNotAvailable)
    assert len(reader.queues.shared.ids) == 0
    assert not server.connections[0].open


@KINDS
def test_a_read_has_its_own_time_first(network: Network, kind: str) -> None:
    servers(network, kind)
    read = Reader(network).open().receive(7_200_000)
    network.run()
    network.pass_time(7_200 + ANSWER_TIMEOUT - 1)
    assert not read.completion.done
    network.pass_time(1)
    assert isinstance(read.completion.exception(), RemoteMachineNotAvailable)


@KINDS
def test_a_purge_without_an_answer_ends(network: Network, kind: str) -> None:
    _computer, server = servers(network, kind)
    queue = Reader(network).open()
    hang(server, "purge_queue", does_it=False)
    purged = queue.purge()
    network.run()
    network.pass_time(PURGE_TIMEOUT - 1)
    assert not purged.done
    network.pass_time(1)
    assert isinstance(purged.exception(), RemoteMachineNotAvailable)
    assert server.connections[0].open


def test_a_cursor_that_never_comes(network: Network) -> None:
    _computer, server = servers(network, "RemoteRead", b"first")
    hang(server, "create_cursor", does_it=False)
    peek = Reader(network).open().open_cursor().peek(None)
    network.run()
    network.pass_time(ANSWER_TIMEOUT)
    assert isinstance(peek.completion.exception(), RemoteMachineNotAvailable)


def test_settling_is_not_kept_either(network: Network) -> None:
    _computer, server = servers(network, "RemoteRead", b"first")
    queue = Reader(network).open()
    hang(server, "end_receive", does_it=True)
    read = queue.receive(0)
    network.run()
    hang(server, "open_queue", does_it=False)
    queue.close()
    network.pass_time(2 * ANSWER_TIMEOUT)
    assert read.completion.result().packet == packet(b"first"), "one too many is better than one too few"
    network.pass_time(600)
    assert not any(connection.open for connection in server.connections)


def test_a_look_of_settling_that_is_not_answered_is_repeated(network: Network) -> None:
    _computer, server = servers(network, "RemoteRead", b"first")
    reader = Reader(network)
    queue = reader.open()
    hang(server, "end_receive", does_it=True)
    read = queue.receive(0)
    network.run()
    server.handlers["start_receive"] = lambda args: None
    network.pass_time(2 * ANSWER_TIMEOUT)
    assert read.completion.result().packet == packet(b"first")
    network.pass_time(200)
    assert len(reader.queues.shared.ids) == 0
    assert not any(connection.open for connection in server.connections)


def test_a_large_answer_takes_the_time_it_takes(network: Network) -> None:
    """Parts of an answer are an answer: a slow line is no server that hangs."""
    computer = RemoteReadComputer(network, bytes(100_000))
    queue = Reader(network).open()
    later = Later()
    asked: list[Any] = []
    computer.server.handlers["start_receive"] = lambda args: asked.append(args) or later
    read = queue.receive(0)
    network.run()
    later.answer(computer.found(asked[0], 1))
    link = computer.server.connections[0]
    whole = bytes(link.output)
    link.output.clear()
    for start in range(0, len(whole), 20_000):
        link.output += whole[start : start + 20_000]
        network.run()
        network.pass_time(ANSWER_TIMEOUT - 1)
    assert len(read.completion.result().packet) > 100_000


# ---- servers that carry out one call at a time on a connection


@KINDS
def test_reads_that_wait_leave_a_connection_to_acknowledgments(network: Network, kind: str) -> None:
    computer, server = servers(network, kind, b"first")
    server.multiplexes = False
    queue = Reader(network).open()
    came: list[Any] = []
    subscription = queue.subscribe(came.extend, 1, acknowledge=True)
    network.run()
    waiting = [queue.receive(None) for _ in range(3 * MOST_CONNECTIONS)]
    network.run()
    assert len(server.connections) == MOST_CONNECTIONS - 1
    acked = subscription.ack([came[0].lookup_id])
    network.run()
    assert acked.result() == 1
    assert computer.queue.removed == [1]
    assert len(computer.queue.waiting) == MOST_CONNECTIONS - 1
    assert network.dialled.count((HOST, 2103 if kind == "RemoteRead" else 2105)) == MOST_CONNECTIONS
    for read in waiting:
        assert read.cancel()
    network.run()
    assert computer.queue.waiting == {}
    started = len([name for name in server.names() if name.startswith("start_receive")])
    assert started == MOST_CONNECTIONS, "what was cancelled before it was sent is not sent"


def test_a_read_that_finds_no_connection_in_time_disturbs_nobody(network: Network) -> None:
    computer, server = servers(network, "RemoteRead")
    server.multiplexes = False
    queue = Reader(network).open()
    waiting = [queue.receive(None) for _ in range(MOST_CONNECTIONS)]
    late = queue.receive(0)
    network.run()
    network.pass_time(ANSWER_TIMEOUT)
    assert isinstance(late.completion.exception(), RemoteMachineNotAvailable)
    computer.arrive(b"first")
    network.run()
    assert [read.completion.done for read in waiting].count(True) == 1

"""Connections that break while queues of other computers are read over RemoteRead."""

from __future__ import annotations

import pytest

from msmq_fast.protocol.errors import (
    MSMQError,
    RemoteMachineNotAvailable,
    StaleHandle,
)
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from tests.support.rpc.fake_computers import Reader, RemoteReadComputer, packet
from tests.support.rpc.fakes import Network

ACK, NACK = 2, 1


@pytest.fixture
def network() -> Network:
    return Network()


def test_a_read_that_waits_when_the_connection_breaks(network: Network) -> None:
    computer = RemoteReadComputer(network)
    reader = Reader(network)
    queue = reader.open()
    read = queue.receive(None)
    network.run()
    computer.drop()
    network.run()
    assert isinstance(read.completion.exception(), RemoteMachineNotAvailable)
    with pytest.raises(StaleHandle):
        queue.receive(0)
    assert len(reader.queues.shared.ids) == 0


def break_at_end(computer: RemoteReadComputer, *, removes: bool) -> None:
    """The connection breaks when a removal is asked for: before it is done, or after."""
    end = computer.end

    def broken(args: object) -> None:
        if removes:
            end(args)
        computer.drop()

    computer.server.handlers["end_receive"] = broken


def test_a_removal_that_was_done_when_the_connection_broke(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first", b"second")
    queue = Reader(network).open()
    break_at_end(computer, removes=True)
    read = queue.receive(0)
    network.run()
    assert read.completion.result().packet == packet(b"first")
    assert list(computer.queue.messages) == [2]
    looked = computer.server.asked("start_receive")[-1].args
    assert (looked.ulAction, looked.LookupId) == (0x40000010, 4 << 56 | 1)


def test_a_removal_that_was_not_done_when_the_connection_broke(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first", b"second")
    queue = Reader(network).open()
    break_at_end(computer, removes=False)
    read = queue.receive(0)
    network.run()
    assert isinstance(read.completion.exception(), RemoteMachineNotAvailable)
    assert list(computer.queue.messages) == [1, 2], "the next read finds it"


def test_the_other_computer_comes_back_later(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first")
    queue = Reader(network).open()
    break_at_end(computer, removes=True)
    computer.server.handlers["open_queue"] = lambda args: computer.drop()
    read = queue.receive(0)
    network.run()
    network.pass_time(5)
    assert not read.completion.done
    computer.server.handlers["open_queue"] = computer.open
    network.pass_time(20)
    assert read.completion.result().packet == packet(b"first")


def test_the_other_computer_does_not_come_back(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first")
    queue = Reader(network).open()
    break_at_end(computer, removes=True)
    computer.server.handlers["open_queue"] = lambda args: computer.drop()
    read = queue.receive(0)
    network.run()
    network.pass_time(60)
    assert read.completion.result().packet == packet(b"first"), "one too many is better than one too few"


def test_a_message_that_is_still_locked_is_asked_for_again(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first")
    queue = Reader(network).open()
    break_at_end(computer, removes=False)
    start = computer.start
    locked = 0xC00E0050
    read = queue.receive(0)
    computer.server.handlers["start_receive"] = lambda args: (
        computer.failed(args, locked) if args.LookupId else start(args)
    )
    network.run()
    network.pass_time(1)
    assert not read.completion.done
    computer.server.handlers["start_receive"] = start
    network.pass_time(8)
    assert isinstance(read.completion.exception(), RemoteMachineNotAvailable)


def test_a_removal_that_is_refused(network: Network) -> None:
    from msmq_fast.protocol.errors import TransactionSequence

    computer = RemoteReadComputer(network, b"first")
    queue = Reader(network).open()
    computer.server.handlers["end_receive"] = lambda args: REMOTE_READ.op("end_receive").results(
        args, result=0xC00E0051
    )
    read = queue.receive(0)
    network.run()
    assert isinstance(read.completion.exception(), TransactionSequence)


@pytest.mark.rule("QP-204", "QP-210", "QP-216")
def test_no_number_is_given_twice(network: Network) -> None:
    computer = RemoteReadComputer(network, *(b"%d" % number for number in range(500)))
    reader = Reader(network)
    first, second = reader.open(), reader.open()
    reads = [(first, second)[n % 2].receive(None) for n in range(1000)]
    network.run()
    numbers = [request.args.dwRequestId for request in computer.server.asked("start_receive")]
    assert len(set(numbers)) == 1000
    assert len(reader.queues.shared.ids) == 500
    for read in reads:
        read.cancel()
    network.run()
    assert len(reader.queues.shared.ids) == 0


@pytest.mark.rule("QP-218")
def test_only_zero_is_success(network: Network) -> None:
    """An HRESULT whose severity bit is clear, such as that of a cancelled read, comes without a message."""
    computer = RemoteReadComputer(network)
    computer.server.handlers["start_receive"] = lambda args: computer.failed(args, 0x400E03E9)
    read = Reader(network).open().receive(0)
    network.run()
    failure = read.completion.exception()
    assert isinstance(failure, MSMQError)
    assert failure.code == 0x400E03E9
    assert computer.ends == []

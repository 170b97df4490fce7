"""Queues of other computers over qmcomm and qm2qm, where RemoteRead is not registered (MS-MQQP 3.2)."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from msmq_fast.protocol.errors import (
    MessageNotFound,
    MSMQError,
    OperationCancelled,
    RemoteMachineNotAvailable,
)
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.remote import RemoteMessage
from msmq_fast.rpc.idl.qm2qm import QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from tests.support.rpc.fake_computers import CLIENT, CONTEXT, HOST, NAME, READ, OldComputer, Reader, packet
from tests.support.rpc.fakes import CANCEL, ORPHANED, FakeServer, Fault, Network, mapper

ACK, NACK = 2, 1
MODERN = (6, 1, 7601)


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.mark.rule("QP-108", "QP-201", "QP-203", "QP-208")
@pytest.mark.parametrize("ndr64", [False, True])
def test_open_and_receive(network: Network, ndr64: bool) -> None:
    computer = OldComputer(network, MODERN, b"first", ndr64=ndr64)
    queue = Reader(network).open()
    read = queue.receive(0)
    network.run()
    message = read.completion.result()
    assert message.packet == packet(b"first")
    assert (message.lookup_id, message.arrived_time) == (4 << 56 | 1, 1_700_000_100)
    opened = computer.qmcomm.asked("open_remote_queue")[0].args
    assert opened.pQueueFormat.name == NAME.text
    assert (opened.dwDesiredAccess, opened.dwShareMode, opened.pLicGuid) == (1, 0, CLIENT)
    taken = computer.qm2qm.asked("open_queue")[0].args
    assert (taken.pLicGuid, taken.dwMQS) == (CLIENT, 0)
    assert (taken.hQueue, taken.pQueue, taken.dwpContext) == (7, 17, 27)
    assert computer.ends == [ACK]
    assert computer.qm2qm.asked("end_receive")[0].args.pphContext == READ
    queue.close()
    network.run()
    assert computer.qm2qm.asked("close_queue")[0].args.pphContext == CONTEXT


@pytest.mark.rule("QP-201")
def test_a_routing_server_says_so(network: Network) -> None:
    computer = OldComputer(network, MODERN)
    Reader(network, routing_server=True).open()
    assert computer.qm2qm.asked("open_queue")[0].args.dwMQS == 1


@pytest.mark.rule("QP-205", "QP-206")
@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (None, "start_receive"),
        ((4, 0, 1381), "start_receive"),
        ((5, 0, 2195), "start_receive"),
        ((5, 1, 950), "start_receive"),
        ((5, 1, 951), "start_receive2"),
        ((6, 1, 7601), "start_receive2"),
    ],
)
def test_the_version_chooses_the_operation(
    network: Network, version: tuple[int, int, int] | None, expected: str
) -> None:
    computer = OldComputer(network, version, b"first", b"second")
    queue = Reader(network).open()
    reads = [queue.receive(0, peek=True), queue.receive(0)]
    network.run()
    assert [read.completion.result().packet for read in reads] == [packet(b"first")] * 2
    starts = [name for name in computer.qm2qm.names() if name.startswith("start")]
    assert starts == [expected] * 2


@pytest.mark.rule("QP-206")
def test_only_an_unknown_operation_is_an_old_computer(network: Network) -> None:
    computer = OldComputer(network, MODERN)

    def refused(_: Any) -> Any:
        raise Fault(0xC00E0025)

    computer.qm2qm.handlers["get_version"] = refused
    with pytest.raises(MSMQError):
        Reader(network).open()


@pytest.mark.rule("QP-207")
@pytest.mark.parametrize("version", [(5, 0, 2195), MODERN])
def test_the_bytes_of_a_descriptor(network: Network, version: tuple[int, int, int]) -> None:
    computer = OldComputer(network, version)
    queue = Reader(network).open()
    queue.receive(1500)
    cursor = queue.open_cursor()
    cursor.peek_next(None)
    network.run()
    starts = [request for request in computer.qm2qm.seen if request.name.startswith("start")]
    expected = [(7, 0, 0, 1500, 0, 17), (7, 78, 0x80000001, 0xFFFFFFFF, 0, 17)]
    numbers = set()
    for request, (queue_, hcursor, action, timeout, size, dwqueue) in zip(starts, expected, strict=True):
        stub = request.stub
        if version == MODERN:
            referent, sequential = struct.unpack_from("<I4xQ", stub)
            assert referent
            assert sequential == 0
            assert len(stub) == 60
            stub = stub[16:]
        fields = struct.unpack("<9IHxxI", stub)
        assert fields[:6] == (queue_, hcursor, action, timeout, size, dwqueue)
        numbers.add(fields[6])
        assert fields[7:] == (0, 0, 0, 0), "Reserved, dwArriveTime, eAckNack, lpBuffer"
    assert len(numbers) == 2
    assert 0 not in numbers


@pytest.mark.rule("QP-211")
def test_a_peek_is_not_ended(network: Network) -> None:
    computer = OldComputer(network, MODERN, b"first")
    queue = Reader(network).open()
    queue.receive(0, peek=True)
    network.run()
    assert computer.ends == []


@pytest.mark.rule("QP-209")
def test_what_is_no_message_goes_back(network: Network) -> None:
    computer = OldComputer(network, MODERN, b"first")
    computer.queue.messages[1] = computer.queue.messages[1][:-9]
    read = Reader(network).open().receive(0)
    network.run()
    assert isinstance(read.completion.exception(), MSMQError)
    assert computer.ends == [NACK]
    assert computer.queue.removed == []


@pytest.mark.rule("QP-074", "QP-108")
def test_a_read_that_failed_is_not_ended(network: Network) -> None:
    computer = OldComputer(network, MODERN)
    computer.answer = _with_handle(computer)  # type: ignore[method-assign]
    read = Reader(network).open().receive(0)
    network.run()
    assert read.completion.exception() is not None
    assert computer.ends == []


def _with_handle(computer: OldComputer) -> Any:
    """Failures that carry a context handle, as no server should answer."""
    answer = OldComputer.answer

    def answered(args: Any, desc: Any, name: str, status: int, data: Any, number: int, _: Any) -> Any:
        return answer(computer, args, desc, name, status, data, number, READ)

    return answered


@pytest.mark.rule("QP-213", "QP-218")
def test_cancelling(network: Network) -> None:
    computer = OldComputer(network, MODERN)
    reader = Reader(network)
    queue = reader.open()
    read = queue.receive(None)
    network.run()
    started = computer.qm2qm.asked("start_receive2")[0].args.lpRemoteReadDesc2.pRemoteReadDesc
    assert read.cancel()
    network.run()
    (cancel,) = computer.qm2qm.asked("cancel_receive")
    assert (cancel.args.hQueue, cancel.args.pQueue) == (7, 17)
    assert cancel.args.dwRequestID == started.dwRequestID
    assert isinstance(read.completion.exception(), OperationCancelled)
    assert len(reader.queues.shared.ids) == 0


@pytest.mark.rule("QP-218")
def test_cancelled_by_the_server_is_not_success(network: Network) -> None:
    computer = OldComputer(network, MODERN)
    read = Reader(network).open().receive(None)
    network.run()
    ((args, desc, name), later) = computer.queue.waiting.popitem()[1]
    later.answer(computer.failed(args, desc, name, 0x400E03E9))
    network.run()
    assert isinstance(read.completion.exception(), OperationCancelled)
    assert computer.ends == []


@pytest.mark.rule("QP-212")
def test_purge_fails_either_way(network: Network) -> None:
    computer = OldComputer(network, MODERN)
    queue = Reader(network).open()

    def outcome() -> Exception | None:
        done = queue.purge()
        network.run()
        assert done.done
        return done.exception()

    assert outcome() is None
    assert computer.qm2qm.asked("purge_queue")[0].args.hQueue == 7
    computer.qm2qm.handlers["purge_queue"] = lambda args: QM2QM.op("purge_queue").results(
        args, result=0xC00E0007
    )
    by_result = outcome()

    def fault(_: Any) -> Any:
        raise Fault(0xC00E0007)

    computer.qm2qm.handlers["purge_queue"] = fault
    by_fault = outcome()
    assert isinstance(by_result, MSMQError)
    assert type(by_fault) is type(by_result)
    assert isinstance(by_fault, MSMQError)
    assert by_fault.code == by_result.code == 0xC00E0007


@pytest.mark.rule("QP-214")
def test_closing_a_cursor(network: Network) -> None:
    computer = OldComputer(network, MODERN, b"one")
    queue = Reader(network).open()
    cursor = queue.open_cursor()
    read = cursor.peek(0)
    network.run()
    assert read.completion.result().packet == packet(b"one")
    assert computer.qmcomm.asked("create_remote_cursor")[0].args.hQueue == 7
    cursor.close()
    network.run()
    (closed,) = computer.qm2qm.asked("close_cursor")
    assert (closed.args.hQueue, closed.args.hCursor) == (7, 78)


@pytest.mark.rule("QP-210", "QP-215", "QP-217")
def test_closing_the_queue(network: Network) -> None:
    computer = OldComputer(network, MODERN)
    reader = Reader(network)
    queue = reader.open()
    reads = [queue.receive(None) for _ in range(3)]
    network.run()
    queue.close()
    assert all(isinstance(read.completion.exception(), OperationCancelled) for read in reads)
    assert "close_queue" not in computer.qm2qm.names(), "the program does not wait for it"
    network.run()
    names = computer.qm2qm.names()
    assert names[-4:] == ["cancel_receive"] * 3 + ["close_queue"]
    assert len(reader.queues.shared.ids) == 0
    for server in (computer.qmcomm, computer.qm2qm):
        assert not any(connection.open for connection in server.connections)


@pytest.mark.rule("QP-200")
@pytest.mark.parametrize("port_methods", [False, True])
def test_ports(network: Network, port_methods: bool) -> None:
    computer = OldComputer(network, MODERN)
    network.servers[HOST, 2200], network.servers[HOST, 2201] = computer.qmcomm, computer.qm2qm
    network.servers[HOST, 135] = mapper({QMCOMM.uuid: 2200, QM2QM.uuid: 2201})
    Reader(network, port_methods=port_methods).open()
    if not port_methods:
        assert network.dialled == [(HOST, 135), (HOST, 2200), (HOST, 2201)]
        assert "get_port" not in computer.qm2qm.names()
        return
    assert network.dialled == [(HOST, 135), (HOST, 2200), (HOST, 2103), (HOST, 2201), (HOST, 2105)]
    assert computer.qm2qm.names()[:2] == ["get_port", "open_queue"]
    assert computer.qm2qm.asked("get_port")[0].args.dwPortType == 1
    assert [connection.open for connection in computer.qm2qm.connections] == [False, True]


@pytest.mark.rule("QP-200")
def test_a_port_that_is_not_told_leaves_the_binding_as_it_is(network: Network) -> None:
    computer = OldComputer(network, MODERN)
    computer.qm2qm.handlers["get_port"] = lambda args: QM2QM.op("get_port").results(args, result=0)
    Reader(network, port_methods=True).open()
    assert network.dialled == [(HOST, 135), (HOST, 2103), (HOST, 2105)]
    assert [connection.open for connection in computer.qm2qm.connections] == [True]


@pytest.mark.rule("QP-202", "QP-189", "RP-02")
def test_the_open_time_out(network: Network) -> None:
    computer = OldComputer(network, MODERN)
    computer.qm2qm.handlers["open_queue"] = lambda args: None
    done = Reader(network).queues.open(*_arguments())
    network.run()
    network.pass_time(299)
    assert not done.done
    network.pass_time(1)
    assert isinstance(done.exception(), RemoteMachineNotAvailable)
    call_id = computer.qm2qm.asked("open_queue")[0].call_id
    assert computer.qm2qm.events == [(CANCEL, call_id), (ORPHANED, call_id)]


@pytest.mark.rule("QP-189")
def test_an_open_does_not_wait_for_the_version_for_ever(network: Network) -> None:
    computer = OldComputer(network, MODERN)
    computer.qm2qm.handlers["get_version"] = lambda args: None
    done = Reader(network).queues.open(*_arguments())
    network.run()
    network.pass_time(300)
    assert isinstance(done.exception(), RemoteMachineNotAvailable)
    assert not any(connection.open for connection in computer.qm2qm.connections)


@pytest.mark.rule("QP-189")
def test_no_other_call_has_a_time_out(network: Network) -> None:
    OldComputer(network, MODERN)
    read = Reader(network).open().receive(None)
    network.run()
    network.pass_time(30 * 86_400)
    assert not read.completion.done


def _arguments() -> Any:
    from msmq_fast.qm.access import Access, Share

    return NAME, Access.RECEIVE, Share.DENY_NONE, None


@pytest.mark.rule("QP-040")
def test_nothing_is_asked_before_the_open(network: Network) -> None:
    computer = OldComputer(network, MODERN, b"first")
    queue = Reader(network).open()
    queue.receive(0)
    queue.purge()
    network.run()
    assert computer.qm2qm.names()[0] == "open_queue"


def test_look_ups(network: Network) -> None:
    computer = OldComputer(network, MODERN, b"one", b"two")
    queue = Reader(network).open()
    done = queue.lookup(4 << 56 | 2, Lookup.CURRENT)
    network.run()
    assert done.result().packet == packet(b"two")
    assert computer.ends == [ACK]
    request = computer.qm2qm.asked("start_receive_by_lookup_id")[0].args
    desc = request.lpRemoteReadDesc2.pRemoteReadDesc
    assert (request.LookupId, desc.ulAction, desc.ulTimeout, desc.hCursor) == (4 << 56 | 2, 0x40000020, 0, 0)
    missing = queue.lookup(4 << 56 | 9, Lookup.CURRENT)
    network.run()
    assert isinstance(missing.exception(), MessageNotFound)


def test_old_computers_know_no_lookup_identifiers(network: Network) -> None:
    OldComputer(network, (5, 0, 2195), b"one")
    queue = Reader(network).open()
    with pytest.raises(MSMQError) as refused:
        queue.lookup(1, Lookup.CURRENT)
    assert refused.value.code == 0xC00E008B
    with pytest.raises(MSMQError):
        queue.subscribe(lambda _: None, 1, acknowledge=True)
    first = queue.lookup(0, Lookup.FIRST, peek=True)
    network.run()
    assert first.result().lookup_id == 0


# ------------------------------------------------------------------------------------------------- fallback


@pytest.mark.rule("RR-090")
def test_only_not_registered_leads_to_qm2qm(network: Network) -> None:
    OldComputer(network, MODERN, b"first")
    network.servers[HOST, 135] = mapper({REMOTE_READ.uuid: 2104, QMCOMM.uuid: 2103, QM2QM.uuid: 2105})
    with pytest.raises(RemoteMachineNotAvailable):
        Reader(network).open()
    assert network.dialled == [(HOST, 135), (HOST, 2104)]


@pytest.mark.rule("RR-090")
def test_an_exception_not_registered_leads_to_qm2qm_too(network: Network) -> None:
    computer = OldComputer(network, MODERN, b"first")

    def not_registered(_: Any) -> Any:
        raise Fault(1753)

    network.servers[HOST, 2104] = FakeServer(REMOTE_READ, {"open_queue": not_registered})
    network.servers[HOST, 135] = mapper({REMOTE_READ.uuid: 2104, QMCOMM.uuid: 2103, QM2QM.uuid: 2105})
    Reader(network).open()
    assert computer.qm2qm.names()[0] == "open_queue"


def test_a_computer_that_serves_neither(network: Network) -> None:
    network.servers[HOST, 135] = mapper({})
    with pytest.raises(RemoteMachineNotAvailable, match="not registered"):
        Reader(network).open()


# ---- subscriptions


def test_a_subscription_keeps_messages_locked_until_they_are_acknowledged(network: Network) -> None:
    computer = OldComputer(network, MODERN, b"one")
    queue = Reader(network).open()
    came: list[RemoteMessage] = []
    subscription = queue.subscribe(came.extend, 1, acknowledge=True)
    network.run()
    assert [message.packet for message in came] == [packet(b"one")]
    assert computer.ends == []
    done = subscription.ack([came[0].lookup_id])
    network.run()
    assert done.result() == 1
    assert computer.ends == [ACK]
    assert subscription.ack([came[0].lookup_id]).result() == 0

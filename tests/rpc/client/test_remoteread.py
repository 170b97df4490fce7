"""Queues of other computers over RemoteRead, against a server whose every answer is ours."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from msmq_fast.protocol.errors import (
    AccessDenied,
    InvalidHandle,
    IOTimeout,
    MessageNotFound,
    MSMQError,
    OperationCancelled,
    QueueNotFound,
    RemoteMachineNotAvailable,
)
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from tests.support.rpc.fake_computers import (
    CLIENT,
    HOST,
    INFINITE,
    PEEK_CURRENT,
    PEEK_NEXT,
    RECEIVE,
    Reader,
    RemoteReadComputer,
    packet,
)
from tests.support.rpc.fakes import CANCEL, ORPHANED, Network

ACK, NACK = 2, 1


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.mark.rule("RR-094", "RR-095")
@pytest.mark.parametrize("ndr64", [False, True])
def test_receive_has_two_phases_and_ends_after_the_second(network: Network, ndr64: bool) -> None:
    computer = RemoteReadComputer(network, b"first", b"second", ndr64=ndr64)
    queue = Reader(network).open()
    read = queue.receive(0)
    network.run()
    message = read.completion.result()
    assert message.packet == packet(b"first")
    assert message.lookup_id == 4 << 56 | 1
    assert message.arrived_time == 1_700_000_100
    assert computer.server.names() == ["open_queue", "start_receive", "end_receive"]
    start = computer.server.asked("start_receive")[0].args
    assert (start.ulAction, start.ulTimeout, start.hCursor, start.LookupId) == (RECEIVE, 0, 0, 0)
    assert computer.ends == [(start.dwRequestId, ACK)]
    assert computer.queue.removed == [1]


@pytest.mark.rule("RR-090")
def test_what_a_queue_is_opened_with(network: Network) -> None:
    computer = RemoteReadComputer(network)
    Reader(network).open(Access.PEEK, Share.DENY_RECEIVE)
    opened = computer.server.asked("open_queue")[0].args
    assert opened.pQueueFormat.m_qft == 3
    assert opened.pQueueFormat.name == rf"TCP:{HOST}\private$\orders"
    assert (opened.dwAccess, opened.dwShareMode, opened.pClientId) == (0x20, 1, CLIENT)
    assert (opened.fNonRoutingServer, opened.Major, opened.Minor, opened.fWorkgroup) == (1, 6, 1, 1)


@pytest.mark.rule("RR-090")
def test_a_routing_server_says_so(network: Network) -> None:
    computer = RemoteReadComputer(network)
    Reader(network, routing_server=True, workgroup=False).open()
    opened = computer.server.asked("open_queue")[0].args
    assert (opened.fNonRoutingServer, opened.fWorkgroup) == (0, 0)


@pytest.mark.rule("RR-095")
def test_the_message_comes_only_after_its_removal_is_confirmed(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first")
    queue = Reader(network).open()
    computer.server.handlers["end_receive"] = lambda args: None
    read = queue.receive(0)
    network.run()
    assert computer.server.names()[-1] == "end_receive"
    assert not read.completion.done
    assert read.cancel() is False


@pytest.mark.rule("RR-093")
def test_peek_has_one_phase(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first")
    queue = Reader(network).open()
    read = queue.receive(0, peek=True)
    network.run()
    assert read.completion.result().packet == packet(b"first")
    assert computer.server.asked("start_receive")[0].args.ulAction == PEEK_CURRENT
    assert computer.ends == []


def test_time_outs(network: Network) -> None:
    computer = RemoteReadComputer(network)
    queue = Reader(network).open()
    read = queue.receive(0)
    network.run()
    assert isinstance(read.completion.exception(), IOTimeout)
    queue.receive(1500)
    queue.receive(None)
    network.run()
    waits = [request.args.ulTimeout for request in computer.server.asked("start_receive")]
    assert waits == [0, 1500, INFINITE]


def test_a_waiting_read_gets_what_comes(network: Network) -> None:
    computer = RemoteReadComputer(network)
    queue = Reader(network).open()
    read = queue.receive(None)
    network.run()
    assert not read.completion.done
    computer.arrive(b"late")
    network.run()
    assert read.completion.result().packet == packet(b"late")


@pytest.mark.rule("RR-099")
def test_cancelled_reads_are_cancelled_there_too(network: Network) -> None:
    computer = RemoteReadComputer(network)
    reader = Reader(network)
    queue = reader.open()
    read = queue.receive(None)
    network.run()
    assert read.cancel() is True
    assert isinstance(read.completion.exception(), OperationCancelled)
    assert len(reader.queues.shared.ids) == 1, "the number stays taken until the read is answered"
    network.run()
    assert computer.queue.waiting == {}
    assert len(reader.queues.shared.ids) == 0
    assert read.cancel() is False


def test_a_message_that_meets_a_cancel_goes_back(network: Network) -> None:
    computer = RemoteReadComputer(network)
    queue = Reader(network).open()
    read = queue.receive(None)
    network.run()
    computer.arrive(b"just now")
    read.cancel()
    network.run()
    assert [ack for _, ack in computer.ends] == [NACK]
    assert list(computer.queue.messages) == [1]
    assert computer.queue.locked == {}


@pytest.mark.rule("RR-094")
def test_what_is_no_message_goes_back(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first")
    computer.queue.messages[1] = b"\x10\x00" + bytes(90)
    queue = Reader(network).open()
    read = queue.receive(0)
    network.run()
    assert isinstance(read.completion.exception(), MSMQError)
    assert [ack for _, ack in computer.ends] == [NACK]
    assert computer.queue.removed == []


@pytest.mark.rule("RR-094")
def test_a_body_that_was_cut_off_goes_back(network: Network) -> None:
    from msmq_fast.rpc.idl.remoteread import REMOTE_READ, SECTION_BUFFER

    computer = RemoteReadComputer(network, b"first")
    data = packet(b"x" * 100)
    cut = SECTION_BUFFER(1, len(data) + 50, len(data), data)
    computer.server.handlers["start_receive"] = lambda args: REMOTE_READ.op("start_receive").results(
        args, pSequenceId=1, pdwNumberOfSections=1, ppPacketSections=[cut]
    )
    read = Reader(network).open().receive(0)
    network.run()
    assert isinstance(read.completion.exception(), MSMQError)
    assert [ack for _, ack in computer.ends] == [NACK]


def extensions(aborts: int, moves: int) -> bytes:
    """ExtensionHeader, SubqueueHeader, ExtendedAddressHeader (MS-MQRR 2.2.5.2, .3, .5)."""
    subqueue = struct.pack("<IIIII128x", 148, 0, aborts, moves, 0)
    address = struct.pack("<IHHI16x", 28, 0, 0, 0)
    return struct.pack("<IIB3x", 12, len(subqueue + address), 0x12) + subqueue + address


@pytest.mark.rule("RR-096")
@pytest.mark.parametrize("counted", [False, True], ids=["behind PacketSize", "within PacketSize"])
def test_headers_behind_the_message(network: Network, counted: bool) -> None:
    computer = RemoteReadComputer(network, b"first")
    computer.tail = extensions(3, 2)
    if counted:
        plain = computer.queue.messages[1]
        size = len(plain) + len(computer.tail)
        computer.queue.messages[1] = plain[:8] + size.to_bytes(4, "little") + plain[12:]
    read = Reader(network).open().receive(0)
    network.run()
    message = read.completion.result()
    assert message.packet == packet(b"first")
    assert (message.abort_count, message.move_count) == (3, 2)


@pytest.mark.rule("RR-096")
def test_time_to_reach_queue_is_a_duration_here(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first")
    computer.queue.messages[1] = packet(b"first", ttrq=1_700_000_000 + 600)
    read = Reader(network).open().receive(0)
    network.run()
    assert read.completion.result().packet == packet(b"first", ttrq=600)


def test_large_messages_come_in_fragments(network: Network) -> None:
    computer = RemoteReadComputer(network, body := bytes(range(256)) * 16_000)
    computer.server.fragment_out = 4280
    read = Reader(network).open().receive(0)
    network.run()
    assert read.completion.result().packet == packet(body)


def test_requests_are_cut_to_what_the_server_receives(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first")
    computer.server.max_recv = 128
    read = Reader(network).open().receive(0)
    network.run()
    assert read.completion.result().packet == packet(b"first")
    assert computer.server.fragments_in > len(computer.server.seen)


# ------------------------------------------------------------------------------------------------- look-ups


def test_look_ups(network: Network) -> None:
    computer = RemoteReadComputer(network, b"one", b"two", b"three")
    queue = Reader(network).open()

    def body(lookup_id: int, operation: Lookup) -> bytes:
        done = queue.lookup(lookup_id, operation, peek=True)
        network.run()
        return done.result().packet

    assert body(0, Lookup.FIRST) == packet(b"one")
    assert body(0, Lookup.NEXT) == packet(b"one")
    assert body(0, Lookup.LAST) == packet(b"three")
    assert body(4 << 56 | 2, Lookup.CURRENT) == packet(b"two")
    assert body(4 << 56 | 2, Lookup.NEXT) == packet(b"three")
    assert body(4 << 56 | 2, Lookup.PREVIOUS) == packet(b"one")
    assert computer.ends == []
    with pytest.raises(MessageNotFound):
        body(4 << 56 | 3, Lookup.NEXT)
    with pytest.raises(MessageNotFound):
        body(0, Lookup.CURRENT)
    actions = [request.args.ulAction for request in computer.server.asked("start_receive")]
    assert actions[2:6] == [0x40000012, 0x40000010, 0x40000011, 0x40000012]


def test_receive_by_lookup_id_has_two_phases(network: Network) -> None:
    computer = RemoteReadComputer(network, b"one", b"two", b"three")
    queue = Reader(network).open()
    done = queue.lookup(4 << 56 | 2, Lookup.CURRENT)
    network.run()
    assert done.result().packet == packet(b"two")
    assert computer.queue.removed == [2]


def test_the_first_of_an_empty_queue_is_not_found(network: Network) -> None:
    RemoteReadComputer(network)
    done = Reader(network).open().lookup(0, Lookup.FIRST)
    network.run()
    assert isinstance(done.exception(), MessageNotFound)


# ------------------------------------------------------------------------------------------------- cursors


@pytest.mark.rule("RR-098")
def test_cursors(network: Network) -> None:
    computer = RemoteReadComputer(network, b"one")
    queue = Reader(network).open()
    cursor = queue.open_cursor()
    read = cursor.peek(0)
    network.run()
    cursor.peek_next(0)
    cursor.receive(250)
    network.run()
    assert read.completion.result().packet == packet(b"one")
    reads = [request.args for request in computer.server.asked("start_receive")]
    assert [(r.ulAction, r.hCursor, r.ulTimeout) for r in reads] == [
        (PEEK_CURRENT, 77, 0),
        (PEEK_NEXT, 77, 0),
        (RECEIVE, 77, 250),
    ]
    cursor.close()
    cursor.close()
    network.run()
    (closed,) = computer.server.asked("close_cursor")
    assert closed.args.hCursor == 77
    with pytest.raises(InvalidHandle):
        cursor.peek(0)


@pytest.mark.rule("RR-098")
def test_a_closed_cursor_cancels_its_read(network: Network) -> None:
    computer = RemoteReadComputer(network)
    queue = Reader(network).open()
    cursor = queue.open_cursor()
    read = cursor.peek(None)
    network.run()
    cursor.close()
    network.run()
    assert isinstance(read.completion.exception(), OperationCancelled)
    assert computer.server.names()[-2:] == ["cancel_receive", "close_cursor"]


# ------------------------------------------------------------------------------------------------- the rest


@pytest.mark.rule("RR-097")
def test_purge(network: Network) -> None:
    computer = RemoteReadComputer(network)
    done = Reader(network).open().purge()
    network.run()
    assert done.exception() is None
    assert computer.server.names()[-1] == "purge_queue"


def test_a_queue_open_for_peeking_gives_nothing_away(network: Network) -> None:
    RemoteReadComputer(network)
    queue = Reader(network).open(Access.PEEK)
    for forbidden in (lambda: queue.receive(0), queue.purge, lambda: queue.lookup(1, Lookup.CURRENT)):
        with pytest.raises(AccessDenied):
            forbidden()


@pytest.mark.rule("RR-100")
def test_close_cancels_closes_there_and_hangs_up(network: Network) -> None:
    computer = RemoteReadComputer(network)
    reader = Reader(network)
    queue = reader.open()
    read = queue.receive(None)
    network.run()
    queue.close()
    queue.close()
    assert isinstance(read.completion.exception(), OperationCancelled), "nobody waits for the other computer"
    network.run()
    assert computer.server.names()[-2:] == ["cancel_receive", "close_queue"]
    assert not any(connection.open for connection in computer.server.connections)
    assert len(reader.queues.shared.ids) == 0
    with pytest.raises(InvalidHandle):
        queue.receive(0)


def test_close_waits_for_removals_under_way(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first")
    queue = Reader(network).open()
    from tests.support.rpc.fakes import Later

    later = Later()
    end = computer.end
    held = []
    computer.server.handlers["end_receive"] = lambda args: held.append(args) or later
    read = queue.receive(0)
    network.run()
    queue.close()
    network.run()
    assert "close_queue" not in computer.server.names()
    later.answer(end(held[0]))
    network.run()
    assert read.completion.result().packet == packet(b"first")
    assert computer.server.names()[-1] == "close_queue"


def test_a_server_that_does_not_answer_a_close_is_hung_up_on(network: Network) -> None:
    computer = RemoteReadComputer(network)
    queue = Reader(network).open()
    computer.server.handlers["close_queue"] = lambda args: None
    queue.close()
    network.run()
    assert computer.server.connections[0].open
    network.pass_time(10)
    assert not computer.server.connections[0].open


@pytest.mark.rule("RR-090")
@pytest.mark.parametrize(
    ("status", "expected"),
    [(0xC00E0003, QueueNotFound), (0xC00E0025, AccessDenied), (5, AccessDenied), (0x1C010003, MSMQError)],
)
def test_what_an_open_is_refused_with(network: Network, status: int, expected: type[MSMQError]) -> None:
    computer = RemoteReadComputer(network)
    computer.refuses_open = status
    with pytest.raises(expected):
        Reader(network).open()
    assert not any(connection.open for connection in computer.server.connections)
    assert network.dialled == [(HOST, 135), (HOST, 2103)], "only EPT_S_NOT_REGISTERED leads to qm2qm"


def test_nobody_there(network: Network) -> None:
    with pytest.raises(RemoteMachineNotAvailable, match="connection refused"):
        Reader(network).open()


def test_who_may_not_read_there(network: Network) -> None:
    RemoteReadComputer(network)
    reader = Reader(network)
    reader.allowed = False
    with pytest.raises(AccessDenied):
        reader.open()
    assert network.dialled == []


@pytest.mark.rule("RR-092")
def test_an_open_that_is_not_answered(network: Network) -> None:
    computer = RemoteReadComputer(network)
    computer.server.handlers["open_queue"] = lambda args: None
    done = Reader(network).queues.open(*_open_arguments())
    network.run()
    network.pass_time(299)
    assert not done.done
    network.pass_time(1)
    assert isinstance(done.exception(), RemoteMachineNotAvailable)
    call_id = computer.server.asked("open_queue")[0].call_id
    assert computer.server.events == [(CANCEL, call_id), (ORPHANED, call_id)]
    assert not computer.server.connections[0].open


def _open_arguments() -> tuple[object, ...]:
    from tests.support.rpc.fake_computers import NAME

    return NAME, Access.RECEIVE, Share.DENY_NONE, None


def test_a_server_that_takes_one_call_at_a_time_gets_more_connections(network: Network) -> None:
    computer = RemoteReadComputer(network)
    computer.server.multiplexes = False
    queue = Reader(network).open()
    read = queue.receive(None)
    network.run()
    read.cancel()
    network.run()
    assert computer.queue.waiting == {}
    assert computer.server.groups == [0, 0x1234], "in the same association"
    assert network.dialled.count((HOST, 2103)) == 2


@pytest.mark.parametrize("removed", [True, False])
def test_a_removal_that_the_disk_did_not_take_at_once_is_settled(network: Network, removed: bool) -> None:
    computer = RemoteReadComputer(network, b"one")

    def full(args: Any) -> Any:
        if removed:
            computer.end(args)
        computer.queue.locked.clear()
        return REMOTE_READ.op("end_receive").results(args, result=0xC00E002A)

    computer.server.handlers["end_receive"] = full
    read = Reader(network).open().receive(0)
    network.run()
    network.pass_time(5)
    if removed:
        assert read.completion.result().packet == packet(b"one"), "nobody else has it"
    else:
        assert isinstance(read.completion.exception(), MSMQError)


def test_the_call_identifiers_of_a_connection_end(network: Network) -> None:
    computer = RemoteReadComputer(network, b"one", b"two")
    queue = Reader(network).open()
    (connection,) = (link.client for link in network.links if link.server is computer.server)
    connection._last_call = 0x7FFFFFFD  # as after some months
    reads = [queue.receive(0), queue.receive(0)]
    network.run()
    assert [read.completion.result().packet for read in reads] == [packet(b"one"), packet(b"two")]
    assert computer.server.groups == [0, 0x1234], "another one of the same association goes on"
    assert max(request.call_id for request in computer.server.seen) == 0x7FFFFFFF


@pytest.mark.rule("RR-091")
def test_the_interface_is_asked_for_its_port_where_that_is_wanted(network: Network) -> None:
    computer = RemoteReadComputer(network)
    network.servers[HOST, 2200] = network.servers[HOST, 2103]
    from tests.support.rpc.fakes import mapper

    network.servers[HOST, 135] = mapper({REMOTE_READ.uuid: 2200})
    Reader(network, port_methods=True).open()
    assert network.dialled == [(HOST, 135), (HOST, 2200), (HOST, 2103)]
    assert computer.server.names() == ["get_server_port", "open_queue"]
    assert [connection.open for connection in computer.server.connections] == [False, True]


def test_a_known_port_needs_no_mapper(network: Network) -> None:
    RemoteReadComputer(network)
    Reader(network, port=2103).open()
    assert network.dialled == [(HOST, 2103)]

"""qm2qm: receiving, peeking, looking up."""

from __future__ import annotations

import pytest

from msmq_fast._native.framing import parse
from msmq_fast.packet.names import parse_format_name
from msmq_fast.qm.access import Access
from msmq_fast.rpc.services.reads import SEQUENTIAL, Ack, Action
from tests.support.clocks import WALL
from tests.support.rpc.peers import Reader, RemoteWorld, received, result, text

OK = 0
INVALID_PARAMETER = 0xC00E0006
INVALID_HANDLE = 0xC00E0007
IO_TIMEOUT = 0xC00E001B
ILLEGAL_CURSOR_ACTION = 0xC00E001C
ALREADY_RECEIVED = 0xC00E001D
ACCESS_DENIED = 0xC00E0025
INSUFFICIENT_RESOURCES = 0xC00E0027
TRANSACTION_USAGE = 0xC00E0050
NOT_FOUND = 0xC00E0088
STATUS_INVALID_PARAMETER = 0xC000000D
ADMIN_QUEUE = r"DIRECT=OS:HOST\private$\admin"

RECEIVE, PEEK, PEEK_NEXT = Action.RECEIVE, Action.PEEK_CURRENT, Action.PEEK_NEXT


@pytest.fixture
def reader(remote: RemoteWorld) -> Reader:
    return remote.reader()


# ---- checks


@pytest.mark.rule("QP-050")
def test_without_a_descriptor_there_is_nothing_to_read(remote: RemoteWorld, reader: Reader) -> None:
    from msmq_fast.rpc.idl.qm2qm import REMOTEREADDESC2

    for name, values in (("start_receive2", {}), ("start_receive_by_lookup_id", {"LookupId": 1})):
        call = reader.peer.begin(name, lpRemoteReadDesc2=REMOTEREADDESC2(None, 0), **values)
        assert result(call) == INVALID_HANDLE
        assert call.results.pphContext is None
        assert call.results.lpRemoteReadDesc2.pRemoteReadDesc is None


@pytest.mark.rule("QP-051")
@pytest.mark.parametrize("queue", [0, 1])
def test_the_handles_of_the_queue_agree(reader: Reader, queue: int) -> None:
    assert result(reader.start(dwQueue=queue)) == INVALID_PARAMETER
    assert result(reader.start0(dwQueue=queue)) == INVALID_PARAMETER


@pytest.mark.rule("QP-052", "QP-072")
def test_a_request_identifier_is_used_by_one_read_at_a_time(remote: RemoteWorld, reader: Reader) -> None:
    waiting = reader.start(request=9, timeout=1000)
    assert result(reader.start(request=9)) == INVALID_PARAMETER
    assert result(reader.start(PEEK, request=9)) == INVALID_PARAMETER
    assert not waiting.done
    assert result(remote.reader().start(request=9)) == IO_TIMEOUT
    remote.world.send(b"one")
    assert text(waiting) == b"one"
    assert result(reader.start(request=9)) == IO_TIMEOUT


@pytest.mark.rule("QP-053")
def test_the_next_message_needs_a_cursor(reader: Reader) -> None:
    assert result(reader.start(PEEK_NEXT)) == STATUS_INVALID_PARAMETER


@pytest.mark.rule("QP-054")
def test_checks_have_an_order(remote: RemoteWorld, reader: Reader) -> None:
    reader.start(request=9, timeout=1000)
    assert result(reader.start(PEEK_NEXT, request=9, dwQueue=0)) == INVALID_PARAMETER
    assert result(reader.start(PEEK_NEXT, request=9)) == INVALID_PARAMETER
    handle, reader.handle = reader.handle, remote.opened()
    assert result(reader.start(PEEK_NEXT, request=8)) == STATUS_INVALID_PARAMETER
    assert result(reader.start(request=8, hCursor=77)) == INVALID_PARAMETER
    reader.handle = handle
    assert result(reader.start(request=8, hCursor=77)) == STATUS_INVALID_PARAMETER


@pytest.mark.rule("QP-055")
def test_a_queue_that_is_closed_is_not_read(reader: Reader) -> None:
    reader.close()
    assert result(reader.start()) == INVALID_PARAMETER
    assert result(reader.start0()) == INVALID_PARAMETER


@pytest.mark.rule("QP-056")
def test_the_handle_says_which_queue(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.create("others")
    other = remote.reader(name="others")
    remote.world.send(b"one")
    remote.world.send(b"two", "others")
    assert text(other.start(PEEK)) == b"two"
    assert text(reader.start(PEEK)) == b"one"


@pytest.mark.rule("QP-057")
def test_a_cursor_belongs_to_one_handle(remote: RemoteWorld, reader: Reader) -> None:
    cursor = remote.reader().cursor()
    assert result(reader.start(PEEK, hCursor=cursor)) == STATUS_INVALID_PARAMETER


@pytest.mark.rule("QP-077")
@pytest.mark.parametrize("action", [1, 0x40000010, 0x40000020, 0x80000002, 0xFFFFFFFF])
def test_an_unknown_action_is_refused(reader: Reader, action: int) -> None:
    assert result(reader.start(action)) == INVALID_PARAMETER
    assert result(reader.start0(action)) == INVALID_PARAMETER


@pytest.mark.rule("QP-077")
@pytest.mark.parametrize("action", [0, 0x80000000, 0x80000001, 0x40000030])
def test_an_unknown_lookup_is_refused(reader: Reader, action: int) -> None:
    assert result(reader.look_up(action, 1)) == INVALID_PARAMETER


@pytest.mark.rule("QP-078")
def test_who_opened_a_queue_for_peeking_peeks_only(remote: RemoteWorld) -> None:
    key = remote.world.send(b"one")
    reader = remote.reader(Access.PEEK)
    assert text(reader.start(PEEK)) == b"one"
    assert result(reader.start()) == ACCESS_DENIED
    assert result(reader.look_up(0x40000020, key & SEQUENTIAL)) == ACCESS_DENIED
    assert reader.peer.begin("purge_queue", hQueue=reader.handle).fault_status == ACCESS_DENIED
    assert remote.world.bodies() == [b"one"]


# ---- reading


@pytest.mark.rule("QP-022", "QP-058")
def test_a_read_that_waits_can_be_seen(remote: RemoteWorld, reader: Reader) -> None:
    reader.start(PEEK, request=5, timeout=700)
    (queue,) = remote.queues
    (read,) = queue.pending.values()
    assert read.remote.handle == reader.handle
    assert (read.timeout_ms, read.action, read.request_id) == (700, PEEK, 5)
    assert read.lookup_id is None


@pytest.mark.rule("QP-059", "QP-102")
@pytest.mark.parametrize("version", [0, 9])
def test_a_message_goes_when_its_reader_says_so(remote: RemoteWorld, reader: Reader, version: int) -> None:
    remote.world.send(b"one")
    call = reader.start() if version == 9 else reader.start0()
    assert text(call) == b"one"
    assert remote.world.manager.find("orders").messages == 1
    assert result(remote.reader().start(PEEK)) == IO_TIMEOUT
    assert reader.end(call.results.pphContext) == OK
    assert remote.world.manager.find("orders").messages == 0
    remote.world.crash()
    assert remote.world.bodies() == []


@pytest.mark.rule("QP-060")
def test_peeking_leaves_a_message_where_it_is(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.send(b"one")
    first, second = reader.start(PEEK), reader.start(PEEK)
    assert text(first) == text(second) == b"one"
    assert first.results.lpRemoteReadDesc2.SequentialId == second.results.lpRemoteReadDesc2.SequentialId
    cursor = reader.cursor()
    assert [text(reader.start(PEEK, hCursor=cursor)) for _ in range(2)] == [b"one"] * 2
    assert text(remote.reader().start()) == b"one"


@pytest.mark.rule("QP-061")
def test_a_cursor_goes_on_from_message_to_message(remote: RemoteWorld, reader: Reader) -> None:
    for body in (b"one", b"two", b"three"):
        remote.world.send(body)
    cursor = reader.cursor()
    found = [text(reader.start(action, hCursor=cursor)) for action in (PEEK, PEEK_NEXT, PEEK_NEXT, PEEK)]
    assert found == [b"one", b"two", b"three", b"three"]
    assert result(reader.start(PEEK_NEXT, hCursor=cursor)) == IO_TIMEOUT


@pytest.mark.rule("QP-062")
def test_a_cursor_that_was_not_used_has_no_next_message(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.send(b"one")
    assert result(reader.start(PEEK_NEXT, hCursor=reader.cursor())) == ILLEGAL_CURSOR_ACTION


@pytest.mark.rule("QP-063")
def test_a_cursor_receives_what_it_stands_on(remote: RemoteWorld, reader: Reader) -> None:
    for body in (b"one", b"two", b"three"):
        remote.world.send(body)
    cursor = reader.cursor()
    for action in (PEEK, PEEK_NEXT):
        received(reader.start(action, hCursor=cursor))
    call = reader.start(hCursor=cursor)
    assert text(call) == b"two"
    assert reader.end(call.results.pphContext) == OK
    assert remote.world.bodies() == [b"one", b"three"]
    assert text(reader.start(PEEK, hCursor=cursor)) == b"three"
    other = remote.reader()
    for _ in range(2):
        assert other.end(other.start().results.pphContext) == OK
    assert result(reader.start(hCursor=cursor)) == ALREADY_RECEIVED


@pytest.mark.rule("QP-064")
def test_nothing_there_is_a_time_out_and_for_cursors_not_found(reader: Reader) -> None:
    assert result(reader.start()) == IO_TIMEOUT
    assert result(reader.start(hCursor=reader.cursor())) == NOT_FOUND
    assert {result(reader.start(PEEK, hCursor=at)) for at in (0, reader.cursor())} == {IO_TIMEOUT}


@pytest.mark.rule("QP-065", "QP-072", "QP-187", "QP-188")
@pytest.mark.parametrize("action", [RECEIVE, PEEK])
def test_a_read_waits_so_many_milliseconds(remote: RemoteWorld, reader: Reader, action: int) -> None:
    call = reader.start(action, timeout=300)
    remote.world.advance(0.29)
    assert not call.done
    remote.world.advance(0.02)
    assert result(call) == IO_TIMEOUT
    assert call.results.pphContext is None
    assert reader.cancel() == INVALID_HANDLE


@pytest.mark.rule("QP-066")
def test_an_infinite_read_waits_for_ever(remote: RemoteWorld, reader: Reader) -> None:
    call = reader.start(timeout=0xFFFFFFFF)
    remote.world.advance(0xFFFFFFFF / 1000 + 600)
    assert not call.done
    remote.world.send(b"one")
    assert text(call) == b"one"


@pytest.mark.rule("QP-067")
def test_who_waits_longest_is_served_first(remote: RemoteWorld) -> None:
    waiting = [remote.reader().start(timeout=60_000) for _ in range(3)]
    for number in range(3):
        assert [call.done for call in waiting] == [True] * number + [False] * (3 - number)
        remote.world.send(str(number).encode())
    assert [text(call) for call in waiting] == [b"0", b"1", b"2"]


@pytest.mark.rule("QP-068")
@pytest.mark.parametrize("version", [0, 9])
def test_the_packet_is_the_one_that_was_sent(remote: RemoteWorld, reader: Reader, version: int) -> None:
    key = remote.world.send(
        bytes(range(256)) * 9,
        label="a label",
        extension=b"extension",
        correlation_id=b"c" * 20,
        app_specific=7,
        priority=5,
        response_queue=parse_format_name(ADMIN_QUEUE),
    )
    stored: list[bytes] = []
    remote.world.manager.find("orders").core.peek(key, lambda message, _: stored.append(message.packet))
    call = reader.start() if version == 9 else reader.start0()
    desc = received(call)
    assert bytes(desc.lpBuffer) == stored[0]
    assert desc.dwSize == len(stored[0]) == int.from_bytes(stored[0][8:12], "little")
    parsed = parse(stored[0])
    assert parsed.size == desc.dwSize
    assert bytes(parsed.body) == bytes(range(256)) * 9


@pytest.mark.rule("QP-069", "QP-070")
def test_when_it_arrived_and_what_is_ignored(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.advance(5)
    remote.world.send(b"one")
    remote.world.advance(60)
    for call in (
        reader.start(PEEK, Reserved=0xDEADBEEF, eAckNack=7),
        reader.start0(PEEK, Reserved=0xDEADBEEF, eAckNack=7),
    ):
        desc = received(call)
        assert desc.dwArriveTime == WALL + 5
        assert (desc.Reserved, desc.eAckNack) == (1, 0)
    empty = remote.reader()
    remote.world.receive()
    for call in (empty.start(Reserved=5, eAckNack=7), empty.start0(Reserved=5, eAckNack=7)):
        both = getattr(call.results, "lpRemoteReadDesc2", None)
        desc = call.results.lpRemoteReadDesc if both is None else both.pRemoteReadDesc
        assert (desc.Reserved, desc.eAckNack) == (1, 0)


@pytest.mark.rule("QP-071")
def test_the_sequential_identifier_has_seven_bytes(remote: RemoteWorld, reader: Reader) -> None:
    key = remote.world.send(b"one", priority=0)
    assert key >> 56
    both = reader.start(PEEK).results.lpRemoteReadDesc2
    assert both.SequentialId == key & SEQUENTIAL


@pytest.mark.rule("QP-073")
def test_only_a_received_message_has_a_context(remote: RemoteWorld, reader: Reader) -> None:
    assert reader.start().results.pphContext is None
    assert reader.start0().results.pphContext is None
    key = remote.world.send(b"one")
    assert reader.start(PEEK).results.pphContext is None
    assert reader.start0(PEEK).results.pphContext is None
    assert reader.look_up(0x40000010, key).results.pphContext is None
    assert reader.start(PEEK_NEXT).results.pphContext is None
    assert reader.start(dwQueue=0).results.pphContext is None
    assert reader.look_up(0x40000020, 0).results.pphContext is None
    context = reader.look_up(0x40000020, key).results.pphContext
    assert context is not None
    assert reader.end(context, Ack.NACK) == OK
    for start in (reader.start, reader.start0):
        context = start().results.pphContext
        assert context is not None
        assert reader.end(context, Ack.NACK) == OK


@pytest.mark.rule("QP-076")
def test_a_packet_that_does_not_fit_stays(
    remote: RemoteWorld, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msmq_fast.rpc.services.qm2qm.MAX_PACKET", 1000)
    key = remote.world.send(bytes(2000))
    calls = (reader.start(), reader.start0(), reader.start(PEEK), reader.look_up(0x40000020, key))
    for call in calls:
        assert result(call) == INSUFFICIENT_RESOURCES
        assert call.results.pphContext is None
    assert len(reader.peer.association.handles) == 1
    assert remote.world.receive(peek=True) == bytes(2000)


@pytest.mark.rule("QP-079")
def test_a_read_that_waits_keeps_nobody_from_anything(remote: RemoteWorld, reader: Reader) -> None:
    waiting = reader.start(timeout=0xFFFFFFFF)
    assert reader.peer.call("get_version").pMajor == 6
    assert result(reader.start(request=2)) == IO_TIMEOUT
    assert not waiting.done


@pytest.mark.rule("QP-080")
@pytest.mark.parametrize("action", [RECEIVE, PEEK, 77])
def test_a_read_that_got_nothing_echoes_its_descriptor(reader: Reader, action: int) -> None:
    given = {"request": 5, "dwSize": 4, "lpBuffer": b"some"}
    calls = reader.start(action, **given), reader.look_up(action, 12345, **given)
    both = [call.results.lpRemoteReadDesc2.pRemoteReadDesc for call in calls]
    for desc in (*both, reader.start0(action, **given).results.lpRemoteReadDesc):
        assert (desc.hRemoteQueue, desc.dwQueue, desc.dwRequestID) == (reader.handle, reader.handle, 5)
        assert (desc.ulAction, desc.dwSize, desc.lpBuffer) == (action, 0, None)


@pytest.mark.rule("QP-014")
def test_every_failure_has_the_severity_bit(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.send(b"one")
    calls = [
        reader.start(action, **values)
        for action in (RECEIVE, PEEK, PEEK_NEXT, 5)
        for values in ({"dwQueue": 0}, {"hCursor": 3}, {"hRemoteQueue": 1, "dwQueue": 1})
    ]
    calls += [reader.look_up(action, 12345) for action in (0x40000010, 0x40000021, 0x40000022, 9)]
    assert all(result(call) >> 31 for call in calls)


# ---- lookup


@pytest.mark.rule("QP-090")
@pytest.mark.parametrize("values", [{"hRemoteQueue": 0, "dwQueue": 0}, {"ulTimeout": 1}, {"hCursor": 1}])
def test_a_lookup_has_a_queue_and_nothing_else(
    remote: RemoteWorld, reader: Reader, values: dict[str, int]
) -> None:
    key = remote.world.send(b"one")
    assert result(reader.look_up(0x40000010, key, **values)) == INVALID_PARAMETER
    assert text(reader.look_up(0x40000010, key)) == b"one"


@pytest.mark.rule("QP-091")
def test_nothing_is_looked_up_in_a_closed_queue(remote: RemoteWorld, reader: Reader) -> None:
    key = remote.world.send(b"one")
    reader.close()
    assert result(reader.look_up(0x40000010, key)) == INVALID_PARAMETER


@pytest.mark.rule("QP-092", "QP-094", "QP-096", "QP-097", "QP-098")
@pytest.mark.parametrize("receive", [0, 0x10])
def test_lookups_find_their_way(remote: RemoteWorld, reader: Reader, receive: int) -> None:
    bodies = [b"0", b"1", b"2", b"3", b"4"]
    keys = [remote.world.send(body, priority=0) & SEQUENTIAL for body in bodies]
    current, after, before = (0x40000010 + receive + number for number in range(3))
    last = (1 << 64) - 1

    def found(action: int, lookup_id: int) -> bytes | int:
        call = reader.look_up(action, lookup_id)
        if result(call):
            return result(call)
        desc = received(call)
        assert desc.dwSize == len(desc.lpBuffer)
        assert (desc.dwArriveTime, desc.Reserved) == (WALL, 1)
        assert (call.results.pphContext is not None) == bool(receive)
        body = text(call)
        assert call.results.lpRemoteReadDesc2.SequentialId == keys[int(body)]
        if receive:
            assert result(remote.reader().look_up(0x40000010, keys[int(body)])) == TRANSACTION_USAGE
            assert reader.end(call.results.pphContext, Ack.NACK) == OK
        return body

    assert found(after, 0) == b"0"
    assert found(before, last) == b"4"
    assert found(current, 0) == INVALID_PARAMETER
    assert found(current, last) == NOT_FOUND
    assert [found(current, band << 56 | keys[0]) for band in (7, 1)] == [b"0", NOT_FOUND]
    assert [found(current, key) for key in keys] == bodies
    assert [found(after, key) for key in keys] == [*bodies[1:], NOT_FOUND]
    assert [found(before, key) for key in keys] == [NOT_FOUND, *bodies[:-1]]
    assert remote.world.bodies() == bodies


@pytest.mark.rule("QP-093")
@pytest.mark.parametrize("action", [0x40000010, 0x40000020])
def test_there_is_no_message_zero(remote: RemoteWorld, reader: Reader, action: int) -> None:
    remote.world.send(b"one")
    assert result(reader.look_up(action, 0)) == INVALID_PARAMETER


@pytest.mark.rule("QP-094")
def test_a_message_that_was_looked_up_goes_when_its_reader_says_so(
    remote: RemoteWorld, reader: Reader
) -> None:
    for body in (b"one", b"two"):
        remote.world.send(body)
    call = reader.look_up(0x40000022, (1 << 64) - 1)
    assert text(call) == b"two"
    assert remote.world.manager.find("orders").messages == 2
    assert reader.end(call.results.pphContext) == OK
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("QP-095")
def test_a_locked_message_is_not_found_by_its_identifier(remote: RemoteWorld, reader: Reader) -> None:
    key = remote.world.send(b"one")
    other = remote.reader()
    cursor = other.cursor()
    received(other.start(PEEK, hCursor=cursor))
    context = other.start().results.pphContext
    for action in (0x40000010, 0x40000020):
        assert result(reader.look_up(action, key)) == TRANSACTION_USAGE
    assert other.end(context) == OK
    assert result(reader.look_up(0x40000010, key)) == ALREADY_RECEIVED
    assert result(reader.look_up(0x40000010, key + 1)) == NOT_FOUND


@pytest.mark.rule("QP-099")
def test_lookups_and_the_fields_that_they_do_not_need(remote: RemoteWorld, reader: Reader) -> None:
    key = remote.world.send(b"one")
    assert text(reader.look_up(0x40000010, key, dwQueue=0)) == b"one"
    assert result(reader.look_up(0x40000010, key, dwQueue=1)) == INVALID_PARAMETER
    reader.start(request=4, timeout=1000)
    other = remote.reader()
    assert other.start().results.pphContext is None
    reader.start(request=6, timeout=1000)
    assert result(reader.look_up(0x40000010, key, request=6)) == INVALID_PARAMETER
    assert result(reader.look_up(0x40000010, key, request=6, dwQueue=0)) == TRANSACTION_USAGE

"""RemoteRead: opening, reading, ending, cancelling, and what happens to readers that do not come back."""

from __future__ import annotations

import re
from uuid import UUID

import pytest

from msmq_fast.qm.access import Access, Share
from msmq_fast.rpc.faults import CONTEXT_MISMATCH, OP_RANGE, RpcFault
from msmq_fast.rpc.interface import Interface
from msmq_fast.rpc.services.reads import SEQUENTIAL, Ack, Action
from tests.support.clocks import WALL
from tests.support.rpc.peers import CLIENT, RemoteWorld, caller, result
from tests.support.rpc.remotereader import RemoteReader, body, opening, remote_peer

OK = 0
QUEUE_NOT_FOUND = 0xC00E0003
INVALID_PARAMETER = 0xC00E0006
INVALID_HANDLE = 0xC00E0007
OPERATION_CANCELLED = 0xC00E0008
SHARING_VIOLATION = 0xC00E0009
IO_TIMEOUT = 0xC00E001B
ACCESS_DENIED = 0xC00E0025
NOT_FOUND = 0xC00E0088
STATUS_INVALID_HANDLE = 0xC0000008
STATUS_ACCESS_DENIED = 0xC0000022

RECEIVE, PEEK, PEEK_NEXT = Action.RECEIVE, Action.PEEK_CURRENT, Action.PEEK_NEXT


@pytest.fixture
def reader(remote: RemoteWorld) -> RemoteReader:
    return RemoteReader(remote_peer(remote))


# ---- the interface


@pytest.mark.rule("RR-007")
def test_numbers_that_are_not_served(remote: RemoteWorld) -> None:
    interface = Interface(remote.remote_read)
    for opnum in (1, 16, 99):
        with pytest.raises(RpcFault) as fault:
            interface.operation(opnum)
        assert fault.value.status == OP_RANGE
    assert interface.operation(15).name == "end_transactional_receive"


@pytest.mark.rule("RR-005")
def test_calls_have_to_be_encrypted(remote: RemoteWorld) -> None:
    policy = remote.remote_read.policy
    for level, allowed in ((1, False), (2, False), (5, False), (6, True)):
        assert policy.allows(2, level=level, anonymous=False) is allowed
        assert policy.allows(0, level=level, anonymous=True)


@pytest.mark.rule("RR-010")
def test_the_port(remote: RemoteWorld) -> None:
    peer = remote_peer(remote)
    assert peer.call("get_server_port").result == 2103
    remote.ports.remote_read = 0
    assert peer.call("get_server_port").result == 0


# ---- opening


@pytest.mark.rule("RR-013")
@pytest.mark.parametrize(
    "values",
    [
        {"dwAccess": 0},
        {"dwAccess": 2},
        {"dwAccess": 4},
        {"dwAccess": 0x81},
        {"dwShareMode": 2},
        opening("MULTICAST=224.1.2.3:1000"),
        opening("DL=11111111-2222-3333-4444-555555555555"),
        opening("CONNECTOR=11111111-2222-3333-4444-555555555555"),
    ],
)
def test_parameters_that_cannot_be(remote: RemoteWorld, values: dict[str, object]) -> None:
    call = remote_peer(remote).begin("open_queue", **(opening() | values))
    assert call.fault_status == INVALID_PARAMETER


@pytest.mark.rule("RR-013")
def test_a_name_that_is_none(remote: RemoteWorld) -> None:
    parameters = opening()
    parameters["pQueueFormat"].name = "OS:HOST"
    assert remote_peer(remote).begin("open_queue", **parameters).fault_status == INVALID_PARAMETER


@pytest.mark.rule("RR-014")
@pytest.mark.parametrize(
    "name", [r"DIRECT=OS:HOST\private$\nobody", r"DIRECT=OS:ELSEWHERE\private$\orders", f"PUBLIC={CLIENT}"]
)
def test_a_queue_that_is_not_here(remote: RemoteWorld, name: str) -> None:
    assert remote_peer(remote).begin("open_queue", **opening(name)).fault_status == QUEUE_NOT_FOUND


@pytest.mark.rule("RR-015")
def test_a_queue_is_opened_in_its_modes(remote: RemoteWorld) -> None:
    peer = remote_peer(remote)
    first = RemoteReader(peer, share=Share.DENY_RECEIVE)
    assert peer.begin("open_queue", **opening()).fault_status == SHARING_VIOLATION
    RemoteReader(peer, access=Access.PEEK)
    assert first.close() == OK
    RemoteReader(peer)


@pytest.mark.rule("RR-016", "RR-083")
def test_what_nobody_looks_at(remote: RemoteWorld) -> None:
    values = {
        "pClientId": UUID(int=0),
        "fNonRoutingServer": -7,
        "Major": 0,
        "Minor": 255,
        "BuildNumber": 1,
        "fWorkgroup": 1,
    }
    call = remote_peer(remote).begin("open_queue", **(opening() | values))
    assert call.results.pphContext


@pytest.mark.rule("RR-006")
def test_who_may_not_read_cannot_open(remote: RemoteWorld) -> None:
    letters = opening(r"DIRECT=OS:HOST\system$;deadletter")
    assert remote_peer(remote, caller()).begin("open_queue", **letters).fault_status == ACCESS_DENIED
    remote_peer(remote).call("open_queue", **letters)
    assert len(remote.queues) == 1


@pytest.mark.rule("RR-018", "RR-004")
def test_handles_that_cannot_be_closed(remote: RemoteWorld, reader: RemoteReader) -> None:
    assert remote_peer(remote).call("close_queue", pphContext=None).result == INVALID_HANDLE
    with pytest.raises(RpcFault) as fault:
        remote_peer(remote).call("close_queue", pphContext=reader.context)
    assert fault.value.status == CONTEXT_MISMATCH
    assert reader.close() == OK
    with pytest.raises(RpcFault) as fault:
        reader.close()
    assert fault.value.status == CONTEXT_MISMATCH


@pytest.mark.rule("RR-019")
def test_closing_a_queue_ends_everything(remote: RemoteWorld, reader: RemoteReader) -> None:
    remote.world.send(b"one")
    assert body(reader.start()) == b"one"
    waiting = reader.start(request=2, timeout=0xFFFFFFFF)
    assert reader.close() == OK
    assert result(waiting) == OPERATION_CANCELLED
    assert remote.world.receive() == b"one"
    assert remote.remote_read.next_deadline() is None
    assert not remote.world.manager.find("orders").descriptors


@pytest.mark.rule("RR-020", "RR-021", "RR-025", "RR-028")
def test_cursors(remote: RemoteWorld, reader: RemoteReader) -> None:
    for text in (b"one", b"two", b"three"):
        remote.world.send(text)
    cursor, second = reader.cursor(), reader.cursor()
    assert cursor != second
    assert body(reader.start(PEEK, cursor=cursor)) == b"one"
    assert body(reader.start(PEEK_NEXT, cursor=cursor)) == b"two"
    assert body(reader.start(PEEK, cursor=second)) == b"one"
    other = RemoteReader(reader.peer)
    assert result(other.start(PEEK, cursor=cursor)) == STATUS_INVALID_HANDLE
    assert other.close_cursor(cursor) == INVALID_HANDLE
    assert body(reader.start(cursor=cursor)) == b"two"
    assert reader.end() == OK
    assert remote.world.bodies() == [b"one", b"three"]
    assert reader.close_cursor(cursor) == OK
    assert reader.close_cursor(cursor) == INVALID_HANDLE
    assert result(reader.start(PEEK, cursor=cursor)) == STATUS_INVALID_HANDLE


@pytest.mark.rule("RR-022", "RR-023")
def test_purging(remote: RemoteWorld, reader: RemoteReader) -> None:
    remote.world.send(b"one")
    peeker = RemoteReader(reader.peer, access=Access.PEEK)
    purged = peeker.peer.call("purge_queue", phContext=peeker.context)
    assert purged.result == STATUS_ACCESS_DENIED
    assert remote.world.bodies() == [b"one"]
    assert reader.peer.call("purge_queue", phContext=reader.context).result == OK
    remote.world.crash()
    assert remote.world.bodies() == []


@pytest.mark.rule("RR-022")
def test_a_purge_from_elsewhere_is_logged_with_its_caller(
    remote: RemoteWorld, reader: RemoteReader, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "msmq_fast.audit")
    assert reader.peer.call("purge_queue", phContext=reader.context).result == OK
    (line,) = [record.getMessage() for record in caplog.records if record.name == "msmq_fast.audit"]
    assert re.fullmatch(r"purge on .*orders by .*\(?S-1-.*: deleted messages: \d+", line)


def test_the_answer_to_a_purge_waits_for_the_disk(remote: RemoteWorld, reader: RemoteReader) -> None:
    remote.world.send(b"one")
    run, remote.world.run = remote.world.run, lambda: None  # type: ignore[method-assign]
    call = reader.peer.begin("purge_queue", phContext=reader.context)
    remote.world.manager.before_submit()
    assert not call.done
    run()
    assert result(call) == OK


# ---- reading


@pytest.mark.rule("RR-024")
def test_combinations_that_are_not_valid(remote: RemoteWorld, reader: RemoteReader) -> None:
    key = remote.world.send(b"one")
    cursor = reader.cursor()
    calls = [
        reader.start(RECEIVE, key),
        reader.start(PEEK, key),
        reader.start(PEEK_NEXT),
        reader.start(PEEK_NEXT, key, cursor=cursor),
        reader.start(5),
    ]
    for action in (*range(0x40000010, 0x40000013), *range(0x40000020, 0x40000023)):
        calls += [
            reader.start(action),
            reader.start(action, key, cursor=cursor),
            reader.start(action, key, timeout=1),
        ]
    assert [result(call) for call in calls] == [INVALID_PARAMETER] * len(calls)
    assert calls[0].results.ppPacketSections is None
    assert not next(iter(remote.queues)).pending


@pytest.mark.rule("RR-026")
def test_a_request_identifier_is_used_until_its_read_ends(remote: RemoteWorld, reader: RemoteReader) -> None:
    waiting = reader.start(request=7, timeout=60_000)
    assert result(reader.start(request=7)) == INVALID_PARAMETER
    remote.world.send(b"one")
    remote.world.send(b"two")
    assert body(waiting) == b"one"
    for action in (RECEIVE, PEEK):
        assert result(reader.start(action, request=7)) == INVALID_PARAMETER
    assert reader.end(7) == OK
    assert body(reader.start(request=7)) == b"two"


@pytest.mark.rule("RR-027", "RR-054")
def test_a_message_goes_when_its_reader_says_so(remote: RemoteWorld, reader: RemoteReader) -> None:
    remote.world.send(b"one")
    remote.world.send(b"two")
    assert body(reader.start()) == b"one"
    assert body(RemoteReader(reader.peer).start(PEEK)) == b"two"
    assert remote.world.manager.find("orders").messages == 2
    assert reader.end() == OK
    assert body(reader.start(request=2)) == b"two"
    assert reader.end(2, Ack.NACK) == OK
    remote.world.crash()
    assert remote.world.bodies() == [b"two"]


@pytest.mark.rule("RR-054")
def test_the_answer_to_an_acknowledgment_waits_for_the_disk(
    remote: RemoteWorld, reader: RemoteReader
) -> None:
    remote.world.send(b"one")
    assert body(reader.start()) == b"one"
    run, remote.world.run = remote.world.run, lambda: None  # type: ignore[method-assign]
    call = reader.peer.begin("end_receive", phContext=reader.context, dwAck=2, dwRequestId=1)
    remote.world.manager.before_submit()
    assert not call.done
    run()
    assert result(call) == OK


@pytest.mark.rule("RR-028")
def test_peeking_ends_at_once(remote: RemoteWorld, reader: RemoteReader) -> None:
    remote.world.send(b"one")
    assert body(reader.start(PEEK)) == b"one"
    assert body(reader.start(PEEK)) == b"one"
    assert reader.end() == INVALID_HANDLE
    assert remote.remote_read.next_deadline() is None


@pytest.mark.rule("RR-029", "RR-030")
@pytest.mark.parametrize("receive", [0, 0x10])
def test_lookups(remote: RemoteWorld, reader: RemoteReader, receive: int) -> None:
    texts = [b"0", b"1", b"2"]
    keys = [remote.world.send(text) & SEQUENTIAL for text in texts]

    def found(action: int, lookup_id: int) -> bytes | int:
        call = reader.start(action + receive, lookup_id)
        if result(call):
            return result(call)
        assert reader.end(1, Ack.NACK) == (OK if receive else INVALID_HANDLE)
        return body(call)

    assert [found(0x40000010, key) for key in keys] == texts
    assert [found(0x40000011, key) for key in keys] == [b"1", b"2", NOT_FOUND]
    assert [found(0x40000012, key) for key in keys] == [NOT_FOUND, b"0", b"1"]
    assert found(0x40000012, (1 << 64) - 1) == b"2"
    assert remote.world.bodies() == texts


def test_lookups_that_wait_for_the_disk_under_one_request_identifier(remote: RemoteWorld) -> None:
    keys = [remote.world.send(text) & SEQUENTIAL for text in (b"one", b"two")]
    remote.world.crash()
    remote.begin()
    reader = RemoteReader(remote_peer(remote))
    run, remote.world.run = remote.world.run, lambda: None  # type: ignore[method-assign]
    calls = [reader.start(0x40000020, key) for key in keys]
    assert not any(call.done for call in calls), "both are on the disk"
    remote.world.run = run  # type: ignore[method-assign]
    remote.world.run()
    assert sorted(map(result, calls)) == [OK, INVALID_PARAMETER]
    assert reader.end(1, Ack.NACK) == OK
    assert sorted(remote.world.bodies()) == [b"one", b"two"], "none stays locked"


@pytest.mark.rule("RR-031")
@pytest.mark.parametrize("action", [RECEIVE, PEEK])
def test_a_read_waits_so_many_milliseconds(remote: RemoteWorld, reader: RemoteReader, action: int) -> None:
    call = reader.start(action, timeout=300)
    remote.world.advance(0.29)
    assert not call.done
    remote.world.advance(0.02)
    assert result(call) == IO_TIMEOUT
    assert result(reader.start(action)) == IO_TIMEOUT
    assert reader.end() == INVALID_HANDLE


@pytest.mark.rule("RR-032")
def test_what_is_told_of_a_message(remote: RemoteWorld, reader: RemoteReader) -> None:
    remote.world.advance(3)
    key = remote.world.send(b"one", priority=1)
    results = reader.start(PEEK).results
    assert (results.pdwArriveTime, results.pSequenceId) == (WALL + 3, key & SEQUENTIAL)


@pytest.mark.rule("RR-033")
def test_who_opened_a_queue_for_peeking_peeks_only(remote: RemoteWorld, reader: RemoteReader) -> None:
    key = remote.world.send(b"one")
    peeker = RemoteReader(reader.peer, access=Access.PEEK)
    assert body(peeker.start(PEEK)) == b"one"
    assert result(peeker.start()) == ACCESS_DENIED
    assert result(peeker.start(0x40000020, key)) == ACCESS_DENIED
    assert peeker.end() == INVALID_HANDLE


@pytest.mark.rule("RR-042")
@pytest.mark.parametrize("wanted", [0, 4, 999, 1000])
def test_a_reader_that_wants_less_of_the_body(remote: RemoteWorld, reader: RemoteReader, wanted: int) -> None:
    remote.world.send(b"x" * 1000)
    call = reader.start(PEEK, body=wanted)
    assert call.results.pdwNumberOfSections == (1 if wanted == 1000 else 2)
    assert body(call) == (b"x" * wanted).ljust(1000, b"\0")


# ---- ending and cancelling


@pytest.mark.rule("RR-050", "RR-051")
@pytest.mark.parametrize("action", [RECEIVE, PEEK])
def test_a_read_that_waits_can_be_cancelled(remote: RemoteWorld, reader: RemoteReader, action: int) -> None:
    theirs = RemoteReader(reader.peer).start(action, timeout=60_000)
    call = reader.start(action, timeout=0xFFFFFFFF)
    assert reader.cancel(2) >> 31
    assert reader.cancel() == OK
    assert result(call) == OPERATION_CANCELLED
    assert reader.cancel() >> 31
    assert reader.end() == INVALID_HANDLE
    assert not theirs.done
    remote.world.send(b"one")
    assert body(theirs) == b"one"


@pytest.mark.rule("RR-051")
def test_what_was_delivered_cannot_be_cancelled(remote: RemoteWorld, reader: RemoteReader) -> None:
    remote.world.send(b"one")
    assert body(reader.start()) == b"one"
    assert reader.cancel() >> 31
    assert reader.end() == OK


@pytest.mark.rule("RR-052", "RR-053", "RR-055")
@pytest.mark.parametrize("transactional", [False, True])
def test_what_cannot_be_ended(remote: RemoteWorld, reader: RemoteReader, transactional: bool) -> None:
    remote.world.send(b"one")
    assert reader.end(transactional=transactional) == INVALID_HANDLE
    assert body(reader.start()) == b"one"
    assert reader.end(2, transactional=transactional) == INVALID_PARAMETER
    waiting = reader.start(request=3, timeout=60_000)
    assert reader.end(3, transactional=transactional) == NOT_FOUND
    assert not waiting.done
    remote.world.send(b"two")
    assert body(waiting) == b"two"
    assert [reader.end(number, transactional=transactional) for number in (3, 1)] == [OK, OK]
    assert remote.world.bodies() == []


@pytest.mark.rule("RR-052", "RR-053", "RR-055")
@pytest.mark.parametrize("transactional", [False, True])
def test_what_cannot_be_ended_while_every_read_waits(reader: RemoteReader, transactional: bool) -> None:
    waiting = reader.start(timeout=60_000)
    assert reader.end(2, transactional=transactional) == INVALID_PARAMETER
    assert reader.end(1, transactional=transactional) == NOT_FOUND
    assert not waiting.done


@pytest.mark.rule("RR-004")
def test_the_handle_of_another_client_is_of_no_use(remote: RemoteWorld, reader: RemoteReader) -> None:
    remote.world.send(b"one")
    thief = RemoteReader(remote_peer(remote))
    thief.context = reader.context
    assert thief.start().fault_status == CONTEXT_MISMATCH
    for use in (thief.end, thief.cancel, thief.cursor, thief.close):
        with pytest.raises(RpcFault) as fault:
            use()
        assert fault.value.status == CONTEXT_MISMATCH


# ---- readers that do not come back


@pytest.mark.rule("RR-080")
def test_a_read_has_five_minutes_to_be_ended(remote: RemoteWorld, reader: RemoteReader) -> None:
    service = remote.remote_read
    for text in (b"one", b"two"):
        remote.world.send(text)
    assert body(reader.start(request=1)) == b"one"
    remote.world.advance(100)
    assert body(reader.start(request=2)) == b"two"
    start = remote.world.clock.seconds
    assert service.next_deadline() == start + 200
    remote.world.advance(199)
    service.expire(remote.world.clock.monotonic())
    assert remote.world.manager.find("orders").core.positions.available == 0
    remote.world.advance(1)
    service.expire(remote.world.clock.monotonic())
    assert remote.world.receive() == b"one"
    assert reader.end(1) == INVALID_PARAMETER
    assert service.next_deadline() == start + 300
    assert reader.end(2) == OK
    assert service.next_deadline() is None


@pytest.mark.rule("RR-080")
def test_a_read_that_waits_longer_than_that_keeps_its_time(remote: RemoteWorld, reader: RemoteReader) -> None:
    waiting = reader.start(timeout=0xFFFFFFFF)
    remote.world.advance(1000)
    remote.remote_read.expire(remote.world.clock.monotonic())
    remote.world.send(b"one")
    assert body(waiting) == b"one"
    remote.remote_read.expire(remote.world.clock.monotonic())
    assert reader.end() == OK
    assert remote.world.bodies() == []


@pytest.mark.rule("RR-081", "RR-082")
def test_a_client_that_is_gone_leaves_everything(remote: RemoteWorld, reader: RemoteReader) -> None:
    remote.world.send(b"one")
    cursor = reader.cursor()
    assert body(reader.start(cursor=cursor)) == b"one"
    waiting = reader.start(request=2, timeout=0xFFFFFFFF)
    reader.peer.lose()
    assert not waiting.done
    assert len(remote.queues) == 0
    assert remote.remote_read.next_deadline() is None
    assert remote.world.receive() == b"one"


@pytest.mark.rule("RR-082")
def test_a_reply_that_cannot_be_written_is_a_nack(remote: RemoteWorld, reader: RemoteReader) -> None:
    remote.world.send(b"one")
    call = reader.start()
    call.deliver(False)
    assert remote.world.receive(peek=True) == b"one"
    assert reader.end() == INVALID_HANDLE
    assert remote.remote_read.next_deadline() is None


def test_a_deleted_queue_ends_its_reads(remote: RemoteWorld, reader: RemoteReader) -> None:
    remote.world.send(b"one")
    assert body(reader.start()) == b"one"
    waiting = reader.start(request=2, timeout=60_000)
    remote.world.finish(remote.world.manager.delete_queue("orders"))
    assert result(waiting) == 0xC00E005A
    assert reader.end() == 0xC00E004B
    assert remote.remote_read.next_deadline() is None
    assert reader.close() == OK


@pytest.mark.rule("QP-017")
def test_a_public_queue_of_the_directory(remote: RemoteWorld) -> None:
    queue = remote.world.create(r".\news")
    reader = RemoteReader(remote_peer(remote), f"PUBLIC={queue.guid}")
    remote.world.finish(remote.world.manager.delete_queue(queue.name))
    assert reader.context
    with pytest.raises(RpcFault):
        RemoteReader(remote_peer(remote), f"PUBLIC={queue.guid}")

"""qm2qm: how reads end: acknowledged or not, cancelled, purged, by clients that are gone."""

from __future__ import annotations

import errno

import pytest

from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.errors import InsufficientResources
from msmq_fast.protocol.properties import Acknowledge
from msmq_fast.rpc.faults import CONTEXT_MISMATCH, RpcFault
from msmq_fast.rpc.services.reads import Ack, Action
from tests.support.rpc.peers import CLIENT, Reader, RemoteWorld, received, result, text

OK = 0
INVALID_PARAMETER = 0xC00E0006
INVALID_HANDLE = 0xC00E0007
OPERATION_CANCELLED = 0xC00E0008
IO_TIMEOUT = 0xC00E001B
INSUFFICIENT_RESOURCES = 0xC00E0027
QUEUE_NOT_AVAILABLE = 0xC00E004B
TRANSACTION_SEQUENCE = 0xC00E0051
QUEUE_DELETED = 0xC00E005A
CANCELED_BY_CLIENT = 0x400E03E9
ADMIN_QUEUE = r"DIRECT=OS:HOST\private$\admin"

RECEIVE, PEEK, PEEK_NEXT = Action.RECEIVE, Action.PEEK_CURRENT, Action.PEEK_NEXT


@pytest.fixture
def reader(remote: RemoteWorld) -> Reader:
    return remote.reader()


# ---- ending


@pytest.mark.rule("QP-100")
def test_a_null_handle_cannot_be_ended(reader: Reader) -> None:
    assert reader.end(None) == INVALID_HANDLE


@pytest.mark.rule("QP-102")
def test_an_acknowledged_message_is_answered_to_its_sender(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.create("admin")
    remote.world.send(
        b"one", acknowledge=Acknowledge.POSITIVE_RECEIVE, admin_queue=parse_format_name(ADMIN_QUEUE)
    )
    context = reader.start().results.pphContext
    assert remote.world.bodies("admin") == []
    assert reader.end(context) == OK
    assert len(remote.world.bodies("admin")) == 1


@pytest.mark.rule("QP-103")
def test_a_message_that_was_not_acknowledged_is_back_in_its_place(
    remote: RemoteWorld, reader: Reader
) -> None:
    for body in (b"one", b"two"):
        remote.world.send(body)
    context = reader.start().results.pphContext
    reader.start(request=2)
    waiting = remote.reader().start(timeout=60_000)
    assert not waiting.done
    assert reader.end(context, Ack.NACK) == OK
    assert text(waiting) == b"one"


@pytest.mark.rule("QP-104")
def test_what_was_unlocked_by_somebody_else_cannot_be_ended(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.send(b"one")
    context = reader.start().results.pphContext
    (queue,) = remote.queues
    opened = queue.opened
    opened.two_phase.run_down(opened.queue.core)
    assert reader.end(context) == TRANSACTION_SEQUENCE
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("QP-105", "QP-151", "QP-152")
@pytest.mark.parametrize("ack", [Ack.ACK, Ack.NACK])
def test_a_purged_message_goes_however_it_is_ended(remote: RemoteWorld, reader: Reader, ack: int) -> None:
    remote.world.create("admin")
    for number in range(5):
        remote.world.send(
            str(number).encode(),
            acknowledge=Acknowledge.NEGATIVE_RECEIVE,
            admin_queue=parse_format_name(ADMIN_QUEUE),
        )
    context = reader.start().results.pphContext
    other = remote.reader()
    assert other.peer.call("purge_queue", hQueue=other.handle).result == OK
    assert result(other.start(PEEK)) == IO_TIMEOUT
    assert remote.world.bodies("admin")
    assert reader.end(context, ack) == OK
    assert remote.world.bodies() == []
    assert len(remote.world.bodies("admin")) == 5


@pytest.mark.rule("QP-106", "QP-109")
def test_a_handle_is_ended_once(remote: RemoteWorld, reader: Reader) -> None:
    for body in (b"one", b"two"):
        remote.world.send(body)
    for ack in (Ack.ACK, Ack.NACK):
        context = reader.start().results.pphContext
        assert (reader.end(context, ack), next(iter(remote.queues)).delivered) == (OK, {})
        with pytest.raises(RpcFault) as fault:
            reader.end(context, ack)
        assert fault.value.status == CONTEXT_MISMATCH


@pytest.mark.rule("QP-109", "QP-110")
def test_a_handle_is_of_one_association_and_one_kind(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.send(b"one")
    context = reader.start().results.pphContext
    for peer, handle in ((remote.peer(), context), (reader.peer, reader.session)):
        with pytest.raises(RpcFault) as fault:
            peer.call("end_receive", pphContext=handle, dwAck=2)
        assert fault.value.status == CONTEXT_MISMATCH
    with pytest.raises(RpcFault) as fault:
        reader.peer.call("close_queue", pphContext=context)
    assert fault.value.status == CONTEXT_MISMATCH
    assert reader.end(context) == OK


@pytest.mark.rule("QP-111")
def test_a_crash_gives_back_what_was_not_acknowledged(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.send(b"one")
    received(reader.start())
    remote.world.crash()
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("QP-112")
def test_the_answer_to_an_acknowledgment_waits_for_the_disk(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.send(b"one")
    context = reader.start().results.pphContext
    run, remote.world.run = remote.world.run, lambda: None  # type: ignore[method-assign]
    call = reader.peer.begin("end_receive", pphContext=context, dwAck=2)
    remote.world.manager.before_submit()
    assert not call.done
    run()
    assert result(call) == OK
    remote.world.crash()
    assert remote.world.bodies() == []


@pytest.mark.rule("QP-107")
def test_a_read_is_ended_by_its_handle_alone(remote: RemoteWorld, reader: Reader) -> None:
    """It is not searched among the reads of its queue, as on Windows since Vista: it may be missing there."""
    remote.world.send(b"one")
    context = reader.start().results.pphContext
    (queue,) = remote.queues
    queue.delivered.clear()
    assert reader.end(context) == OK
    assert remote.world.bodies() == []


@pytest.mark.rule("QP-132")
def test_a_queue_is_closed_by_its_handle_alone(remote: RemoteWorld, reader: Reader) -> None:
    """It is not searched among those that are open, as on Windows since Vista: it may be gone from there."""
    (queue,) = remote.queues
    remote.queues.close(queue)
    assert len(remote.queues) == 0
    assert reader.close() == OK


def test_a_deleted_queue_ends_its_reads(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.send(b"one")
    context = reader.start().results.pphContext
    waiting = reader.start(request=2, timeout=60_000)
    remote.world.finish(remote.world.manager.delete_queue("orders"))
    assert result(waiting) == QUEUE_DELETED
    assert reader.end(context) == QUEUE_NOT_AVAILABLE
    assert result(reader.start(request=3)) == QUEUE_NOT_AVAILABLE
    assert reader.close() == OK


def test_a_queue_manager_that_stops_ends_its_reads(remote: RemoteWorld, reader: Reader) -> None:
    waiting = reader.start(timeout=60_000)
    remote.world.manager.stop()
    assert result(waiting) == OPERATION_CANCELLED


# ---- cancelling


@pytest.mark.rule("QP-120")
def test_a_cancel_names_the_queue_twice(reader: Reader) -> None:
    reader.start(timeout=1000)
    for handle, queue in ((reader.handle, 0), (reader.handle, reader.handle ^ 1), (0, 0)):
        cancelled = reader.peer.call("cancel_receive", hQueue=handle, pQueue=queue, dwRequestID=1)
        assert cancelled.result == INVALID_PARAMETER


@pytest.mark.rule("QP-121", "QP-122")
def test_what_cannot_be_cancelled(reader: Reader) -> None:
    assert reader.cancel() == INVALID_HANDLE
    reader.start(timeout=1000)
    assert reader.cancel(2) == 0xC00E0001


@pytest.mark.rule("QP-123", "QP-124", "QP-125")
@pytest.mark.parametrize("action", [RECEIVE, PEEK])
def test_a_read_that_waits_can_be_cancelled(remote: RemoteWorld, reader: Reader, action: int) -> None:
    call = reader.start(action, timeout=0xFFFFFFFF)
    assert reader.cancel() == OK
    assert result(call) == CANCELED_BY_CLIENT
    assert call.results.pphContext is None
    assert reader.cancel() == INVALID_HANDLE
    remote.world.send(b"one")
    assert remote.world.bodies() == [b"one"]
    assert text(reader.start(action)) == b"one"


@pytest.mark.rule("QP-125")
def test_a_peek_of_a_cursor_can_be_cancelled(remote: RemoteWorld, reader: Reader) -> None:
    cursor = reader.cursor()
    call = reader.start(PEEK, timeout=0xFFFFFFFF, hCursor=cursor)
    assert reader.cancel() == OK
    assert result(call) == CANCELED_BY_CLIENT
    remote.world.send(b"one")
    assert text(reader.start(PEEK, hCursor=cursor)) == b"one"


@pytest.mark.rule("QP-126")
def test_a_cancel_ends_no_read_of_others(remote: RemoteWorld, reader: Reader) -> None:
    mine, theirs = reader.start(timeout=60_000), (other := remote.reader()).start(timeout=60_000)
    assert (reader.cancel(), result(mine)) == (OK, CANCELED_BY_CLIENT)
    reader.handle = other.handle
    assert (reader.cancel(), theirs.done) == (INVALID_HANDLE, False)


@pytest.mark.rule("QP-127")
def test_a_message_that_is_being_read_when_it_is_cancelled_stays(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.send(b"one")
    remote.world.crash()  # its packet is on the disk only
    remote.begin()
    reader = remote.reader()
    run, remote.world.run = remote.world.run, lambda: None  # type: ignore[method-assign]
    call = reader.start()
    assert not call.done
    assert reader.cancel() == OK
    remote.world.run = run  # type: ignore[method-assign]
    run()
    assert result(call) == CANCELED_BY_CLIENT
    assert remote.world.receive() == b"one"


# ---- clients that are gone


@pytest.mark.rule("QP-181", "QP-185", "QP-186")
@pytest.mark.parametrize("way", ["start_receive", "start_receive2", "lookup"])
def test_a_client_that_is_gone_leaves_its_message(remote: RemoteWorld, reader: Reader, way: str) -> None:
    keys = [remote.world.send(body) for body in (b"one", b"two")]
    call = {
        "start_receive": reader.start0,
        "start_receive2": reader.start,
        "lookup": lambda: reader.look_up(0x40000020, keys[0]),
    }[way]()
    assert text(call) == b"one"
    reader.peer.lose()
    assert remote.world.receive() == b"one"
    assert not remote.world.manager.find("orders").descriptors


@pytest.mark.rule("QP-183")
def test_a_read_whose_client_is_gone_takes_nothing(remote: RemoteWorld, reader: Reader) -> None:
    waiting = reader.start(timeout=0xFFFFFFFF)
    other = remote.reader().start(timeout=60_000)
    waiting.abandon()
    assert not next(iter(remote.queues)).pending
    remote.world.send(b"one")
    assert text(other) == b"one"


@pytest.mark.rule("QP-183")
def test_a_reply_that_cannot_be_written_is_a_nack(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.send(b"one")
    call = reader.start()
    context = call.results.pphContext
    call.deliver(False)
    assert remote.world.receive(peek=True) == b"one"
    assert len(reader.peer.association.handles) == 1
    with pytest.raises(RpcFault):
        reader.end(context)


def test_a_client_with_too_many_handles_gets_no_message(remote: RemoteWorld) -> None:
    remote.world.send(b"one")
    remote.associations = type(remote.associations)(remote.random.randbytes, 1)
    reader = remote.reader()
    assert reader.start().fault_status is not None
    assert remote.world.bodies() == [b"one"]
    assert remote.world.receive() == b"one"


@pytest.mark.rule("QP-150")
def test_a_purge_fails_with_an_exception(remote: RemoteWorld) -> None:
    peer = remote.peer()
    assert peer.begin("purge_queue", hQueue=remote.opened()).fault_status == INVALID_HANDLE
    assert peer.begin("purge_queue", hQueue=1).fault_status == INVALID_HANDLE


def test_what_a_delivered_read_keeps(remote: RemoteWorld, reader: Reader) -> None:
    remote.world.send(bytes(100_000))
    received(reader.start())
    (queue,) = remote.queues
    (read,) = queue.delivered.values()
    assert (read.args, read.call) == (None, None)  # with the packet and the connection
    assert queue.client == CLIENT


# ---- what does not work


def test_an_acknowledgment_that_the_disk_did_not_take_is_not_confirmed(
    remote: RemoteWorld, reader: Reader
) -> None:
    remote.world.send(b"one")
    context = reader.start().results.pphContext
    remote.world.writer.fail_commit(1, errno.ENOSPC)
    assert reader.end(context) == 0xC00E002A
    remote.world.advance(5)  # the removal is repeated
    remote.world.crash()
    assert remote.world.bodies() == []


def test_what_one_client_may_have(remote: RemoteWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (
        ("openqueues.MOST_OPEN", 2),
        ("openqueues.MOST_CURSORS", 3),
        ("reads.MOST_PENDING", 1),
    ):
        monkeypatch.setattr(f"msmq_fast.rpc.services.{name}", most)
    reader = remote.reader()
    remote.opened()
    with pytest.raises(InsufficientResources):
        remote.opened()
    for _ in range(3):
        reader.cursor()
    with pytest.raises(InsufficientResources):
        reader.cursor()
    waiting = reader.start(timeout=1000)
    assert result(reader.start(request=2, timeout=1000)) == INSUFFICIENT_RESOURCES
    assert not waiting.done

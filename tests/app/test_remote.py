"""Queues of other computers by the application protocol, with a reader that does what a test says."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast.packet.names import FormatName
from msmq_fast.protocol.errors import (
    IOTimeout,
    MessageNotFound,
    MSMQError,
    OperationCancelled,
    QueueNotFound,
    RemoteMachineNotAvailable,
)
from msmq_fast.protocol.frames import Frame
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.remote import RemoteMessage
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion
from tests.support.rpc.fake_computers import packet
from tests.support.worlds.app import Client, World

NAME = r"DIRECT=TCP:10.0.0.7\private$\orders"
MESSAGE = RemoteMessage(packet(b"hello"), 4 << 56 | 7, 1_700_000_100, 2, 1)


class FakeRead:
    def __init__(self) -> None:
        self.completion: Completion[RemoteMessage] = Completion()

    def cancel(self, error: MSMQError | None = None) -> bool:
        return self.completion.fail(error or OperationCancelled())


class FakeSubscription:
    def __init__(self, sink: Any, acknowledge: bool, on_end: Any) -> None:
        self.on_end = on_end
        self.sink = sink
        self.acknowledge = acknowledge
        self.granted = 0
        self.acked: list[int] = []
        self.released: list[int] = []
        self.closed = False

    def grant(self, credit: int) -> None:
        self.granted += credit

    def ack(self, lookup_ids: list[int]) -> Completion[int]:
        self.acked += lookup_ids
        return Completion.of(len(lookup_ids))

    def release(self, lookup_ids: list[int]) -> int:
        self.released += lookup_ids
        return len(lookup_ids)

    def close(self) -> None:
        self.closed = True


class FakeCursor:
    def __init__(self, queue: FakeQueue, number: int) -> None:
        self.number = number
        self.queue = queue
        self.closed = False

    def peek(self, timeout_ms: int | None, *, gate: Any = None) -> FakeRead:
        return self.queue.read("peek", timeout_ms)

    def peek_next(self, timeout_ms: int | None, *, gate: Any = None) -> FakeRead:
        return self.queue.read("peek_next", timeout_ms)

    def receive(self, timeout_ms: int | None, *, gate: Any = None) -> FakeRead:
        return self.queue.read("receive at cursor", timeout_ms)

    def close(self) -> None:
        self.closed = True
        del self.queue.cursors[self.number]


class FakeQueue:
    """What the reader opened."""

    def __init__(self) -> None:
        self.cursors: dict[int, Any] = {}
        self.reads: list[FakeRead] = []
        self.calls: list[tuple[Any, ...]] = []
        self.subscription: FakeSubscription | None = None
        self.closed = False

    def read(self, *call: Any) -> FakeRead:
        self.calls.append(call)
        self.reads.append(FakeRead())
        return self.reads[-1]

    def receive(self, timeout_ms: int | None, *, peek: bool = False, gate: Any = None) -> FakeRead:
        return self.read("peek" if peek else "receive", timeout_ms)

    def lookup(
        self, lookup_id: int, operation: Lookup, *, peek: bool = False, gate: Any = None
    ) -> Completion[RemoteMessage]:
        return self.read("lookup", lookup_id, operation, peek).completion

    def open_cursor(self) -> FakeCursor:
        cursor = FakeCursor(self, 501)
        self.cursors[501] = cursor
        return cursor

    def subscribe(self, sink: Any, credit: int, *, acknowledge: bool, on_end: Any = None) -> FakeSubscription:
        self.subscription = FakeSubscription(sink, acknowledge, on_end)
        return self.subscription

    def purge(self) -> Completion[None]:
        return Completion.of(None)

    def close(self) -> None:
        self.closed = True


class FakeReader:
    def __init__(self) -> None:
        self.opens: list[tuple[FormatName, Access, Share, Token | None]] = []
        self.opened: list[Completion[Any]] = []

    def open(self, name: FormatName, access: Access, share: Share, token: Token | None) -> Completion[Any]:
        self.opens.append((name, access, share, token))
        self.opened.append(Completion())
        return self.opened[-1]


class Remote:
    def __init__(self, **limits: int) -> None:
        self.world = World(**limits)
        self.reader = FakeReader()
        self.world.manager.remote = self.reader
        self.client: Client = self.world.client()

    def open(self, access: int = 1) -> tuple[int, FakeQueue]:
        """An open queue and the number of its handle."""
        self.client.send(Frame.OPEN, [NAME, access])
        queue = FakeQueue()
        self.reader.opened[-1].resolve(queue)
        ((kind, _, (number,)),) = self.client.read()
        assert kind == Frame.REPLY
        return number, queue


@pytest.fixture
def remote() -> Remote:
    return Remote()


def test_the_reply_to_an_open_waits_for_the_other_computer(remote: Remote) -> None:
    client = remote.client
    request = client.send(Frame.OPEN, [NAME, 0x20, 1])
    client.send(Frame.PING, [])
    assert [kind for kind, _, _ in client.read()] == [Frame.REPLY], "other requests go on"
    ((name, access, share, token),) = remote.reader.opens
    assert (str(name), access, share) == (NAME, Access.PEEK, Share.DENY_RECEIVE)
    assert token is not None
    remote.reader.opened[0].resolve(FakeQueue())
    assert client.read() == [(Frame.REPLY, request, [1])]


def test_what_the_other_computer_refuses(remote: Remote) -> None:
    request = remote.client.send(Frame.OPEN, [NAME, 3])
    remote.reader.opened[0].fail(QueueNotFound("said by 10.0.0.7"))
    ((kind, number, error),) = remote.client.read()
    assert (kind, number, error[1]) == (Frame.ERROR, request, "MQ_ERROR_QUEUE_NOT_FOUND")
    assert [queue.descriptors for queue in remote.world.manager.outgoing()] == [[]], "not open for sending"


def test_who_opens_to_send_and_read_is_told_how_to_send_only(remote: Remote) -> None:
    """The default access of clients reads, too; the other computer may have no RPC."""
    for access, told in ((3, True), (1, False)):
        remote.client.send(Frame.OPEN, [NAME, access])
        remote.reader.opened[-1].fail(RemoteMachineNotAvailable("10.0.0.7: port 135: refused"))
        ((_, _, error),) = remote.client.read()
        assert error[1] == "MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE"
        assert "10.0.0.7: port 135: refused" in error[2]
        assert ("access SEND alone" in error[2]) == told


def test_a_client_that_does_not_wait(remote: Remote) -> None:
    remote.client.send(Frame.OPEN, [NAME, 1])
    remote.client.engine.connection_lost()
    queue = FakeQueue()
    remote.reader.opened[0].resolve(queue)
    assert queue.closed


def test_handles_that_are_being_opened_count() -> None:
    remote = Remote(max_handles=1)
    remote.client.send(Frame.OPEN, [NAME, 1])
    remote.client.send(Frame.OPEN, [NAME, 1])
    ((kind, _, error),) = remote.client.read()
    assert (kind, error[1]) == (Frame.ERROR, "MQ_ERROR_INSUFFICIENT_RESOURCES")
    assert len(remote.reader.opens) == 1


def test_without_a_reader_there_is_no_such_queue() -> None:
    client = World().client()
    kind, error = client.call(Frame.OPEN, [NAME, 1])
    assert (kind, error[1]) == (Frame.ERROR, "MQ_ERROR_QUEUE_NOT_FOUND")


@pytest.mark.parametrize("name", ["MULTICAST=234.1.1.1:8001", r"DIRECT=HTTP://a/msmq/q"])
def test_names_that_nobody_reads(remote: Remote, name: str) -> None:
    answer = remote.client.call(Frame.OPEN, [name, 1])
    assert answer[1][1] == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
    assert remote.reader.opens == []


def test_a_message(remote: Remote) -> None:
    number, queue = remote.open()
    request = remote.client.send(Frame.RECEIVE, [number, 1500])
    assert queue.calls == [("receive", 1500)]
    queue.reads[0].completion.resolve(MESSAGE)
    ((kind, answered, message),) = remote.client.read()
    assert (kind, answered) == (Frame.MESSAGE, request)
    assert (message[0], message[1]) == (4 << 56 | 7, b"hello")
    assert (message[16], message[17], message[21], message[22]) == (1_700_000_100, 0, 2, 1)


def test_reads_wait_and_are_cancelled(remote: Remote) -> None:
    number, queue = remote.open()
    waiting = remote.client.send(Frame.RECEIVE, [number, None, True])
    assert queue.calls == [("peek", None)]
    remote.client.send(Frame.CANCEL, [waiting])
    kinds = {kind: value for kind, _, value in remote.client.read()}
    assert kinds[Frame.REPLY] is True
    assert kinds[Frame.ERROR][1] == "MQ_ERROR_OPERATION_CANCELLED"
    remote.client.send(Frame.RECEIVE, [number, 0])
    queue.reads[1].completion.fail(IOTimeout())
    assert remote.client.read()[0][2][1] == "MQ_ERROR_IO_TIMEOUT"


def test_look_ups(remote: Remote) -> None:
    number, queue = remote.open()
    remote.client.send(Frame.LOOKUP, [number, 7, 2, True])
    assert queue.calls == [("lookup", 7, Lookup.PREVIOUS, True)]
    queue.reads[0].completion.fail(MessageNotFound())
    assert remote.client.read()[0][2][1] == "MQ_ERROR_MESSAGE_NOT_FOUND"


def test_cursors(remote: Remote) -> None:
    number, queue = remote.open()
    assert remote.client.call(Frame.CURSOR_OPEN, [number]) == (Frame.REPLY, [501])
    answer = remote.client.call(Frame.CURSOR_OPEN, [number, 7])  # only queues of this computer have places
    assert answer[1][1] == "MQ_ERROR_UNSUPPORTED_OPERATION"
    for action in (0, 1, 2):
        remote.client.send(Frame.CURSOR_READ, [501, 250, action])
    assert queue.calls == [("peek", 250), ("peek_next", 250), ("receive at cursor", 250)]
    cursor = queue.cursors[501]
    remote.client.call(Frame.CURSOR_CLOSE, [501])
    assert cursor.closed
    assert remote.client.call(Frame.CURSOR_READ, [501, 0, 0])[1][1] == "MQ_ERROR_INVALID_HANDLE"


def test_subscriptions(remote: Remote) -> None:
    number, queue = remote.open()
    request = remote.client.send(Frame.SUBSCRIBE, [number, 64, True])
    remote.client.read()
    subscription = queue.subscription
    assert subscription is not None
    assert subscription.acknowledge
    assert subscription.granted > 0
    subscription.sink([MESSAGE])
    ((kind, answered, (tag, messages)),) = remote.client.read()
    assert (kind, answered, tag, messages[0][1]) == (Frame.DELIVERY, request, 1, b"hello")
    assert remote.client.call(Frame.ACKNOWLEDGE, [request, 1, 1]) == (Frame.REPLY, None)
    assert subscription.acked == [4 << 56 | 7]
    subscription.on_end(RemoteMachineNotAvailable("10.0.0.7: reset"))
    ((kind, answered, error),) = remote.client.read()
    assert (kind, answered, error[1]) == (Frame.ENDED, request, "MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE")
    assert subscription.closed


def test_purge_and_close(remote: Remote) -> None:
    number, queue = remote.open()
    assert remote.client.call(Frame.PURGE, [number]) == (Frame.REPLY, None)
    assert remote.client.call(Frame.CLOSE, [number]) == (Frame.REPLY, None)
    assert queue.closed


def test_a_connection_that_ends_closes_its_queues(remote: Remote) -> None:
    _, queue = remote.open()
    remote.client.engine.connection_lost()
    assert queue.closed


@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        (Frame.RECEIVE, [0, 0, False, 1], "MQ_ERROR_TRANSACTION_ENLIST"),
        (Frame.LOOKUP, [0, 7, 0, False, 1], "MQ_ERROR_TRANSACTION_ENLIST"),
        (Frame.SUBSCRIBE, [0, 1, False, 1], "MQ_ERROR_TRANSACTION_ENLIST"),
        (Frame.REJECT, [0, 7, 1], "MQ_ERROR_TRANSACTION_ENLIST"),
        (Frame.BROWSE, [0, {}], "MQ_ERROR_UNSUPPORTED_OPERATION"),
        (Frame.RESUBMIT, [0, {}], "MQ_ERROR_UNSUPPORTED_OPERATION"),
    ],
)
def test_what_only_works_at_home(remote: Remote, kind: Frame, payload: list[Any], expected: str) -> None:
    number, _ = remote.open()
    remote.client.call(Frame.BEGIN, [1])
    answer = remote.client.call(kind, [number, *payload[1:]])
    assert (answer[0], answer[1][1]) == (Frame.ERROR, expected)


def test_no_transaction_for_cursors(remote: Remote) -> None:
    number, _ = remote.open()
    remote.client.call(Frame.BEGIN, [1])
    remote.client.call(Frame.CURSOR_OPEN, [number])
    answer = remote.client.call(Frame.CURSOR_READ, [501, 0, 2, 1])
    assert answer[1][1] == "MQ_ERROR_TRANSACTION_ENLIST"

"""Servers that are killed while remote readers are at work: nothing that was acknowledged comes back, nothing
that was not is lost (QP-111, QP-112).
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from msmq_fast import RECOVERABLE, Access, Message, sync
from msmq_fast._native.framing import parse
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from tests.support.processes.servers import Server, data_directory
from tests.support.rpc.remotereader import opening
from tests.support.rpc.socketreader import ACK, INFINITE, NACK, Caller, RemoteQueue, readable

ORDERS = r"DIRECT=OS:.\private$\orders"


@pytest.fixture
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, environment={"MSMQ_FAST_RPC__REMOTE_READ_LEVEL": "none"})
        try:
            yield running
        finally:
            running.kill()


def fill(server: Server, count: int) -> None:
    server.start()
    readable(server, "orders")
    messages = [Message(body=b"%d" % number, delivery=RECOVERABLE) for number in range(count)]
    with sync.connect(server.endpoint) as connection, connection.open("orders", Access.SEND) as queue:
        queue.send_many(messages)


def bodies(server: Server) -> list[str]:
    return [base64.b64decode(message["body_b64"]).decode() for message in server.messages("orders")]


def text(read: Any) -> str:
    """The body of a message that was read, a number."""
    return bytes(parse(bytes(read.lpRemoteReadDesc2.pRemoteReadDesc.lpBuffer)).body).decode()


@pytest.mark.rule("QP-111")
@pytest.mark.parametrize("interface", ["qm2qm", "RemoteRead"])
def test_what_was_not_acknowledged_is_there_after_a_crash(server: Server, interface: str) -> None:
    fill(server, 3)
    if interface == "qm2qm":
        queue = RemoteQueue(server, "orders")
        queue.start()
        assert queue.reader.receive().result == 0
    else:
        reader = Caller(server.host, server.port("rpc"), REMOTE_READ)
        context = reader.call("open_queue", **opening(ORDERS)).pphContext
        read = reader.call(
            "start_receive",
            phContext=context,
            LookupId=0,
            hCursor=0,
            ulAction=0,
            ulTimeout=0,
            dwRequestId=1,
            dwMaxBodySize=INFINITE,
            dwMaxCompoundMessageSize=INFINITE,
        )
        assert read.result == 0
    server.kill()
    server.start()
    assert bodies(server) == ["0", "1", "2"]


@pytest.mark.rule("QP-112")
def test_what_was_acknowledged_does_not_come_back_after_a_crash(server: Server) -> None:
    fill(server, 300)
    gone: list[str] = []
    back: list[str] = []
    queue = RemoteQueue(server, "orders")

    def read_on() -> None:
        try:
            while True:
                queue.start(timeout=INFINITE)
                read = queue.reader.receive()
                if read.result:
                    return
                number = text(read)
                ack = NACK if int(number) % 10 == 9 and number not in back else ACK
                if ack == NACK:
                    back.append(number)
                if queue.end(read, ack) == 0 and ack == ACK:
                    gone.append(number)
                    if len(gone) == 100:
                        enough.set()
        except OSError:
            return

    enough = threading.Event()
    reader = threading.Thread(target=read_on)
    reader.start()
    assert enough.wait(30)
    server.kill()
    reader.join(30)
    assert not reader.is_alive()
    server.start()
    left = bodies(server)
    assert len(left) == len(set(left))
    assert not set(left) & set(gone)
    lost = {str(number) for number in range(300)} - set(left) - set(gone)
    assert len(lost) <= 1  # the one whose acknowledgment was not answered

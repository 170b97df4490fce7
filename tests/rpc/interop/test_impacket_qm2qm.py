"""Every operation of qm2qm and RemoteRead over a socket, with impacket as the client: NDR and NDR64, without
authentication and with NTLM at each level, with right and wrong passwords.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from impacket.dcerpc.v5.rpcrt import DCERPCException

from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.idl.qm2qm import QM2QM, REMOTEREADDESC, REMOTEREADDESC2
from msmq_fast.rpc.idl.qmcomm import QMCOMM, TRANSFER_BUFFER_V1, TRANSFER_SEND
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.services.queueformat import queue_format
from tests.rpc.interop.impacketclient import (
    ANY_LEVEL,
    INTEGRITY,
    LEVELS,
    NONE,
    PASSWORD,
    PRIVACY,
    USER,
    ImpacketClient,
    directory_of_user,
)
from tests.support.processes.servers import Server
from tests.support.rpc.peers import CLIENT
from tests.support.rpc.remotereader import opening
from tests.support.rpc.socketreader import readable

INVALID_HANDLE, IO_TIMEOUT, DTC_CONNECT = 0xC00E0007, 0xC00E001B, 0xC00E004C
RECEIVE, PEEK = 0x00000000, 0x80000000
LOOKUP_RECEIVE_NEXT = 0x40000021
MINE = r"DIRECT=OS:.\private$\{}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with a user; RemoteRead is open at every level."""
    with directory_of_user() as data:
        running = Server(data, environment=ANY_LEVEL)
        try:
            running.start()
            readable(running, "plain")
            readable(running, "sequences", "--transactional")
            for name in ("plain", "sequences"):
                running.ok("acl", "grant", name, "--user", USER, "--right", "receive", "--right", "peek")
            yield running
        finally:
            running.kill()


def send(server: Server, name: str, *bodies: str) -> None:
    flags = ("--xact",) if name == "sequences" else ("--recoverable",)
    for body in bodies:
        server.ok("send", name, "--body", body, *flags)


def left(server: Server, name: str) -> int:
    """How many messages there are; they are gone then."""
    return len(server.messages(name))


# ---- qm2qm


class Queue:
    """A queue that was opened by qmcomm and taken over by qm2qm."""

    def __init__(self, client: ImpacketClient, opener: ImpacketClient) -> None:
        self.client = client
        found = opener.ok(
            "open_remote_queue",
            pQueueFormat=queue_format(parse_format_name(MINE.format("plain"))),
            dwCallingProcessID=0,
            dwDesiredAccess=1,
            dwShareMode=0,
            pLicGuid=CLIENT,
            dwMQS=0,
        )
        self.handle = handle = found.phQueue
        self.cursor = opener.ok(
            "create_remote_cursor", ptb1=TRANSFER_BUFFER_V1(transfer=TRANSFER_SEND()), hQueue=handle
        ).phCursor
        opened = client.ok(
            "open_queue", pLicGuid=CLIENT, dwMQS=0, hQueue=handle, pQueue=handle, dwpContext=handle
        )
        self.session = opened.phContext
        opener.call("close_remote_queue_context", pphContext=found.pphContext)

    def desc(self, action: int, **values: Any) -> Any:
        fields = {"hRemoteQueue": self.handle, "dwQueue": self.handle, "ulAction": action, "dwRequestID": 1}
        return REMOTEREADDESC(**(fields | values))

    def read(self, name: str, action: int, lookup_id: int | None = None, **values: Any) -> Any:
        desc: Any = self.desc(action, **values)
        if name == "start_receive":
            return self.client.call(name, lpRemoteReadDesc=desc)
        more = {} if lookup_id is None else {"LookupId": lookup_id}
        return self.client.call(name, lpRemoteReadDesc2=REMOTEREADDESC2(desc, 0), **more)

    def end(self, context: bytes, ack: int) -> None:
        ended = self.client.ok("end_receive", pphContext=context, dwAck=ack)
        assert ended.pphContext is None


def body(desc: Any) -> bytes:
    packet = bytes(desc.lpBuffer)
    assert len(packet) == desc.dwSize
    return Message.from_packet(packet).body


@pytest.mark.rule("QP-001", "QP-008", "QP-015", "QP-016", "QP-037", "QP-102", "QP-103", "QP-170")
@pytest.mark.parametrize("ndr64", [False, True], ids=["ndr", "ndr64"])
@pytest.mark.parametrize("level", LEVELS)
def test_every_operation_of_qm2qm(server: Server, level: int, ndr64: bool) -> None:
    left(server, "plain")
    send(server, "plain", "one", "two", "three")
    client = ImpacketClient(server, "qm2qm", QM2QM, level, ndr64=ndr64)
    opener = ImpacketClient(server, "rpc", QMCOMM, level, ndr64=ndr64)
    version = client.call("get_version")
    assert (version.pMajor, version.pMinor) == (6, 1)
    assert client.call("get_port", dwPortType=1).result == server.port("qm2qm")
    queue = Queue(client, opener)

    peeked = queue.read("start_receive2", PEEK, hCursor=queue.cursor)
    assert (peeked.result, peeked.pphContext) == (0, None)
    assert body(peeked.lpRemoteReadDesc2.pRemoteReadDesc) == b"one"
    sequential = peeked.lpRemoteReadDesc2.SequentialId
    first = queue.read("start_receive", RECEIVE)
    assert body(first.lpRemoteReadDesc) == b"one"
    queue.end(first.pphContext, 1)
    found = queue.read("start_receive_by_lookup_id", LOOKUP_RECEIVE_NEXT, sequential)
    assert body(found.lpRemoteReadDesc2.pRemoteReadDesc) == b"two"
    queue.end(found.pphContext, 2)
    second = queue.read("start_receive2", RECEIVE, ulTimeout=1000)
    assert body(second.lpRemoteReadDesc2.pRemoteReadDesc) == b"one"
    queue.end(second.pphContext, 2)
    cancelled = client.call("cancel_receive", hQueue=queue.handle, pQueue=queue.handle, dwRequestID=1)
    assert cancelled.result == INVALID_HANDLE
    client.ok("close_cursor", hQueue=queue.handle, hCursor=queue.cursor)
    client.ok("purge_queue", hQueue=queue.handle)
    assert queue.read("start_receive2", RECEIVE, ulTimeout=1).result == IO_TIMEOUT
    assert client.ok("close_queue", pphContext=queue.session).pphContext is None
    with pytest.raises(DCERPCException):
        client.call("close_queue", pphContext=queue.session)
    assert client.called == set(range(11))
    client.close()
    opener.close()
    assert left(server, "plain") == 0


@pytest.mark.rule("QP-007")
@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_wrong_password_calls_nothing(server: Server, level: int) -> None:
    opens: dict[str, Any] = opening(MINE.format("plain"))
    for listener, table, name, values in (
        ("qm2qm", QM2QM, "get_version", {}),
        ("rpc", REMOTE_READ, "open_queue", opens),
    ):
        with pytest.raises(DCERPCException):
            ImpacketClient(server, listener, table, level, secret=PASSWORD + "!").call(name, **values)
        client = ImpacketClient(server, listener, table, level)
        client.call(name, **values)
        client.close()


# ---- RemoteRead


def remote(packet_sections: list[Any]) -> bytes:
    packet = b"".join(bytes(section.pSectionBuffer) for section in packet_sections)
    return Message.from_packet(packet[: int.from_bytes(packet[8:12], "little")]).body


@pytest.mark.rule("RR-001", "RR-002", "RR-015", "RR-027", "RR-042", "RR-054", "RR-066", "RR-070", "RR-075")
@pytest.mark.parametrize("ndr64", [False, True], ids=["ndr", "ndr64"])
@pytest.mark.parametrize("level", LEVELS)
def test_every_operation_of_remote_read(server: Server, level: int, ndr64: bool) -> None:
    left(server, "sequences")
    send(server, "sequences", "one", "two", "three")
    client = ImpacketClient(server, "rpc", REMOTE_READ, level, ndr64=ndr64)
    assert client.call("get_server_port").result == server.port("rpc")
    context = client.call("open_queue", **opening(MINE.format("sequences"))).pphContext
    cursor = client.ok("create_cursor", phContext=context).phCursor

    def start(name: str, action: int, **values: Any) -> Any:
        parameters = {
            "phContext": context,
            "LookupId": 0,
            "hCursor": 0,
            "ulAction": action,
            "ulTimeout": 0,
            "dwRequestId": 1,
            "dwMaxBodySize": 0xFFFFFFFF,
            "dwMaxCompoundMessageSize": 0xFFFFFFFF,
        }
        return client.ok(name, **(parameters | values))

    def end(name: str, ack: int) -> None:
        client.ok(name, phContext=context, dwAck=ack, dwRequestId=1)

    peeked = start("start_receive", PEEK, hCursor=cursor)
    assert remote(peeked.ppPacketSections) == b"one"
    short = start("start_receive", PEEK, dwMaxBodySize=1)
    assert [section.SectionBufferType for section in short.ppPacketSections] == [1, 2]
    client.ok("close_cursor", phContext=context, hCursor=cursor)
    assert remote(start("start_receive", RECEIVE).ppPacketSections) == b"one"
    end("end_receive", 1)
    token = bytes(50)
    identifier = bytes(range(16))
    enlisted = client.call(
        "enlist_remote_transaction",
        pTransactionId=identifier,
        cbPropagationToken=len(token),
        pbPropagationToken=token,
        pQueueFormat=queue_format(parse_format_name(MINE.format("sequences"))),
    )
    assert enlisted.result == DTC_CONNECT
    transactional = start("start_transactional_receive", RECEIVE, pTransactionId=identifier)
    assert remote(transactional.ppPacketSections) == b"one"
    lookup_id = transactional.pSequenceId
    client.ok("set_user_acknowledgement_class", phContext=context, LookupId=lookup_id, usClass=0)
    end("end_transactional_receive", 2)
    missing = client.call("cancel_receive", phContext=context, dwRequestId=1)
    assert missing.result >> 31
    moving = client.call("open_queue_for_move", **opening(MINE.format("sequences;retry"), 4))
    second = start("start_receive", PEEK)
    moved = client.call(
        "move_message",
        phContextFrom=context,
        ullContextTo=moving.pMoveContext,
        LookupId=second.pSequenceId,
        pTransactionId=bytes(16),
    )
    assert moved.result == 0
    client.ok("purge_queue", phContext=context)
    for handle in (context, moving.pphContext):
        assert client.ok("close_queue", pphContext=handle).pphContext is None
    assert client.called == set(range(16)) - {1}
    client.close()
    assert left(server, "sequences") == 0
    assert left(server, "sequences;retry") == 1


# ---- large messages


@pytest.mark.long(seconds=5)
@pytest.mark.rule("QP-068")
@pytest.mark.parametrize("level", [NONE, INTEGRITY, PRIVACY])
def test_a_message_of_four_megabytes(server: Server, level: int, tmp_path: Any) -> None:
    left(server, "plain")
    content = bytes(range(256)) * 16_000
    file = tmp_path / "body"
    file.write_bytes(content)
    server.ok("send", "plain", "--file", str(file), "--recoverable")
    client = ImpacketClient(server, "qm2qm", QM2QM, level)
    queue = Queue(client, ImpacketClient(server, "rpc", QMCOMM, level))
    read = queue.read("start_receive2", RECEIVE)
    assert body(read.lpRemoteReadDesc2.pRemoteReadDesc) == content
    queue.end(read.pphContext, 2)
    client.close()
    assert left(server, "plain") == 0

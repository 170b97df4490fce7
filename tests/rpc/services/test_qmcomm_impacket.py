"""Every operation of qmcomm and qmcomm2 over a socket: impacket's runtime, NDR and NTLM as the client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from impacket.dcerpc.v5.rpcrt import DCERPCException

from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.idl.mqmq import OBJECTID, PROPVARIANT, QUEUE_FORMAT
from msmq_fast.rpc.idl.qmcomm import (
    CREATE_REMOTE_CURSOR,
    OBJECT_FORMAT,
    QMCOMM,
    TRANSFER_BUFFER_V1,
    TRANSFER_SEND,
)
from msmq_fast.rpc.idl.qmcomm2 import QMCOMM2
from msmq_fast.rpc.services.queueformat import name_of, queue_format
from tests.support.processes.servers import Server, command, data_directory, until
from tests.support.rpc.dependents import CLIENT, queue_object, sent, wanted
from tests.support.rpc.qmcomm import CONNECT, INTEGRITY, NONE, PASSWORD, PRIVACY, USER, Stub, body, opened

PEEK_CURRENT, PEEK_NEXT = 0x80000000, 0x80000001
ILLEGAL_OPERATION, DTC_CONNECT, ACCESS_DENIED = 0xC00E0064, 0xC00E004C, 0xC00E0025
UOW = bytes(range(16))
LPWSTR, NULL = 31, 1


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with a user who is an administrator; callers without a name may create queues, too."""
    with data_directory() as data:
        data.mkdir(mode=0o700)
        words = ("user", "add", USER, "--group", "administrators", "--data", str(data))
        assert command(*words, stdin=f"{PASSWORD}\n".encode()).returncode == 0
        running = Server(data, environment={"MSMQ_FAST_RPC__NAMED_LEVEL": "none"})
        try:
            running.start()
            running.ok("acl", "grant", "--machine", "--user", "anonymous", "--right", "create-queue")
            yield running
        finally:
            running.kill()


def objects(server: Server, stub: Stub, path: str, properties: dict[int, Any]) -> str:
    """A queue is created, looked at and changed; its direct format name."""
    stub.ok(
        "create_object_internal",
        dwObjectType=1,
        lpwcsPathName=path,
        SDSize=0,
        pSecurityDescriptor=None,
        cp=len(properties),
        aProp=list(properties),
        apVar=list(properties.values()),
    )
    unknown = OBJECT_FORMAT(1, QUEUE_FORMAT(0, 0, 0, None))
    found = stub.ok("object_path_to_object_format", lpwcsPathName=path, pObjectFormat=unknown)
    if stub.level == NONE:
        server.ok("acl", "grant", path, "--user", "anonymous", "--right", "all")
    text = str(name_of(found.pObjectFormat.pQueueFormat))
    name = queue_object(text)
    label = PROPVARIANT(LPWSTR, 0, 0, 0, "a label")
    stub.ok("set_object_properties", pObjectFormat=name, cp=1, aProp=[108], apVar=[label])
    asked = [PROPVARIANT(NULL, 0, 0, 0, None), PROPVARIANT(NULL, 0, 0, 0, None)]
    values = stub.ok("get_object_properties", pObjectFormat=name, cp=2, aProp=[108, 105], apVar=asked)
    assert [value._varUnion for value in values.apVar] == ["a label", 0xFFFFFFFF]
    permissions = stub.ok(
        "get_object_security_internal", pObjectFormat=name, RequestedInformation=4, nLength=1000
    )
    descriptor = permissions.pSecurityDescriptor[: permissions.lpnLengthNeeded]
    stub.ok(
        "set_object_security_internal",
        pObjectFormat=name,
        SecurityInformation=4,
        SDSize=len(descriptor),
        pSecurityDescriptor=descriptor,
    )
    return text


def transactions(stub: Stub, text: str) -> None:
    """A message is sent in one transaction and received in another."""
    where = stub.call("get_tm_whereabouts", cbBufSize=16)
    assert (where.result, len(where.pbWhereabouts)) == (DTC_CONNECT, 16)
    other = stub.call("enlist_transaction", pUow=UOW, cbCookie=2, pbCookie=b"ck")
    assert other.result == DTC_CONNECT
    sending, reading = opened(stub, text, 2), opened(stub, text, 1)
    handle = stub.ok("enlist_internal_transaction", pUow=UOW).phIntXact
    stub.ok("enlist_transaction", pUow=UOW, cbCookie=0, pbCookie=b"")
    stub.ok(
        "send_message_ex",
        hQueue=sending.phQueue,
        ptb=sent(b"in a transaction", pUow=UOW),
        pMessageID=OBJECTID(CLIENT, 0),
    )
    assert stub.ok("commit_transaction", phIntXact=handle).phIntXact is None
    for end, left in (("abort_transaction", 1), ("commit_transaction", 0)):
        handle = stub.ok("enlist_internal_transaction", pUow=UOW).phIntXact
        assert body(stub, reading, pUow=UOW) == b"in a transaction"
        assert stub.ok(end, phIntXact=handle).phIntXact is None
        peeked = stub.call("receive_message_ex", hQMContext=reading.pdwQMContext, ptb=wanted(PEEK_CURRENT))
        assert (peeked.result == 0) == bool(left)


def messages(stub: Stub, text: str) -> None:
    """Messages are sent, peeked, received, purged."""
    sending, reading = opened(stub, text, 2), opened(stub, text, 1)
    for content in (b"one", b"two", b"three", bytes(100_000)):
        results = stub.ok(
            "send_message_ex", hQueue=sending.phQueue, ptb=sent(content), pMessageID=OBJECTID(CLIENT, 0)
        )
        assert results.pMessageID.Uniquifier
    other = stub.call(
        "send_message_internal_ex",
        pQueueFormat=queue_format(parse_format_name(text)),
        ptb=sent(),
        pMessageID=None,
    )
    assert other.result == ILLEGAL_OPERATION
    cursor = stub.ok("create_cursor_ex", hQueue=reading.phQueue, pcc=CREATE_REMOTE_CURSOR()).pcc.hCursor
    assert body(stub, reading, PEEK_CURRENT, cursor=cursor) == b"one"
    assert body(stub, reading, PEEK_NEXT, cursor=cursor) == b"two"
    assert body(stub, reading, cursor=cursor) == b"two"
    assert body(stub, reading) == b"one"
    obsolete = stub.call(
        "set_cursor_properties", hProxy=reading.phQueue, hCursor=cursor, hRemoteCursor=cursor
    )
    assert obsolete.result == ILLEGAL_OPERATION
    stub.ok("close_cursor", hQueue=reading.phQueue, hCursor=cursor)
    assert body(stub, reading) == b"three"
    assert body(stub, reading, body=100_000) == bytes(100_000)
    found = stub.ok(
        "handle_to_format_name",
        hQueue=reading.phQueue,
        dwFormatNameRPCBufferLen=100,
        lpwcsFormatName=bytes(200),
        pdwLength=100,
    )
    assert found.lpwcsFormatName.decode("utf-16-le").rstrip("\0") == text
    stub.ok("purge_queue", hQueue=reading.phQueue)
    for queue in (sending, reading):
        assert stub.ok("close_handle", phQueue=queue.phQueue).phQueue is None


def remote_readers(stub: Stub, text: str) -> None:
    """What is for remote readers."""
    queue = stub.ok(
        "open_remote_queue",
        pQueueFormat=queue_format(parse_format_name(text)),
        dwCallingProcessID=1,
        dwDesiredAccess=1,
        dwShareMode=0,
        pLicGuid=CLIENT,
        dwMQS=0x400,
    )
    nothing = TRANSFER_BUFFER_V1(transfer=TRANSFER_SEND())
    assert stub.ok("create_remote_cursor", ptb1=nothing, hQueue=queue.phQueue).phCursor
    assert stub.call("close_remote_queue_context", pphContext=queue.pphContext).pphContext is None
    with pytest.raises(DCERPCException, match="c00e0064"):
        stub.call("get_remote_queue_name", pQueue=1, lplpRemoteQueueName=None)
    stub.called.add(("qmcomm", 1))


@pytest.mark.rule("MP-001", "MP-006")
@pytest.mark.parametrize("ndr64", [False, True], ids=["ndr", "ndr64"])
@pytest.mark.parametrize(
    "level",
    [NONE, CONNECT, INTEGRITY, PRIVACY],
    ids=["none", "connect", "integrity", "privacy"],
)
def test_every_operation(server: Server, level: int, ndr64: bool) -> None:
    stub = Stub(server, level, ndr64=ndr64)
    try:
        assert stub.call("get_rtqm_server_port", fIP=0).result == server.port("rpc")
        version = stub.ok("query_qm_registry_internal", dwQueryType=3).lplpMQISServer
        assert version.count(".") == 2
        name = f"q{level}{int(ndr64)}"
        plain = objects(server, stub, rf".\private$\{name}", {108: PROPVARIANT(LPWSTR, 0, 0, 0, "new")})
        both = objects(server, stub, rf".\private$\{name}x", {113: PROPVARIANT(17, 0, 0, 0, 1)})
        messages(stub, plain)
        transactions(stub, both)
        remote_readers(stub, plain)
        for text in (plain, both):
            stub.ok("delete_object", pObjectFormat=queue_object(text))
        every = {(table.name, op.opnum) for table in (QMCOMM, QMCOMM2) for op in table.ops if not op.obsolete}
        assert stub.called == every
    finally:
        stub.close()


@pytest.mark.rule("MP-002")
@pytest.mark.parametrize("opnum", [0, 5, 13, 21, 24, 25, 29, 30, 32, 33, 34, 35])
def test_operations_for_local_use(server: Server, opnum: int) -> None:
    stub = Stub(server, NONE, ndr64=False)
    try:
        context = stub._context("qmcomm")
        context.call(opnum, b"")
        with pytest.raises(DCERPCException, match="nca_s_op_rng_error"):
            context.recv()
    finally:
        stub.close()


@pytest.mark.rule("MP-006")
def test_a_wrong_password_is_nobody(server: Server) -> None:
    with pytest.raises(DCERPCException, match="rpc_s_access_denied"):
        Stub(server, PRIVACY, ndr64=False, secret=USER).call("query_qm_registry_internal", dwQueryType=4)


@pytest.mark.rule("MP-115")
def test_nothing_goes_to_computers_that_a_caller_without_a_name_names(server: Server) -> None:
    stub = Stub(server, NONE, ndr64=False)
    try:
        for text in (r"DIRECT=TCP:127.0.0.77\private$\far", r"DIRECT=OS:far.example.net\private$\far"):
            for access in (1, 2, 0x20, 0x81):
                with pytest.raises(AssertionError, match="open_queue_internal"):
                    opened(stub, text, access)
        assert server.ok("outgoing", "list") == []
    finally:
        stub.close()


@pytest.mark.rule("MP-210", "MP-212")
def test_a_client_whose_connection_breaks_leaves_nothing(server: Server) -> None:
    server.ok("queue", "create", "left", "--transactional")
    stub = Stub(server, PRIVACY, ndr64=False)
    queue = opened(stub, r"DIRECT=OS:.\private$\left", 2)
    stub.ok("enlist_internal_transaction", pUow=UOW)
    stub.ok("send_message_ex", hQueue=queue.phQueue, ptb=sent(b"lost", pUow=UOW), pMessageID=None)
    assert len(server.ok("transaction", "list")) == 1
    stub.close()
    until(lambda: server.ok("transaction", "list") == [], what="the end of the transaction")
    assert server.messages("left") == []

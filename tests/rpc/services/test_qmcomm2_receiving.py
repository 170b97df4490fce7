"""Dependent clients receive and peek (MS-MQMP 3.1.5.3)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.names import FormatName, parse_format_name
from msmq_fast.packet.user import SecurityHeader, provider_info
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.rpc.call import Pending
from msmq_fast.rpc.idl.mqmq import OBJECTID
from msmq_fast.rpc.idl.qmcomm import CREATE_REMOTE_CURSOR
from msmq_fast.rpc.services.dependent.server import DependentPolicy
from tests.support.rpc.dependents import DependentWorld, sent, wanted
from tests.support.rpc.peers import MadeCall

INVALID_PARAMETER, INVALID_HANDLE, IO_TIMEOUT = 0xC00E0006, 0xC00E0007, 0xC00E001B
ACCESS_DENIED, ILLEGAL_CURSOR_ACTION, ILLEGAL_OPERATION = 0xC00E0025, 0xC00E001C, 0xC00E0064
BUFFER_OVERFLOW, FORMATNAME, LABEL = 0xC00E001A, 0xC00E001F, 0xC00E005E
SENDERID, CERTIFICATE, KEY = 0xC00E0022, 0xC00E002B, 0xC00E0061
SIGNATURE, PROVIDER, MESSAGE_NOT_FOUND = 0xC00E0062, 0xC00E0063, 0xC00E0088
ALREADY_RECEIVED = 0xC00E001D
PEEK_CURRENT, PEEK_NEXT, INFINITE = 0x80000000, 0x80000001, 0xFFFFFFFF
CONNECTOR = UUID("12121212-3434-5656-7878-909090909090")
NULL = UUID(int=0)
ADMIN = r"DIRECT=OS:HOST\private$\admin"
RESPONSE = "PUBLIC=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"


@pytest.fixture(params=[False, True], ids=["ndr", "ndr64"])
def remote(request: pytest.FixtureRequest) -> DependentWorld:
    return DependentWorld(ndr64=request.param)


def wide(text: str) -> bytes:
    return text.encode("utf-16-le")


def name(text: str) -> FormatName:
    return parse_format_name(text)


# ---- which message


@pytest.mark.rule("MP-190")
@pytest.mark.parametrize("delivery", [0, 1])
def test_a_message_that_was_received_is_gone(delivery: int) -> None:
    remote = DependentWorld()
    for text in (b"one", b"two"):
        remote.world.send(text, delivery=delivery)
    client = remote.dependent()
    queue = client.opened()
    assert client.body(queue, PEEK_CURRENT) == b"one"
    assert client.body(queue) == b"one"
    assert remote.world.bodies() == [b"two"]
    remote.world.crash()
    assert remote.world.bodies() == ([b"two"] if delivery else [])


@pytest.mark.rule("MP-190")
def test_a_removal_is_durable_before_the_answer(remote: DependentWorld) -> None:
    remote.world.send(b"one")
    client = remote.dependent()
    queue = client.opened()
    codec = remote.qmcomm2.table.op("receive_message_ex")
    asked = codec.Args(hQMContext=queue.pdwQMContext, ptb=wanted())
    call = MadeCall(client.qmcomm2, codec, asked, remote.ndr64)
    assert isinstance(remote.qmcomm2.receive_message_ex(call, asked), Pending)
    assert call.results is None
    remote.world.run()
    assert call.results.result == 0
    remote.world.crash()
    assert remote.world.bodies() == []


@pytest.mark.rule("MP-191")
@pytest.mark.parametrize(
    ("buffer", "result"),
    [
        (sent(), INVALID_PARAMETER),
        (wanted(1), INVALID_PARAMETER),
        (wanted(0x40000010), INVALID_PARAMETER),
        (wanted(PEEK_NEXT), ILLEGAL_CURSOR_ACTION),
        (wanted(cursor=77), INVALID_HANDLE),
    ],
)
def test_what_is_wrong_reads_nothing(buffer: Any, result: int) -> None:
    remote = DependentWorld()
    remote.world.send(b"one")
    client = remote.dependent()
    assert client.receive(client.opened(), buffer).result == result
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("MP-191")
def test_what_the_access_mode_allows(remote: DependentWorld) -> None:
    remote.world.send(b"one")
    client = remote.dependent()
    peeking, sending = client.opened(access=0x20), client.opened(access=2)
    assert client.body(peeking, PEEK_CURRENT) == b"one"
    assert client.receive(peeking).result == ACCESS_DENIED
    for action in (0, PEEK_CURRENT):
        assert client.receive(sending, wanted(action)).result == ACCESS_DENIED
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("MP-191")
def test_a_cursor_of_another_queue(remote: DependentWorld) -> None:
    client = remote.dependent()
    one, other = client.opened(), client.opened()
    cursor = client.cursor(one)
    assert client.receive(other, wanted(PEEK_CURRENT, cursor=cursor)).result == INVALID_HANDLE


@pytest.mark.rule("MP-190")
def test_with_a_cursor(remote: DependentWorld) -> None:
    for text in (b"one", b"two", b"three"):
        remote.world.send(text)
    client = remote.dependent()
    queue = client.opened()
    cursor = client.cursor(queue)
    assert client.receive(queue, wanted(PEEK_NEXT, cursor=cursor)).result == ILLEGAL_CURSOR_ACTION
    assert client.body(queue, PEEK_CURRENT, cursor=cursor) == b"one"
    assert client.body(queue, PEEK_NEXT, cursor=cursor) == b"two"
    results = client.receive(queue, wanted(cursor=cursor))
    assert results.ptb.old.transfer.Cursor == cursor
    assert client.body(queue, PEEK_CURRENT) == b"one"
    assert client.body(queue, cursor=cursor) == b"three"
    assert client.receive(queue, wanted(cursor=cursor)).result == MESSAGE_NOT_FOUND
    assert client.receive(queue, wanted(PEEK_CURRENT, cursor=cursor)).result == IO_TIMEOUT


@pytest.mark.rule("MP-190")
def test_a_message_under_a_cursor_that_others_took(remote: DependentWorld) -> None:
    remote.world.send(b"one")
    client = remote.dependent()
    queue = client.opened()
    cursor = client.cursor(queue)
    assert client.body(queue, PEEK_CURRENT, cursor=cursor) == b"one"
    remote.world.receive()
    assert client.receive(queue, wanted(cursor=cursor)).result == ALREADY_RECEIVED


# ---- waiting


@pytest.mark.rule("MP-192")
def test_a_read_waits_as_long_as_it_says(remote: DependentWorld) -> None:
    client = remote.dependent()
    queue = client.opened()
    assert client.receive(queue, wanted(timeout=0)).result == IO_TIMEOUT
    call = client.begin_receive(queue, wanted(timeout=300))
    remote.world.advance(0.29)
    assert call.results is None
    remote.world.advance(0.02)
    assert call.results.result == IO_TIMEOUT
    for_ever = client.begin_receive(queue, wanted(timeout=INFINITE))
    remote.world.advance(10_000_000)
    assert for_ever.results is None
    remote.world.send(b"late")
    assert for_ever.results.result == 0
    assert for_ever.results.ptb.old.ppBody[:4] == b"late"


@pytest.mark.rule("MP-192")
def test_readers_are_served_in_the_order_in_which_they_came(remote: DependentWorld) -> None:
    client = remote.dependent()
    queue = client.opened()
    calls = [client.begin_receive(queue, wanted(timeout=INFINITE)) for _ in range(3)]
    for text in (b"one", b"two"):
        remote.world.send(text)
    assert [call.results is not None for call in calls] == [True, True, False]
    assert calls[1].results.ptb.old.ppBody[:3] == b"two"


@pytest.mark.rule("MP-197")
@pytest.mark.parametrize("action", [0, PEEK_CURRENT])
def test_a_call_that_is_abandoned_takes_nothing(action: int) -> None:
    remote = DependentWorld()
    client = remote.dependent()
    queue = client.opened()
    cursor = client.cursor(queue)
    calls = [client.begin_receive(queue, wanted(action, timeout=INFINITE, cursor=at)) for at in (0, cursor)]
    for call in calls:
        call.abandon()
    remote.world.send(b"one")
    assert remote.world.bodies() == [b"one"]
    assert client.body(queue, cursor=cursor) == b"one"


# ---- what comes


def rich(remote: DependentWorld) -> int:
    """A message with everything; its ordinal."""
    remote.world.send(
        b"the body",
        label="the label",
        priority=5,
        delivery=1,
        body_type=8,
        app_specific=0xCAFE,
        extension=b"extension",
        correlation_id=bytes(range(20)),
        message_class=1,
        acknowledge=0x0E,
        admin_queue=name(ADMIN),
        response_queue=name(RESPONSE),
        journal=3,
        time_to_reach_queue=1000,
        time_to_be_received=2000,
        trace=True,
        connector_type=CONNECTOR,
        hash_algorithm=0x8003,
        encryption_algorithm=0x6602,
        security=SecurityHeader(
            sender_id_type=1,
            authentication_level=3,
            sender_id=b"sender id",
            encryption_key=b"key",
            signature=b"signature",
            certificate=b"certificate",
            provider_info=provider_info(1, "provider"),
        ),
    )
    return int(remote.world.manager.message_ordinals.last)


SCALARS = (
    "pClass",
    "pSentTime",
    "pArrivedTime",
    "pPriority",
    "pDelivery",
    "pAcknowledge",
    "pAuditing",
    "pApplicationTag",
    "pulRelativeTimeToQueue",
    "pulRelativeTimeToLive",
    "pTrace",
    "pulSenderIDType",
    "pulPrivLevel",
    "pAuthenticated",
    "pulHashAlg",
    "pulEncryptAlg",
    "pulProvType",
    "pulBodyType",
    "pulVersion",
)


@pytest.mark.rule("MP-196", "MP-220")
def test_every_property_that_is_asked_for(remote: DependentWorld) -> None:
    rich(remote)
    remote.world.clock.advance(500)
    remote.world.manager.tick()
    client = remote.dependent()
    manager = remote.world.manager
    buffer = wanted(
        ppMessageID=OBJECTID(NULL, 0),
        ppCorrelationID=bytes(20),
        ppSrcQMID=NULL,
        ppConnectorType=NULL,
        **dict.fromkeys(SCALARS, 0),
    )
    buffer.pbFirstInXact, buffer.pbLastInXact, buffer.ppXactID = 1, 1, OBJECTID(CONNECTOR, 5)
    got = client.receive(client.opened(), buffer)
    assert got.result == 0
    old = got.ptb.old
    sent_time = manager.ledger.now_s - 500
    assert {name: getattr(old, name) for name in SCALARS} == {
        "pClass": 1,
        "pSentTime": sent_time,
        "pArrivedTime": sent_time,
        "pPriority": 5,
        "pDelivery": 1,
        "pAcknowledge": 0x0E,
        "pAuditing": 3,
        "pApplicationTag": 0xCAFE,
        "pulRelativeTimeToQueue": 1000,
        "pulRelativeTimeToLive": 1500,
        "pTrace": 1,
        "pulSenderIDType": 1,
        "pulPrivLevel": 0,
        "pAuthenticated": 3,
        "pulHashAlg": 0x8003,
        "pulEncryptAlg": 0x6602,
        "pulProvType": 1,
        "pulBodyType": 8,
        "pulVersion": 0x10,
    }
    assert old.ppMessageID.Lineage == old.ppSrcQMID == manager.guid
    assert old.ppMessageID.Uniquifier > 0  # begins at a random place
    assert (old.ppCorrelationID, old.ppConnectorType) == (bytes(range(20)), CONNECTOR)
    assert (got.ptb.pbFirstInXact, got.ptb.pbLastInXact) == (0, 0)
    assert got.ptb.ppXactID == OBJECTID(NULL, 0)


@pytest.mark.rule("MP-196", "MP-220")
def test_the_place_of_a_message_in_its_transaction() -> None:
    remote = DependentWorld(transactional=True)
    manager = remote.world.manager
    transaction = manager.transactions.begin()
    for text in (b"one", b"two"):
        TransactedQueue(remote.world.sender(), transaction).send(Message(body=text))
    remote.world.finish(transaction.commit())
    client = remote.dependent()
    queue = client.opened()
    for first, last in ((1, 0), (0, 1)):
        buffer = wanted(pDelivery=0, pPriority=9)
        buffer.pbFirstInXact = buffer.pbLastInXact = 9
        buffer.ppXactID = OBJECTID(NULL, 0)
        got = client.receive(queue, buffer)
        assert (got.ptb.pbFirstInXact, got.ptb.pbLastInXact) == (first, last)
        assert got.ptb.ppXactID == OBJECTID(manager.guid, transaction.number)
        assert (got.ptb.old.pDelivery, got.ptb.old.pPriority) == (1, 0)


@pytest.mark.rule("MP-195")
def test_what_is_not_asked_for_stays_away(remote: DependentWorld) -> None:
    rich(remote)
    client = remote.dependent()
    asked = wanted(body=None)
    before = {field: getattr(asked.old, field) for field in asked.old.__slots__ if field != "transfer"}
    got = client.receive(client.opened(), asked)
    assert got.result == 0
    after = {field: getattr(got.ptb.old, field) for field in before}
    assert after == before
    assert remote.world.bodies() == []


BUFFERS = (
    ("ppBody", "ulBodyBufferSizeInBytes", "pBodySize", b"the body", BUFFER_OVERFLOW, True),
    (
        "ppMsgExtension",
        "ulMsgExtensionBufferInBytes",
        "pMsgExtensionSize",
        b"extension",
        BUFFER_OVERFLOW,
        True,
    ),
    ("ppSenderID", "uSenderIDLen", "pulSenderIDLenProp", b"sender id", SENDERID, True),
    ("ppSenderCert", "ulSenderCertLen", "pulSenderCertLenProp", b"certificate", CERTIFICATE, True),
    ("ppSymmKeys", "ulSymmKeysSize", "pulSymmKeysSizeProp", b"key", KEY, True),
    ("ppSignature", "ulSignatureSize", "pulSignatureSizeProp", b"signature", SIGNATURE, True),
    ("ppwcsProvName", "ulProvNameLen", "pulAuthProvNameLenProp", "provider\0", PROVIDER, True),
    ("ppTitle", "ulTitleBufferSizeInWCHARs", "pulTitleBufferSizeInWCHARs", "the label\0", LABEL, False),
)


def room_for(buffer: tuple[str, str, str, bytes | str, int, bool], room: int) -> dict[str, Any]:
    array, size, length, content, _, _ = buffer
    unit = 1 if isinstance(content, bytes) else 2
    values: dict[str, Any] = {array: bytes(room * unit), size: room, length: room}
    if array == "ppBody":
        values["ulAllocBodyBufferInBytes"] = room
    return values


@pytest.mark.rule("MP-194", "MP-195")
@pytest.mark.parametrize("buffer", BUFFERS, ids=[buffer[0] for buffer in BUFFERS])
@pytest.mark.parametrize("ndr64", [False, True])
def test_a_buffer_with_room_and_without(buffer: Any, ndr64: bool) -> None:
    array, size, length, content, too_small, fixed = buffer
    remote = DependentWorld(ndr64=ndr64)
    rich(remote)
    client = remote.dependent()
    queue = client.opened()
    raw = content if isinstance(content, bytes) else wide(content)
    unit = len(raw) // len(content)
    for action in (0, PEEK_CURRENT):
        short = client.receive(queue, wanted(action, body=None, **room_for(buffer, len(content) - 1)))
        assert short.result == too_small
        assert getattr(short.ptb.old, length) == len(content)
    assert remote.world.bodies() == [b"the body"]
    exact = client.receive(queue, wanted(PEEK_CURRENT, body=None, **room_for(buffer, len(content))))
    assert exact.result == 0
    assert getattr(exact.ptb.old, array) == raw
    ample = client.receive(queue, wanted(body=None, **room_for(buffer, len(content) + 50)))
    assert ample.result == 0
    old = ample.ptb.old
    sent_size = len(content) + 50 if fixed else len(content)
    assert (getattr(old, size), getattr(old, length)) == (sent_size, len(content))
    assert getattr(old, array) == raw.ljust(sent_size * unit, b"\0")
    assert remote.world.bodies() == []


@pytest.mark.rule("MP-195")
@pytest.mark.parametrize("buffer", BUFFERS, ids=[buffer[0] for buffer in BUFFERS])
def test_lengths_of_what_a_message_lacks(buffer: Any) -> None:
    array, _, length, *_ = buffer
    remote = DependentWorld()
    remote.world.send(b"")
    client = remote.dependent()
    got = client.receive(client.opened(), wanted(body=None, **room_for(buffer, 10)))
    assert got.result == 0
    empty = 1 if array == "ppTitle" else 0  # the NUL
    assert getattr(got.ptb.old, length) == empty
    assert not any(getattr(got.ptb.old, array))


@pytest.mark.rule("MP-194")
def test_a_message_without_room_stays_where_the_cursor_is(remote: DependentWorld) -> None:
    for text in (b"one", b"a long one", b"three"):
        remote.world.send(text)
    client = remote.dependent()
    queue = client.opened()
    for peeked in (False, True):
        cursor = client.cursor(queue)
        assert client.body(queue, PEEK_CURRENT, cursor=cursor) == b"one"
        if peeked:
            assert client.body(queue, PEEK_NEXT, cursor=cursor) == b"a long one"
        else:
            assert client.body(queue, cursor=cursor) == b"one"
        for _ in range(2):
            assert client.receive(queue, wanted(cursor=cursor, body=5)).result == BUFFER_OVERFLOW
        if not peeked:
            remote.world.send(b"one", priority=7)
    assert client.body(queue, cursor=cursor) == b"a long one"
    assert client.body(queue, cursor=cursor) == b"three"


@pytest.mark.rule("MP-194", "MP-193")
def test_a_message_without_room_stays_out_of_the_transaction() -> None:
    remote = DependentWorld(transactional=True)
    client = remote.dependent()
    uow = bytes(range(16))
    handle = client.enlist(uow).phIntXact
    client.send(client.opened(access=2), sent(b"a long one", pUow=uow))
    client.call("commit_transaction", phIntXact=handle)
    handle = client.enlist(uow).phIntXact
    queue = client.opened()
    assert client.receive(queue, wanted(body=5, pUow=uow)).result == BUFFER_OVERFLOW
    assert client.body(client.opened(), PEEK_CURRENT) == b"a long one"
    client.call("commit_transaction", phIntXact=handle)
    assert remote.world.bodies() == [b"a long one"]


STEMS = ("Response", "Admin", "Dest", "Ordering")


def names(room: int, length: int | None = None) -> dict[str, Any]:
    """Room for all four format names; `length` is that of the client's own buffers."""
    values: dict[str, Any] = {}
    for stem in STEMS:
        values[f"pp{stem}FormatName"] = bytes(2 * room)
        values[f"ul{stem}FormatNameLen"] = room
        values[f"pul{stem}FormatNameLenProp"] = room if length is None else length
    return values


@pytest.mark.rule("MP-195", "MP-196")
def test_the_names_of_queues(remote: DependentWorld) -> None:
    rich(remote)
    client = remote.dependent()
    manager = remote.world.manager
    destination = str(manager.find("orders").format_name(manager.guid))
    got = client.receive(client.opened(), wanted(PEEK_CURRENT, **names(300))).ptb.old.transfer
    expected = {"Response": RESPONSE, "Admin": ADMIN, "Ordering": ""}
    for stem in STEMS:
        text = getattr(got, f"pp{stem}FormatName").decode("utf-16-le")
        length = len(text)
        assert getattr(got, f"ul{stem}FormatNameLen") == length
        assert getattr(got, f"pul{stem}FormatNameLenProp") == length
        if stem == "Dest":
            assert text.casefold() in (destination + "\0", r"direct=os:host\private$\orders" + "\0")
        else:
            assert text == (expected[stem] + "\0" if expected[stem] else "")


@pytest.mark.rule("MP-194", "MP-195")
def test_names_without_room(remote: DependentWorld) -> None:
    rich(remote)
    client = remote.dependent()
    queue = client.opened()
    short = client.receive(queue, wanted(**names(10)))
    assert short.result == FORMATNAME
    got = short.ptb.old.transfer
    assert (got.pulAdminFormatNameLenProp, got.ulAdminFormatNameLen) == (len(ADMIN) + 1, 10)
    assert got.ppAdminFormatName == wide(ADMIN[:10])
    assert remote.world.bodies() == [b"the body"]
    only = {"pulAdminFormatNameLenProp": 0}
    assert client.receive(queue, wanted(**only)).ptb.old.transfer.pulAdminFormatNameLenProp == len(ADMIN) + 1


@pytest.mark.rule("MP-190")
@pytest.mark.parametrize("size", [100_000, 4_000_000])
def test_a_large_message(size: int) -> None:
    remote = DependentWorld(ndr64=True)
    body = bytes(range(256)) * (size // 256)
    remote.world.send(body)
    client = remote.dependent()
    assert client.body(client.opened(), body=size) == body


@pytest.mark.rule("MP-003")
def test_nothing_is_received_without_dependent_clients() -> None:
    client = DependentWorld(policy=DependentPolicy(enabled=False)).dependent()
    results = client.qmcomm2.call("receive_message_ex", hQMContext=1, ptb=wanted())
    assert results.result == ILLEGAL_OPERATION
    handle = bytes(4) + bytes(range(16))
    results = client.qmcomm2.call("create_cursor_ex", hQueue=handle, pcc=CREATE_REMOTE_CURSOR())
    assert results.result == ILLEGAL_OPERATION

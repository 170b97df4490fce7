"""Dependent clients send (MS-MQMP 3.1.5.1, 3.1.5.2)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.user import parse_provider_info
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.rpc.faults import CONTEXT_MISMATCH, RpcFault
from msmq_fast.rpc.idl.mqmq import OBJECTID, QUEUE_FORMAT
from msmq_fast.rpc.services.dependent.server import DependentPolicy
from msmq_fast.store.completion import Completion
from tests.support.rpc.dependents import NOBODY, ORDERS, Dependent, DependentWorld, named, sent, wanted

INVALID_PARAMETER, ILLEGAL_PROPERTY_VALUE, ILLEGAL_OPERATION = 0xC00E0006, 0xC00E0018, 0xC00E0064
ACCESS_DENIED, ILLEGAL_FORMATNAME, BAD_STUB_DATA = 0xC00E0025, 0xC00E001E, 0x6F7
UNSUPPORTED_FORMATNAME_OPERATION, INSUFFICIENT_RESOURCES = 0xC00E0020, 0xC00E0027
MESSAGE_NOT_AUTHENTICATED, CORRUPTED_SECURITY_DATA = 0xC00E009B, 0xC00E0030
ELSEWHERE = r"DIRECT=OS:OTHER\private$\far"
CONNECTOR = UUID("12121212-3434-5656-7878-909090909090")
INFINITE = 0xFFFFFFFF


@pytest.fixture(params=[False, True], ids=["ndr", "ndr64"])
def remote(request: pytest.FixtureRequest) -> DependentWorld:
    return DependentWorld(ndr64=request.param)


def wide(text: str) -> bytes:
    return text.encode("utf-16-le")


def kept(remote: DependentWorld, name: str = "orders") -> Message:
    """The first message of a queue."""
    queue = remote.world.manager.find(name)
    found: list[Message] = []
    key = next(iter(queue.core.positions.keys()))
    queue.core.peek(key, lambda got, _: found.append(Message.from_packet(got.packet)))  # type: ignore[union-attr]
    remote.world.store.reader.complete()
    return found[0]


def send(remote: DependentWorld, buffer: Any, text: str = ORDERS) -> int:
    """Send to a queue; the result."""
    client = remote.dependent()
    return int(client.send(client.opened(text, 2), buffer).result)


@pytest.mark.rule("MP-170", "MP-171", "MP-177", "MP-220")
def test_a_message_of_defaults(remote: DependentWorld) -> None:
    client = remote.dependent()
    results = client.send(client.opened(access=2), sent(b"hello"))
    manager = remote.world.manager
    message = kept(remote)
    assert results.result == 0
    assert results.pMessageID == OBJECTID(manager.guid, message.message_id)
    assert (message.body, message.label, message.extension) == (b"hello", "", b"")
    assert (message.priority, message.delivery, message.message_class) == (3, Delivery.EXPRESS, 0)
    assert (message.acknowledge, message.journal, message.trace) == (0, 0, False)
    assert (message.app_specific, message.body_type, message.privacy_level) == (0, 0, 0)
    assert (message.hash_algorithm, message.encryption_algorithm) == (0, 0)
    assert (message.correlation_id, message.connector_type) == (bytes(20), None)
    assert (message.admin_queue, message.response_queue, message.security) == (None, None, None)
    assert (message.time_to_reach_queue, message.time_to_be_received) == (INFINITE, INFINITE)
    assert (message.source_machine, message.sent_time) == (manager.guid, manager.ledger.now_s)


@pytest.mark.rule("MP-170", "MP-171", "MP-172", "MP-220")
def test_a_message_with_everything(remote: DependentWorld) -> None:
    buffer = sent(
        b"\0\1\2",
        admin=named(r"DIRECT=OS:HOST\private$\admin"),
        response=named("PUBLIC=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"),
        pClass=int(MessageClass.REPORT),
        ppCorrelationID=bytes(range(20)),
        pPriority=7,
        pDelivery=1,
        pAcknowledge=0x0E,
        pAuditing=3,
        pApplicationTag=0xDEADBEEF,
        ppTitle=wide("a title, and more"),
        ulTitleBufferSizeInWCHARs=17,
        ulAbsoluteTimeToQueue=3600,
        ulRelativeTimeToLive=7200,
        pTrace=1,
        ppMsgExtension=b"extension",
        ulMsgExtensionBufferInBytes=9,
        ppConnectorType=CONNECTOR,
        pulBodyType=8,
        # Members that are ignored.
        pSentTime=1,
        pArrivedTime=2,
        pulVersion=3,
        ppMessageID=OBJECTID(CONNECTOR, 9),
        ppSrcQMID=CONNECTOR,
        ulAuthLevel=5,
        bAuthenticated=1,
        pAuthenticated=3,
    )
    assert send(remote, buffer) == 0
    message = kept(remote)
    assert message.body == b"\0\1\2"
    assert str(message.admin_queue) == r"DIRECT=OS:HOST\private$\admin"
    assert str(message.response_queue) == "PUBLIC=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
    assert message.message_class is MessageClass.REPORT
    assert message.correlation_id == bytes(range(20))
    assert (message.priority, message.delivery) == (7, Delivery.RECOVERABLE)
    assert message.acknowledge == Acknowledge(0x0E)
    assert message.journal == Journal.DEADLETTER | Journal.JOURNAL
    assert (message.app_specific, message.label) == (0xDEADBEEF, "a title, and more")
    assert (message.time_to_reach_queue, message.time_to_be_received) == (3600, 7200)
    assert (message.trace, message.extension, message.connector_type) == (True, b"extension", CONNECTOR)
    assert message.body_type == 8
    assert message.source_machine == remote.world.manager.guid
    assert message.security is None


@pytest.mark.rule("MP-172")
@pytest.mark.parametrize("length", [0, 249, 250, 1000])
def test_a_title_is_cut_off(length: int) -> None:
    remote = DependentWorld()
    title = "x" * length
    assert send(remote, sent(ppTitle=wide(title), ulTitleBufferSizeInWCHARs=length)) == 0
    assert kept(remote).label == title[:249]


@pytest.mark.rule("MP-172")
def test_a_body_in_a_larger_buffer(remote: DependentWorld) -> None:
    assert send(remote, sent(b"hello", ulAllocBodyBufferInBytes=1000)) == 0
    assert kept(remote).body == b"hello"
    assert send(remote, sent(None)) == 0


@pytest.mark.rule("MP-172", "MP-004")
@pytest.mark.parametrize(
    "values",
    [
        {"ulBodyBufferSizeInBytes": 4},
        {"ulBodyBufferSizeInBytes": 6},
        {"ulAllocBodyBufferInBytes": 4},
    ],
)
def test_sizes_that_contradict_the_body(values: dict[str, int]) -> None:
    remote = DependentWorld()
    client = remote.dependent()
    codec = remote.qmcomm2.table.op("send_message_ex")
    queue = client.opened(access=2)
    good = codec.Args(hQueue=queue.phQueue, ptb=sent(b"hello"), pMessageID=None)
    stub = bytearray(codec.encode_request(good, ndr64=False))
    size = (5).to_bytes(4, "little")
    # The sizes stand one behind the other in the flat part of the buffer.
    at = stub.index(size + size)
    place = 0 if "ulBodyBufferSizeInBytes" in values else 4
    stub[at + place] = next(iter(values.values()))
    with pytest.raises(RpcFault) as fault:
        codec.decode_request(bytes(stub), ndr64=False)
    assert fault.value.status == BAD_STUB_DATA


@pytest.mark.rule("MP-170", "MP-179")
@pytest.mark.parametrize(
    ("values", "result"),
    [
        ({"pPriority": 8}, ILLEGAL_PROPERTY_VALUE),
        ({"pDelivery": 2}, ILLEGAL_PROPERTY_VALUE),
        ({"pAcknowledge": 0x10}, ILLEGAL_PROPERTY_VALUE),
        ({"pAuditing": 4}, ILLEGAL_PROPERTY_VALUE),
        ({"pTrace": 2}, ILLEGAL_PROPERTY_VALUE),
        ({"pulPrivLevel": 4}, ILLEGAL_PROPERTY_VALUE),
        ({"pClass": 0x0200}, ILLEGAL_PROPERTY_VALUE),
        ({"admin": QUEUE_FORMAT(3, 0, 0, "nonsense")}, ILLEGAL_FORMATNAME),
        ({"response": QUEUE_FORMAT(0, 0, 0, None)}, ILLEGAL_FORMATNAME),
        ({"response": named(r"DIRECT=OS:HOST\SYSTEM$;JOURNAL")}, UNSUPPORTED_FORMATNAME_OPERATION),
    ],
)
def test_what_is_wrong_sends_nothing(values: dict[str, Any], result: int) -> None:
    remote = DependentWorld()
    assert send(remote, sent(**values)) == result
    assert remote.world.bodies() == []


@pytest.mark.rule("MP-179")
def test_a_buffer_of_something_else(remote: DependentWorld) -> None:
    assert send(remote, wanted()) == INVALID_PARAMETER


@pytest.mark.rule("MP-179")
@pytest.mark.parametrize("access", [1, 0x20])
def test_a_queue_that_is_open_for_reading(access: int) -> None:
    client = DependentWorld().dependent()
    assert client.send(client.opened(access=access), sent()).result == ACCESS_DENIED


@pytest.mark.rule("MP-177")
def test_an_identifier_that_nobody_wants(remote: DependentWorld) -> None:
    client = remote.dependent()
    results = client.send(client.opened(access=2), sent(), identified=False)
    assert (results.result, results.pMessageID) == (0, None)


@pytest.mark.rule("MP-170")
def test_a_recoverable_message_is_kept_before_the_answer(remote: DependentWorld) -> None:
    client = remote.dependent()
    queue = client.opened(access=2)
    call = client.qmcomm2.begin(
        "send_message_ex", hQueue=queue.phQueue, ptb=sent(b"kept", pDelivery=1), pMessageID=None
    )
    assert call.results.result == 0
    remote.world.crash()
    assert remote.world.bodies() == [b"kept"]


@pytest.mark.rule("MP-170")
def test_a_full_queue(remote: DependentWorld) -> None:
    remote.world.create("small", quota_kb=1)
    text = r"DIRECT=OS:HOST\private$\small"
    assert send(remote, sent(bytes(2000)), text) == INSUFFICIENT_RESOURCES
    assert send(remote, sent(b"one"), text) == 0


@pytest.mark.rule("MP-170")
def test_what_leaves_waits_in_an_outgoing_queue(remote: DependentWorld) -> None:
    client = remote.dependent()
    assert client.send(client.opened(ELSEWHERE, 2), sent(b"far")).result == 0
    (outgoing,) = remote.world.manager.outgoing()
    assert outgoing.messages == 1
    assert outgoing.destination == parse_format_name(ELSEWHERE)


@pytest.mark.rule("MP-170")
def test_no_handle_of_this_client(remote: DependentWorld) -> None:
    client, other = remote.dependent(), remote.dependent()
    with pytest.raises(RpcFault) as fault:
        other.send(client.opened(access=2), sent())
    assert fault.value.status == CONTEXT_MISMATCH


@pytest.mark.rule("MP-115")
def test_who_has_no_name_has_no_acknowledgments_sent_elsewhere() -> None:
    remote = DependentWorld()
    remote.world.create("admin")
    far, near = named(r"DIRECT=TCP:192.0.2.99\private$\admin"), named(r"DIRECT=OS:HOST\private$\admin")

    def answered(client: Dependent, admin: Any) -> int:
        return int(client.send(client.opened(access=2), sent(admin=admin, pAcknowledge=1)).result)

    assert answered(remote.dependent(NOBODY), far) == ACCESS_DENIED
    assert answered(remote.dependent(NOBODY), near) == 0
    assert not list(remote.world.manager.outgoing())
    assert answered(remote.dependent(), far) == 0
    allowed = DependentWorld(policy=DependentPolicy(anonymous_outgoing=True))
    assert answered(allowed.dependent(NOBODY), far) == 0


# ---- several queues


def listed(remote: DependentWorld, *names: str) -> str:
    """The format name of a distribution list with these members."""
    guid = UUID("99999999-0000-0000-0000-000000000001")
    events = remote.world.manager.directory.events
    events.provider.resolve_list = lambda _guid, _domain: Completion.of(names)  # type: ignore[method-assign]
    return f"DL={guid}"


@pytest.mark.rule("MP-170", "MP-110")
def test_a_distribution_list_is_sent_to(remote: DependentWorld) -> None:
    remote.world.create("other")
    name = listed(remote, ORDERS, r"DIRECT=OS:HOST\private$\other", ELSEWHERE)
    client = remote.dependent()
    queue = client.opened(name, 2)
    results = client.send(queue, sent(b"for all"))
    assert results.result == 0
    assert remote.world.bodies() == remote.world.bodies("other") == [b"for all"]
    (outgoing,) = remote.world.manager.outgoing()
    assert outgoing.messages == 1
    assert client.receive(queue).result == ACCESS_DENIED
    assert client.call("purge_queue", hQueue=queue.phQueue).result == ACCESS_DENIED
    assert client.call("close_handle", phQueue=queue.phQueue).result == 0
    assert not remote.world.manager.find("other").descriptors


@pytest.mark.rule("MP-176")
def test_a_distribution_list_in_a_transaction() -> None:
    remote = DependentWorld(transactional=True)
    remote.world.create("other", transactional=True)
    name = listed(remote, ORDERS, r"DIRECT=OS:HOST\private$\other")
    client = remote.dependent()
    uow = bytes(range(16))
    handle = client.enlist(uow).phIntXact
    assert client.send(client.opened(name, 2), sent(b"for all", pUow=uow)).result == 0
    assert remote.world.bodies() == []
    client.call("commit_transaction", phIntXact=handle)
    assert remote.world.bodies() == remote.world.bodies("other") == [b"for all"]


@pytest.mark.rule("MP-115")
def test_a_distribution_list_that_leads_elsewhere(remote: DependentWorld) -> None:
    name = listed(remote, ORDERS, ELSEWHERE)
    assert remote.dependent(NOBODY).open(name, 2).result == ACCESS_DENIED
    assert not list(remote.world.manager.outgoing())
    assert not remote.world.manager.find("orders").descriptors


# ---- security


@pytest.mark.rule("MP-173")
def test_nothing_is_encrypted_for_direct_names(remote: DependentWorld) -> None:
    for text in (ORDERS, ELSEWHERE):
        assert send(remote, sent(pulPrivLevel=1), text) == UNSUPPORTED_FORMATNAME_OPERATION
        assert send(remote, sent(pulPrivLevel=0), text) == 0
    far = "PRIVATE=11111111-2222-3333-4444-555555555555\\1"
    for level, stands in ((1, 1), (2, 3), (3, 3)):
        client = remote.dependent()
        assert client.send(client.opened(far, 2), sent(pulPrivLevel=level, pulEncryptAlg=0x6602)).result == 0
        queue = client.opened(far, 0x81)
        got = client.receive(queue, wanted(pulPrivLevel=0, pulEncryptAlg=0))
        assert (got.ptb.old.pulPrivLevel, got.ptb.old.pulEncryptAlg) == (stands, 0x6602)


@pytest.mark.rule("MP-174")
@pytest.mark.parametrize(
    ("values", "result"),
    [
        ({"ppSenderID": b"sid.", "uSenderIDLen": 4}, INVALID_PARAMETER),
        ({"ppSignature": b"s", "ulSignatureSize": 1}, INVALID_PARAMETER),
        ({"ppSignature": b"s", "ulSignatureSize": 1, "fDefaultProvider": 1}, INVALID_PARAMETER),
        (
            {"ppSignature": b"s", "ulSignatureSize": 1, "fDefaultProvider": 1, "pulProvType": 24},
            INVALID_PARAMETER,
        ),
        ({"ppSenderID": b"sid.", "uSenderIDLen": 4, "pulSenderIDType": 4}, ILLEGAL_PROPERTY_VALUE),
        (
            {"ppSignature": b"s", "ulSignatureSize": 1, "fDefaultProvider": 1, "pulProvType": 1}
            | {"pulAuthProvNameLenProp": 2},
            INVALID_PARAMETER,
        ),
        ({"ppSenderCert": bytes(0x10000), "ulSenderCertLen": 0x10000}, INVALID_PARAMETER),
    ],
)
def test_what_contradicts_itself(values: dict[str, Any], result: int) -> None:
    remote = DependentWorld()
    assert send(remote, sent(**values), ELSEWHERE) == result


def leaving(remote: DependentWorld, **values: Any) -> Message:
    """What is sent to another computer, as it leaves."""
    assert send(remote, sent(**values), ELSEWHERE) == 0
    (queue,) = remote.world.manager.outgoing()
    found: list[Message] = []
    key = next(iter(queue.core.positions.keys()))
    queue.core.peek(key, lambda got, _: found.append(Message.from_packet(got.packet)))  # type: ignore[union-attr]
    return found[0]


def test_a_sender_identifier_of_no_type_is_none(remote: DependentWorld) -> None:
    values = {"ppSenderID": b"nobody..", "uSenderIDLen": 8, "pulSenderIDType": 0}
    assert leaving(remote, **values).security is None
    message = leaving(DependentWorld(), **values, ppSenderCert=b"certificate", ulSenderCertLen=11)
    assert message.security is not None
    assert (message.security.sender_id_type, message.security.sender_id) == (0, b"")


@pytest.mark.rule("MP-174", "MP-220")
def test_a_signature_is_passed_on(remote: DependentWorld) -> None:
    name = "Microsoft Base Cryptographic Provider v1.0"
    message = leaving(
        remote,
        ppSenderID=b"\1\1\0\0\0\0\0\1\0\0\0\0",
        uSenderIDLen=12,
        pulSenderIDType=1,
        ppSignature=b"signature",
        ulSignatureSize=9,
        ppSenderCert=b"certificate",
        ulSenderCertLen=11,
        ppwcsProvName=wide(name + "\0"),
        ulProvNameLen=len(name) + 1,
        pulProvType=1,
        pulHashAlg=0x8003,
    )
    security = message.security
    assert security is not None
    assert (security.sender_id_type, security.sender_id) == (1, b"\1\1\0\0\0\0\0\1\0\0\0\0")
    assert (security.signature, security.certificate) == (b"signature", b"certificate")
    assert (security.default_provider, security.authentication_level) == (False, 0)
    assert parse_provider_info(security.provider_info) == (1, name)
    assert message.hash_algorithm == 0x8003


@pytest.mark.rule("MP-175")
@pytest.mark.parametrize(
    ("name", "both", "expected"),
    [(0, 6, b"second"), (5, 11, b"second"), (0, 11, b"firstsecond"), (0, None, b"firstsecond")],
)
def test_of_two_signatures_the_second_one_counts(
    remote: DependentWorld, name: int, both: int | None, expected: bytes
) -> None:
    message = leaving(
        remote,
        ppSignature=b"first" + b"second",
        ulSignatureSize=11,
        fDefaultProvider=1,
        pulProvType=1,
        ulProvNameLen=name,
        pulAuthProvNameLenProp=both,
    )
    assert message.security is not None
    assert (message.security.signature, message.security.default_provider) == (expected, True)


@pytest.mark.rule("MP-178")
def test_a_protected_message_for_a_queue_here_is_opened_as_one_that_arrives(remote: DependentWorld) -> None:
    remote.world.create("mine")
    manager = remote.world.manager
    private = f"PRIVATE={manager.guid}\\{manager.find('mine').private_number:x}"
    encrypted = {"bEncrypted": 1, "ppSymmKeys": b"key!", "ulSymmKeysSize": 4, "pulPrivLevel": 1}
    assert send(remote, sent(**encrypted), private) == 0xC00E006A
    seen: list[tuple[str, bytes]] = []

    def arrival(queue: Queue, packet: bytes) -> bytes | MessageClass:
        message = Message.from_packet(packet)
        seen.append((queue.name, message.security.encryption_key if message.security else b""))
        if message.body == b"bad":
            return MessageClass.NACK_BAD_ENCRYPTION
        message.body, message.security = b"opened", None
        return message.to_packet()

    manager.incoming.register(arrival=arrival)
    assert send(remote, sent(**encrypted), private) == 0
    assert seen == [(r"HOST\private$\mine", b"key!")]
    assert remote.world.bodies("mine") == [b"opened"]
    assert send(remote, sent(b"bad", **encrypted), private) == CORRUPTED_SECURITY_DATA
    assert send(remote, sent(b"plain"), private) == 0
    assert remote.world.bodies("mine") == [b"opened", b"plain"]


@pytest.mark.rule("MP-178")
def test_a_queue_that_takes_signed_messages_only(remote: DependentWorld) -> None:
    remote.world.create("signed", authenticated=True)
    text = r"DIRECT=OS:HOST\private$\signed"
    signed = {"ppSignature": b"s", "ulSignatureSize": 1, "fDefaultProvider": 1, "pulProvType": 1}
    assert send(remote, sent(), text) == MESSAGE_NOT_AUTHENTICATED
    remote.world.manager.incoming.register(arrival=lambda queue, packet: MessageClass.NACK_BAD_SIGNATURE)
    assert send(remote, sent(**signed), text) == MESSAGE_NOT_AUTHENTICATED
    remote.world.manager.incoming.register(arrival=lambda queue, packet: packet)
    assert send(remote, sent(**signed), text) == 0


# ---- the other operation


@pytest.mark.rule("MP-160")
def test_the_other_way_to_send_is_not_used(remote: DependentWorld) -> None:
    client = remote.dependent()
    results = client.qmcomm2.call(
        "send_message_internal_ex", pQueueFormat=named(ORDERS), ptb=sent(), pMessageID=None
    )
    assert results.result == ILLEGAL_OPERATION
    assert remote.world.bodies() == []


@pytest.mark.rule("MP-003")
def test_nothing_is_sent_without_dependent_clients() -> None:
    remote = DependentWorld(policy=DependentPolicy(enabled=False))
    client = remote.dependent()
    results = client.qmcomm2.call(
        "send_message_ex", hQueue=bytes(4) + bytes(range(16)), ptb=sent(), pMessageID=None
    )
    assert results.result == ILLEGAL_OPERATION

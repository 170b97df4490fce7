"""The whole messages that MC-MQSRM prints in sections 1 and 4, sent today to a server that is a process."""

from __future__ import annotations

import base64
import contextlib
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from msmq_fast.client import Message, sync
from tests.support.processes.servers import Server
from tests.support.srmp.independent import Sink, post
from tests.support.srmp.partner import EXAMPLES, Program, restamped
from tests.support.srmp.serving import serving

CONFIG = """
[server]
name = "MACHINE2"
aliases = ["machine1"]

[srmp]
public_host = "machine2"

[[queues]]
name = "tsimpleq"
transactional = true
"""
QUEUES = ("simpleq", "receipts", "deliverydone", "Q1")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    declared = [f'[[queues]]\nname = "{name}"\n' for name in QUEUES]
    with serving(CONFIG + "".join(declared)) as running:
        yield running


@pytest.fixture(scope="module")
def program(server: Server) -> Iterator[Program]:
    with contextlib.closing(Program(server)) as made:
        yield made


@pytest.fixture(autouse=True)
def _empty(program: Program) -> None:
    for name in (*QUEUES, "tsimpleq"):
        program.messages(name)


def send(server: Server, raw: bytes) -> int:
    return post(server.port("http"), raw)[0]


def body_of(name: str) -> bytes:
    """As the example has it."""
    content = EXAMPLES[name].split(b"Content-Id: ")[1].split(b"\r\n\r\n", 1)[1]
    return content[: content.rindex(b"--MSMQ - SOAP boundary")]


def check(message: dict[str, Any], **expected: object) -> None:
    assert {key: message[key] for key in expected} == expected


@pytest.mark.rule("SR-001", "SR-040")
def test_4_1_without_msmq(server: Server, program: Program) -> None:
    raw = restamped("simple-no-msmq")
    assert [send(server, raw), send(server, raw)] == [200, 200]
    messages = program.messages("simpleq")
    assert len(messages) == 2, "without Msmq there is no identifier to know it again by"
    for message in messages:
        check(
            message,
            label="mqsender label",
            body_b64=base64.b64encode(b"First Message").decode(),
            priority=3,
            **{"class": 0},
            delivery="express",
            transactional=False,
            correlation_id="00" * 20,
            authenticated=False,
        )


def test_4_2_with_msmq(server: Server, program: Program) -> None:
    raw = restamped("simple-with-msmq")
    assert [send(server, raw), send(server, raw)] == [200, 200]
    messages = program.messages("simpleq")
    assert len(messages) == 1, "the second is a duplicate"
    check(
        messages[0],
        label="",
        body_b64=base64.b64encode(body_of("simple-with-msmq")).decode(),
        message_id="{caf195ea-615c-4264-ae08-11a4e60194c0}\\20503",
        source_machine="caf195ea-615c-4264-ae08-11a4e60194c0",
        priority=3,
        body_type=0,
        app_specific=0,
        destination_queue="DIRECT=http://machine2/msmq/private$/simpleQ",
    )
    assert abs(messages[0]["sent_time"] - time.time()) < 60


def test_4_3_both_receipts(server: Server, program: Program) -> None:
    """Machine 1 is ours too: its receipts go into queues here."""
    assert send(server, restamped("both-receipts-requested")) == 200
    delivery = program.messages("receipts", 10)[0]
    check(delivery, label="", priority=3, correlation_id="00" * 16 + "01000000", **{"class": 2})
    assert program.messages("deliverydone") == []
    message = program.messages("simpleq")[0]
    check(
        message,
        label="",
        response_queue="DIRECT=http://machine1/MSMQ/private$/Q1",
        admin_queue="DIRECT=http://machine1/MSMQ/private$/receipts",
        body_size=45,
    )
    commitment = program.messages("deliverydone", 10)[0]
    check(commitment, correlation_id="00" * 16 + "01000000", **{"class": 0x4000})


def test_4_3_what_is_answered(server: Server, program: Program) -> None:
    """The status line and the headers that the document prints, and no body."""
    status, headers = post(server.port("http"), restamped("both-receipts-requested"))
    assert status == 200
    names = {header.partition(b":")[0].lower() for header in headers}
    printed = EXAMPLES["both-receipts-requested-response"].split(b"\r\n")
    assert printed[0] == b"HTTP/1.1 200 OK"
    assert {line.partition(b":")[0].lower() for line in printed[1:] if line} <= names


_RECEIPT = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" xmlns="http://schemas.xmlsoap.org/srmp/">'
    '<se:Header><path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1"><action>{action}</action>'
    "<to>{to}</to><id>{id}</id><rev><via>{via}</via></rev></path>"
    '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt><sentAt>{sent}</sentAt>'
    '</properties>{receipt}<Msmq xmlns="msmq.namespace.xml"><Class>{kind}</Class>'
    "<Priority>{priority}</Priority>{correlation}<BodyType>0</BodyType>{hashing}<SourceQmGuid>{guid}</SourceQmGuid><TTrq>{ttrq}</TTrq></Msmq>"
    "</se:Header><se:Body></se:Body></se:Envelope>"
)


def test_4_3_receipts_as_they_are_printed(server: Server, program: Program) -> None:
    """Byte for byte, but for names and dates, and where the text of 3.1.7.2.4 says otherwise than the
    examples: the place of rev, and values of nought.
    """
    with Sink() as sink:
        replace = {
            "http://machine1/MSMQ/private$/receipts": sink.url("private$/receipts"),
            "http://machine1/MSMQ/private$/deliverydone": sink.url("private$/deliverydone"),
        }
        assert send(server, restamped("both-receipts-requested", replace=replace)) == 200
        delivery = sink.sent(1)[0]
        assert len(program.messages("simpleq")) == 1
        commitment = sink.sent(2)[1]
    guid = server.ready["guid"]
    for sent, kind, queue, receipt in (
        (
            delivery,
            2,
            "receipts",
            "<deliveryReceipt><receivedAt>{at}</receivedAt><id>uuid:1@{null}</id></deliveryReceipt>",
        ),
        (
            commitment,
            16384,
            "deliverydone",
            "<commitmentReceipt><decidedAt>{at}</decidedAt><decision>positive</decision>"
            "<id>uuid:1@{null}</id></commitmentReceipt>",
        ),
    ):
        fields = sent.fields
        at = fields.get("deliveryReceipt/receivedAt") or fields["commitmentReceipt/decidedAt"]
        expected = _RECEIPT.format(
            action="MSMQ:",
            to=sink.url(f"private$/{queue}"),
            id=fields["path/id"],
            via="http://machine2/msmq/private$/simpleq",
            sent=fields["properties/sentAt"],
            receipt=receipt.format(at=at, null="00000000-0000-0000-0000-000000000000"),
            kind=kind,
            priority=3,
            correlation="<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation>",
            hashing=_optional(fields, "HashAlgorithm"),
            guid=guid,
            ttrq=fields["Msmq/TTrq"],
        )
        assert sent.envelope.decode() == expected
        assert fields["path/id"].endswith(guid)
        assert sent.request.target == f"/msmq/private$/{queue}"
        assert sent.request.header("Content-Type") == "text/xml"


def _optional(fields: dict[str, str], name: str) -> str:
    value = fields.get(f"Msmq/{name}")
    return "" if value is None else f"<{name}>{value}</{name}>"


@pytest.mark.parametrize(
    ("name", "queue", "kind", "label"),
    [
        ("delivery-receipt", "receipts", 2, ""),
        ("commitment-receipt-positive", "receipts", 0x4000, ""),
        ("stream-receipt-1", "receipts", 255, "QM Ordering Ack"),
        ("stream-receipt-2", "receipts", 255, "QM Ordering Ack"),
        ("stream-receipt-3", "receipts", 255, "QM Ordering Ack"),
    ],
)
def test_receipts_that_arrive(
    server: Server, program: Program, name: str, queue: str, kind: int, label: str
) -> None:
    """4.3, 4.4: into the queue that they are for, its query left off where no queue has such a name."""
    assert send(server, restamped(name)) == 200
    message = program.messages(queue)[0]
    check(message, label=label, body_size=0, **{"class": kind})


def test_4_4_a_stream(server: Server, program: Program) -> None:
    with Sink() as sink:
        url = sink.url("private$/receipts")
        replace = {"http://machine1/MSMQ/private$/receipts?SenderStream=XRntV": f"{url}?SenderStream=XRntV"}
        assert send(server, restamped("stream-message-1", replace=replace)) == 200
        assert send(server, restamped("stream-message-3")) == 200, "not its turn: not kept, and sent again"
        assert send(server, restamped("stream-message-2")) == 200
        assert send(server, restamped("stream-message-2")) == 200, "a repetition"
        assert send(server, restamped("stream-message-3")) == 200
        last = {}
        deadline = time.monotonic() + 12
        while last.get("streamReceipt/lastOrdinal") != "3" and time.monotonic() < deadline:
            sent = sink.sent(1)[-1]
            last = sent.fields
            time.sleep(0.05)
    messages = program.messages("tsimpleq")
    assert [base64.b64decode(message["body_b64"]) for message in messages] == [
        b"First Message",
        b"Message 0",
        b"Last Message",
    ]
    for message in messages:
        check(message, label="mqsender label", priority=0, transactional=True, delivery="recoverable")
    assert sent.envelope.decode() == _RECEIPT.format(
        action="MSMQ:QM Ordering Ack",
        to=f"{url}?SenderStream=XRntV",
        id=last["path/id"],
        via="http://machine2/msmq/private$/tsimpleq",
        sent=last["properties/sentAt"],
        receipt="<streamReceipt><streamId>uid:2744e4e1-2b48-43e8-b441-42745f280d53\\4839986701558349830</streamId>"
        "<lastOrdinal>3</lastOrdinal></streamReceipt>",
        kind=255,
        priority=0,
        correlation=_optional(last, "Correlation"),
        hashing=_optional(last, "HashAlgorithm"),
        guid=server.ready["guid"],
        ttrq=last["Msmq/TTrq"],
    )


def test_as_printed_in_2007_they_are_too_late(server: Server, program: Program) -> None:
    """A-08: answered 200, and not there."""
    for name in ("simple-no-msmq", "simple-with-msmq", "both-receipts-requested", "stream-message-1"):
        assert send(server, EXAMPLES[name]) == 200
    assert program.messages("simpleq") == []
    assert program.messages("tsimpleq") == []


def test_the_multicast_message_does_not_come_by_http(server: Server) -> None:
    raw = restamped("pgm-multicast-message")
    assert send(server, raw) == 404
    assert send(server, raw.replace(b"POST 234.1.1.1:8001 ", b"POST /msmq/q ")) == 400


@pytest.mark.rule("SR-039", "SR-202")
def test_4_2_as_we_send_it(server: Server, program: Program) -> None:
    """The request of 4.2, byte for byte but for names, dates and the boundary; values of nought are left out,
    and so is the hash algorithm of a message that is not signed.
    """
    body = body_of("simple-with-msmq")
    with Sink() as sink:
        queue = program.connection.open(f"DIRECT={sink.url('private$/simpleQ')}", sync.Access.SEND)
        queue.send(Message(body=body))
        (sent,) = sink.sent(1)
    guid, fields = server.ready["guid"], sent.fields
    example = restamped(
        "simple-with-msmq",
        replace={
            "http://machine2/msmq/private$/simpleQ": sink.url("private$/simpleQ"),
            "uuid:20503@caf195ea-615c-4264-ae08-11a4e60194c0": fields["path/id"],
            "caf195ea-615c-4264-ae08-11a4e60194c0": guid,
            "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation><App>0</App>": "",
            "<HashAlgorithm>32772</HashAlgorithm>": "",
        },
    )
    example = example.replace(b"body@caf195ea-615c-4264-ae08-11a4e60194c0", f"body@{guid}".encode())
    example = example.replace(b"/msmq/private$/simpleq HTTP", b"/msmq/private$/simpleQ HTTP")
    example = example.replace(b"Host: machine2", f"Host: 127.0.0.1:{sink.port}".encode())
    (boundary,) = re.findall('boundary="(.*)"', sent.request.header("Content-Type"))
    assert re.fullmatch(r"MSMQ - SOAP boundary, \d{1,5}", boundary)
    known = _undated(_without_lengths(example.replace(b"MSMQ - SOAP boundary, 26500", boundary.encode())))
    assert _undated(_without_lengths(sent.request.raw)) == known


def _undated(raw: bytes) -> bytes:
    return re.sub(rb"<(sentAt|TTrq)>\d{8}T\d{6}<", rb"<\1><", raw)


def _without_lengths(raw: bytes) -> bytes:
    """The independent reader has looked at them."""
    return re.sub(rb"Content-Length: \d+", b"Content-Length: n", raw)

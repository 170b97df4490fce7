"""Receipts for messages that came by SRMP: when, to whom, what they say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msmq_fast.packet.acks import FinalAck
from msmq_fast.packet.message import DEFAULT_TIME_TO_REACH_QUEUE, Message
from msmq_fast.protocol.classes import MessageClass, is_negative
from msmq_fast.qm.access import Access
from msmq_fast.qm.queues.queue import Role
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.store.schema import AckRequest
from tests.srmp.receiving import name, receive
from tests.support.clocks import WALL
from tests.support.srmp.station import (
    ADMIN,
    SENDER,
    SINK,
    Station,
    correlation,
    date,
    envelope,
    services,
    stream,
)

HERE = Station.base + "in"
TO = Station.base + "tx"
NUMBER = 0x432B1643_00000006
OTHER = "http://sender.example/msmq/private$/commitments"
ORIGINAL = SENDER.bytes_le + (7).to_bytes(4, "little")
BOTH = services(durable=True, commitment=OTHER, positive=True, negative=True)


# ---- what removes a message


def purge(station: Station, queue: str) -> None:
    station.finish(station.manager.purge(station.manager.find(name(queue))))


def delete(station: Station, queue: str) -> None:
    station.finish(station.manager.delete_queue(name(queue)))


def expire(station: Station, queue: str) -> None:
    station.advance(3601)


REMOVALS = [
    (receive, MessageClass.ACK_RECEIVE),
    (purge, MessageClass.NACK_Q_PURGED),
    (delete, MessageClass.NACK_Q_DELETED),
    (expire, MessageClass.NACK_RECEIVE_TIMEOUT),
]


def limited(*, to: str, headers: str, flags: str = "") -> str:
    """A message with an hour until it has to be received."""
    return envelope(to, headers=headers, expires=WALL + 3600, flags=flags)


# ---- delivery


@pytest.mark.rule("SR-065", "SR-077", "SR-161", "SR-046")
@pytest.mark.parametrize("durable", [True, False])
def test_a_delivery_receipt(station: Station, durable: bool) -> None:
    asked = services(durable=durable, delivery=ADMIN)
    assert station.post(envelope(HERE, headers=asked, label="MSMQ:the label", priority=6), b"x") == 200
    (receipt,) = station.sent()
    assert str(receipt.destination) == f"DIRECT={ADMIN};at=192.0.2.1"
    assert (receipt.message_class, receipt.correlation_id) == (MessageClass.ACK_REACH_QUEUE, ORIGINAL)
    assert (receipt.label, receipt.priority, receipt.sent_time) == ("the label", 6, WALL)
    assert str(receipt.response_queue) == f"DIRECT={HERE}"
    assert receipt.source_machine == station.manager.guid
    assert receipt.time_to_reach_queue == DEFAULT_TIME_TO_REACH_QUEUE
    assert (receipt.body, int(receipt.acknowledge), int(receipt.journal)) == (b"", 0, 0)
    assert not receipt.transactional


def test_receipts_have_identifiers_of_their_own(station: Station) -> None:
    for number in range(3):
        station.post(envelope(HERE, headers=services(delivery=ADMIN), ordinal=number), b"x")
    assert len({receipt.message_id for receipt in station.sent()}) == 3


@pytest.mark.rule("SR-063")
def test_a_delivery_receipt_waits_for_the_disk(station: Station) -> None:
    answer = station.begin(envelope(HERE, headers=services(durable=True, delivery=ADMIN)), b"x")
    station.writer.submit()
    assert not answer.done
    assert sum(queue.messages for queue in station.manager.outgoing()) == 0
    station.run()
    assert len(station.sent()) == 1


def test_what_was_not_stored_was_not_delivered(station: Station) -> None:
    answer = station.begin(envelope(HERE, headers=services(durable=True, delivery=ADMIN)), b"x")
    station.writer.submit()
    station.writer.complete_all(28)
    station.run()
    assert answer.result() == 500
    assert station.sent() == []


def test_a_delivery_receipt_survives_a_crash(station: Station) -> None:
    station.post(envelope(HERE, headers=services(durable=True, delivery=ADMIN)), b"x")
    station.crash()
    assert [receipt.message_class for receipt in station.sent(ADMIN)] == [MessageClass.ACK_REACH_QUEUE]


def test_a_repetition_is_not_acknowledged_again(station: Station) -> None:
    for _ in range(2):
        station.post(envelope(HERE, headers=services(delivery=ADMIN)), b"x")
    assert len(station.sent()) == 1


def test_nothing_is_said_of_refused_messages(station: Station) -> None:
    asked = services(durable=True, delivery=ADMIN, commitment=ADMIN, positive=True, negative=True)
    station.make("small", quota_kb=1)
    assert station.post(envelope(Station.base + "small", headers=asked), bytes(4000)) == 400
    assert station.sent() == []


def test_without_msmq_the_original_has_no_identifier(station: Station) -> None:
    station.post(envelope(HERE, headers=services(delivery=ADMIN), msmq=False, label="Generic"), b"x")
    (receipt,) = station.sent()
    assert (receipt.label, receipt.correlation_id) == ("", bytes(16) + b"\x01\0\0\0")


def test_a_receipt_for_this_computer_is_put_into_its_queue(station: Station) -> None:
    admin = station.make("admin")
    station.post(envelope(HERE, headers=services(delivery=Station.base + "admin")), b"x")
    station.run()
    assert [message.message_class for message in station.messages(admin)] == [MessageClass.ACK_REACH_QUEUE]
    assert station.sent() == []


def test_a_receipt_for_a_queue_that_is_not_there_is_lost(station: Station) -> None:
    before = station.manager.ack_policy.discarded
    assert station.post(envelope(HERE, headers=services(delivery=Station.base + "nosuch")), b"x") == 200
    assert station.taken() == [b"x"]
    assert station.manager.ack_policy.discarded == before + 1


# ---- commitment


@pytest.mark.rule("SR-078", "SR-070", "SR-212", "SR-213", "SR-046")
@pytest.mark.parametrize(("remove", "reason"), REMOVALS)
def test_a_commitment_receipt(
    station: Station, remove: Callable[[Station, str], None], reason: MessageClass
) -> None:
    assert station.post(limited(to=HERE, headers=BOTH), b"x") == 200
    assert station.sent() == []
    station.crash()  # everything that it says is read from what is stored
    remove(station, "in")
    (receipt,) = station.sent()
    assert str(receipt.destination) == f"DIRECT={OTHER};at=192.0.2.1"
    assert (receipt.message_class, receipt.correlation_id) == (reason, ORIGINAL)
    assert (receipt.label, receipt.body) == ("a label", b"")
    assert receipt.sent_time == WALL + 3600 * (remove is expire)
    station.advance(10)
    assert len(station.sent()) == 1, "one for each message"


@pytest.mark.rule("SR-212")
def test_a_rejected_message_has_its_negative_receipts(station: Station) -> None:
    station.post(envelope(TO, headers=BOTH + stream(NUMBER, 1), flags="<DeadLetter/>"), b"x")
    transaction = station.manager.transactions.begin("")
    queue = TransactedQueue(station.reader(name("tx")), transaction)
    queue.reject(station.finish(queue.receive(0).completion).lookup_id)
    station.finish(transaction.commit())
    assert [each.message_class for each in station.sent()] == [MessageClass.NACK_RECEIVE_REJECTED] * 2
    assert len(finals(station)) == 1


@pytest.mark.rule("SR-067", "SR-068", "SR-069", "SR-070")
@pytest.mark.parametrize(
    ("positive", "negative"), [(True, False), (False, True), (False, False), (True, True)]
)
@pytest.mark.parametrize(("remove", "reason"), REMOVALS)
@pytest.mark.parametrize("durable", [False, True])
def test_only_what_was_asked_for(
    station: Station,
    durable: bool,
    positive: bool,
    negative: bool,
    remove: Callable[[Station, str], None],
    reason: MessageClass,
) -> None:
    asked = services(durable=durable, commitment=OTHER, positive=positive, negative=negative)
    station.post(limited(to=HERE, headers=asked), b"x")
    remove(station, "in")
    wanted = negative if is_negative(reason) else positive
    assert [receipt.message_class for receipt in station.sent()] == [reason] * wanted


@pytest.mark.rule("SR-069")
def test_without_either_there_is_none(station: Station) -> None:
    for number in range(2):
        station.post(envelope(HERE, headers=services(commitment=OTHER), ordinal=number), b"x")
    receive(station, "in")
    purge(station, "in")
    assert station.sent() == []


@pytest.mark.rule("SR-069")
def test_without_either_there_is_none_of_a_message_that_comes_too_late(station: Station) -> None:
    late = envelope(HERE, headers=services(commitment=OTHER), now=1_600_000_000, flags="<DeadLetter/>")
    station.post(late, b"x")
    assert station.dead() == [b"x"]
    assert station.sent() == []


@pytest.mark.rule("SR-161", "SR-213")
def test_both_kinds_go_where_each_was_asked_for(station: Station) -> None:
    """A-43, A-44."""
    asked = services(delivery=ADMIN, commitment=OTHER, positive=True)
    station.post(envelope(HERE, headers=asked), b"x")
    receive(station, "in")
    assert [receipt.message_class for receipt in station.sent(ADMIN)] == [MessageClass.ACK_REACH_QUEUE]
    assert [receipt.message_class for receipt in station.sent(OTHER)] == [MessageClass.ACK_RECEIVE]


def test_a_message_that_is_peeked_is_not_decided(station: Station) -> None:
    station.post(envelope(HERE, headers=BOTH), b"x")
    handle = station.manager.open(name("in"), Access.RECEIVE)
    station.finish(handle.receive(0, peek=True).completion)
    handle.close()
    assert station.sent() == []


def test_the_programs_own_view_has_the_delivery_url(station: Station) -> None:
    station.post(envelope(HERE, headers=services(delivery=ADMIN, commitment=OTHER, positive=True)), b"x")
    (message,) = station.messages(station.manager.find(name("in")))
    assert str(message.admin_queue) == f"DIRECT={ADMIN}"


@pytest.mark.rule("DM-203")
def test_only_what_happens_in_the_destination_queue_counts(station: Station) -> None:
    """Not what becomes of copies in a journal, or of dead letters."""
    station.make("kept", journaling=True)
    asked = services(durable=True, commitment=OTHER, positive=True, negative=True)
    station.post(limited(to=f"{Station.base}kept", headers=asked), b"1")
    receive(station, "kept")
    station.post(limited(to=HERE, headers=asked, flags="<DeadLetter/>").replace(":7@", ":8@"), b"2")
    purge(station, "in")
    expected = [MessageClass.ACK_RECEIVE, MessageClass.NACK_Q_PURGED]
    assert [receipt.message_class for receipt in station.sent()] == expected
    own = f"DIRECT=OS:{station.manager.name}\\"
    for copies in (f"{own}private$\\kept;JOURNAL", f"{own}SYSTEM$;DEADLETTER"):
        assert len(station.messages(station.manager.find(copies))) == 1
        handle = station.manager.open(copies, Access.RECEIVE)
        station.finish(handle.receive(0).completion)
        handle.close()
    assert [receipt.message_class for receipt in station.sent()] == expected


@pytest.mark.rule("SR-211")
@pytest.mark.parametrize(("role", "answered"), [(Role.OUTGOING, False), (Role.DESTINATION, True)])
def test_what_leaves_a_queue_on_the_way_has_no_receipt(station: Station, role: Role, answered: bool) -> None:
    """Also if a connector took it: only a queue of programs is its destination."""
    asked = services(durable=True, commitment=ADMIN, positive=True, negative=True)
    station.post(envelope(HERE, headers=asked), b"x")
    (message,) = station.manager.find("in").core.take(1, 1 << 20, station.manager.ledger.new_owner())
    station.writer.begin_unit()
    reason, told, kept = station.manager.ack_policy(
        role, message.packet, MessageClass.ACK_RECEIVE, AckRequest.ACK_POSITIVE_RECEIVE, 0
    )
    station.writer.keep_unit()
    station.run()
    assert (reason, told, kept) == (MessageClass.ACK_RECEIVE, answered, None)
    assert len(station.sent(ADMIN)) == answered


# ---- dead letters of this computer


@pytest.mark.rule("SR-214", "DM-203")
@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("remove", [purge, expire])
def test_a_dead_letter_stays_here(
    station: Station, durable: bool, remove: Callable[[Station, str], None]
) -> None:
    asked = services(durable=durable) if durable else ""
    station.post(limited(to=HERE, headers=asked, flags="<DeadLetter/>"), b"dead")
    remove(station, "in")
    station.run()
    dead = station.manager.find(f"DIRECT=OS:{station.manager.name}\\SYSTEM$;DEADLETTER")
    assert [message.body for message in station.messages(dead)] == [b"dead"]


# ---- final stream receipts


@pytest.mark.rule("SR-215", "DM-203")
@pytest.mark.parametrize(("remove", "reason"), REMOVALS)
def test_a_final_stream_receipt(
    station: Station, remove: Callable[[Station, str], None], reason: MessageClass
) -> None:
    station.post(limited(to=TO, headers=stream(NUMBER, 1)), b"1")
    station.post(
        envelope(TO, headers=stream(NUMBER, 2), ordinal=8, expires=WALL + 3600, flags="<DeadLetter/>"), b"2"
    )
    if remove is receive:
        receive(station, "tx")
    station.advance(1)
    station.crash()
    remove(station, "tx")
    station.run()
    (receipt,) = finals(station)
    ack = FinalAck.decode_body(receipt.body, receipt.message_class)
    assert str(receipt.destination) == f"DIRECT={SINK};at=192.0.2.1", "of message 1, also after a restart"
    assert (ack.source, ack.sequence_timestamp << 32 | ack.sequence_ordinal) == (SENDER, NUMBER)
    assert (ack.sequence_number, ack.message_id, ack.message_class) == (2, 8, reason)
    assert (receipt.label, receipt.correlation_id) == (
        "QM Ordering Ack",
        SENDER.bytes_le + (8).to_bytes(4, "little"),
    )
    dead = station.manager.find(f"DIRECT=OS:{station.manager.name}\\SYSTEM$;DEADXACT")
    assert station.messages(dead) == [], "that is for its sender to do"


def finals(station: Station) -> list[Message]:
    return [each for each in station.sent() if each.body and each.message_class != MessageClass.ORDER_ACK]


@pytest.mark.rule("SR-123")
@pytest.mark.parametrize("flags", ["", "<Journal/>"])
def test_without_a_wish_for_a_dead_letter_there_is_no_final_receipt(station: Station, flags: str) -> None:
    station.post(envelope(TO, headers=stream(NUMBER, 1), flags=flags), b"1")
    receive(station, "tx")
    assert finals(station) == []


def test_a_final_receipt_is_kept(station: Station) -> None:
    """Nobody asks for it again: it must not be lost between the removal and the first attempt to send it."""
    station.post(envelope(TO, headers=stream(NUMBER, 1), flags="<DeadLetter/>"), b"1")
    station.advance(1)
    receive(station, "tx")
    station.crash()
    assert len(finals(station)) == 1


def test_final_receipts_of_a_stream_that_was_followed_by_others(station: Station) -> None:
    first = "http://sender.example/msmq/first"
    station.post(envelope(TO, headers=stream(NUMBER, 1, to=first), flags="<DeadLetter/>"), b"1")
    for number in (1, 2):
        station.post(envelope(TO, headers=stream(NUMBER + number, 1), flags="<DeadLetter/>"), b"x")
    station.advance(1)
    station.crash()
    for _ in range(3):
        receive(station, "tx")
    assert [str(each.destination) for each in finals(station)] == [
        f"DIRECT={url};at=192.0.2.1" for url in (first, SINK, SINK)
    ]


def test_a_commitment_receipt_and_a_final_one(station: Station) -> None:
    station.post(envelope(TO, headers=BOTH + stream(NUMBER, 1), flags="<DeadLetter/>"), b"1")
    receive(station, "tx")
    assert [each.message_class for each in station.sent(OTHER)] == [MessageClass.ACK_RECEIVE]
    assert len(finals(station)) == 1


def test_a_final_receipt_to_ourselves(station: Station) -> None:
    home = Station.base + "order_queue$"
    station.post(envelope(TO, headers=stream(NUMBER, 1, to=home), flags="<DeadLetter/>"), b"1")
    receive(station, "tx")
    assert ("final", SENDER, NUMBER, 1, 7, MessageClass.ACK_RECEIVE) in station.recorder.calls


def test_what_was_sent_here_and_came_back_over_http_has_its_final_receipt(station: Station) -> None:
    """It waits for that in an outgoing queue, whatever its way."""
    home, own = Station.base + "order_queue$", station.manager.guid
    for number in (1, 2):
        headers = stream(NUMBER, number, to=home, sender=own)
        station.post(envelope(TO, headers=headers, ordinal=number, flags="<DeadLetter/>", sender=own), b"x")
    receive(station, "tx")
    station.crash()
    purge(station, "tx")
    finals = [call for call in station.recorder.calls if call[0] == "final"]
    assert finals == [
        ("final", own, NUMBER, 1, 1, MessageClass.ACK_RECEIVE),
        ("final", own, NUMBER, 2, 2, MessageClass.NACK_Q_PURGED),
    ]


# ---- on the wire


@pytest.mark.rule("SR-077", "SR-161")
def test_a_delivery_receipt_as_it_leaves(station: Station) -> None:
    asked = services(durable=True, delivery=ADMIN)
    station.post(envelope(HERE, headers=asked, label="MSMQ:the label", priority=6), b"x")
    (sent,) = station.wire(ADMIN)
    assert sent.request.header("Content-Type") == "text/xml"
    own = str(station.manager.guid)
    number = sent.fields.pop("path/id").removesuffix(f"@{own}")
    assert number.startswith("uuid:")
    assert sent.fields == {
        "path": "",
        "path/action": "MSMQ:the label",
        "path/to": ADMIN,
        "path/rev": "",
        "path/rev/via": HERE,
        "properties": "",
        "properties/expiresAt": "20380119T031407",
        "properties/sentAt": date(WALL),
        "deliveryReceipt": "",
        "deliveryReceipt/receivedAt": date(WALL),
        "deliveryReceipt/id": f"uuid:7@{SENDER}",
        "Msmq": "",
        "Msmq/Class": "2",
        "Msmq/Priority": "6",
        "Msmq/Correlation": correlation(SENDER, 7),
        "Msmq/BodyType": "0",
        "Msmq/SourceQmGuid": own,
        "Msmq/TTrq": date(WALL + 345_600),
    }


@pytest.mark.rule("SR-078", "SR-213")
@pytest.mark.parametrize(("remove", "decision"), [(receive, "positive"), (purge, "negative")])
def test_a_commitment_receipt_as_it_leaves(
    station: Station, remove: Callable[[Station, str], None], decision: str
) -> None:
    station.post(envelope(HERE, headers=BOTH), b"x")
    station.advance(77)
    remove(station, "in")
    (sent,) = station.wire(OTHER)
    receipt = {name: text for name, text in sent.fields.items() if name.startswith("commitmentReceipt/")}
    assert receipt == {
        "commitmentReceipt/decidedAt": date(WALL + 77),
        "commitmentReceipt/decision": decision,
        "commitmentReceipt/id": f"uuid:7@{SENDER}",
    }
    assert (sent.fields["path/to"], sent.fields["path/action"]) == (OTHER, "MSMQ:a label")
    assert not any(name.startswith(("services", "Stream", "streamReceipt")) for name in sent.fields)


@pytest.mark.rule("SR-079", "SR-190")
def test_a_stream_receipt_as_it_leaves(station: Station) -> None:
    """As printed in section 4.4, query and all."""
    sink = "http://machine1/MSMQ/private$/receipts?SenderStream=XRntV"
    for current in (1, 2):
        station.post(envelope(TO, headers=stream(NUMBER, current, to=sink), priority=0), b"x")
    station.advance(1)
    (sent,) = station.wire(sink)
    assert sent.request.target == "/MSMQ/private$/receipts?SenderStream=XRntV"
    assert (sent.fields["path/to"], sent.fields["path/rev/via"]) == (sink, TO)
    assert sent.fields["path/action"] == "MSMQ:QM Ordering Ack"
    assert sent.fields["streamReceipt/streamId"] == f"uid:{SENDER}\\{NUMBER}"
    assert sent.fields["streamReceipt/lastOrdinal"] == "2"
    assert (sent.fields["Msmq/Class"], sent.fields["Msmq/Priority"]) == ("255", "0")


@pytest.mark.rule("SR-215")
def test_a_final_stream_receipt_as_it_leaves(station: Station) -> None:
    station.post(envelope(TO, headers=stream(NUMBER, 1), flags="<DeadLetter/>"), b"1")
    purge(station, "tx")
    (sent,) = station.wire(SINK)
    assert (sent.fields["path/to"], sent.fields["path/action"]) == (SINK, "MSMQ:QM Ordering Ack")
    assert sent.fields["streamReceipt/streamId"] == f"uid:{SENDER}\\{NUMBER}"
    assert sent.fields["streamReceipt/lastOrdinal"] == "1"
    assert sent.fields["commitmentReceipt/decision"] == "negative"
    assert sent.fields["commitmentReceipt/id"] == f"uuid:7@{SENDER}"
    assert sent.fields["Msmq/Class"] == str(0xC001)

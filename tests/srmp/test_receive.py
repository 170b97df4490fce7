"""The receive pipeline of SRMP: what is taken, what is not, and what the sender hears."""

from __future__ import annotations

import pytest

from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.packet.message import Message
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.qm.access import Access
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.security.allowance import Allowance
from msmq_fast.security.keyturns import KeyTurns
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.srmp.http.request import HttpRequest
from msmq_fast.srmp.outgoing import Request, Requests
from msmq_fast.srmp.reasons import Reason
from msmq_fast.srmp.redirection import Pair, Redirections
from msmq_fast.srmp.sending import url_of
from msmq_fast.srmp.signature import SignaturePolicy, Signer
from tests.support.clocks import WALL
from tests.support.srmp.station import ADMIN, SENDER, Station, compound, envelope, services, stream
from tests.support.worlds.directories import everything

DURABLE = services(durable=True)
ADMINISTRATORS = "D:P(A;;CCDCLCSWRPWPSDRCWDWO;;;BA)"


def url(name: str) -> str:
    return Station.base + name


def late(name: str, ordinal: int) -> str:
    """A message to a queue that has expired, and asks for all that this can have for a consequence."""
    asked = services(durable=True, commitment=ADMIN, negative=True)
    return envelope(
        url(name), ordinal=ordinal, headers=asked, now=WALL - 100, reach=99, flags="<DeadLetter/>"
    )


# ---- what is taken


@pytest.mark.rule("SR-159")
def test_a_message_that_passes_every_stage(station: Station) -> None:
    assert station.post(envelope(url("in"), headers=DURABLE), b"content") == 200
    assert station.taken() == [b"content"]
    assert not station.refused


@pytest.mark.rule("SR-034")
def test_content_of_the_soap_body_is_ignored(station: Station) -> None:
    assert station.post(envelope(url("in"), body="<x>what</x>"), b"content") == 200
    assert station.taken() == [b"content"]


def test_the_other_slashes_the_other_case_and_a_query(station: Station) -> None:
    for number, to in enumerate(
        ("http://HOST/MSMQ/PRIVATE$/IN", "http://host/msmq/private$\\in", url("in") + "?a=b")
    ):
        assert station.post(envelope(to, ordinal=number), b"%d" % number) == 200
    assert station.taken() == [b"0", b"1", b"2"]


# ---- what is not


@pytest.mark.rule("SR-143")
@pytest.mark.parametrize(
    "text",
    [
        "no XML at all",
        "<a/>",
        envelope(url("in")).replace("<to>", "<too>").replace("</to>", "</too>"),
        pytest.param(envelope("ftp://host/msmq/private$/in"), marks=pytest.mark.rule("SR-048")),
        pytest.param(envelope("MSMQ:MULTICAST=234.1.1.1:8001"), marks=pytest.mark.rule("SR-048")),
        envelope("http://host:99999/msmq/private$/in"),
        envelope(url("tx"), headers=stream(1, 1), msmq=False),
    ],
)
def test_what_does_not_conform_changes_nothing(station: Station, text: str) -> None:
    before = station.manager.ledger.sequence
    assert station.post(text, b"content") == 400
    assert station.manager.ledger.sequence == before
    assert [reason for reason, _ in station.refused] == [Reason.MALFORMED]
    assert not station.sent()


@pytest.mark.rule("SR-145")
def test_another_computer_is_refused(station: Station) -> None:
    assert station.post(envelope("http://elsewhere/msmq/private$/in"), b"x") == 400
    assert not station.sent()


@pytest.mark.rule("SR-148")
def test_an_unknown_queue_is_refused(station: Station) -> None:
    assert station.post(envelope(url("nosuch")), b"x") == 400
    station.make("nosuch")
    assert station.post(envelope(url("nosuch")), b"x") == 200, "the refusal is not remembered"


@pytest.mark.rule("SR-149")
def test_a_stream_needs_a_transactional_queue(station: Station) -> None:
    assert station.post(envelope(url("in"), headers=stream(1, 1)), b"x") == 400
    assert station.taken() == []


@pytest.mark.rule("SR-150")
def test_a_transactional_queue_needs_a_stream(station: Station) -> None:
    assert station.post(envelope(url("tx"), headers=DURABLE), b"x") == 400
    assert station.post(envelope(url("tx"), headers=_DELIVERY, message_class=2)) == 400
    assert station.taken("tx") == []


@pytest.mark.rule("SR-071")
def test_a_stream_without_msmq_does_not_conform(station: Station) -> None:
    assert station.post(envelope(url("tx"), headers=DURABLE + stream(1, 1), msmq=False), b"x") == 400
    assert station.taken("tx") == []


@pytest.mark.rule("SR-134", "SR-158")
def test_a_message_of_no_type_is_refused(station: Station) -> None:
    assert station.post(envelope(url("in"), message_class=1), b"x") == 400
    assert station.taken() == []


def test_no_user_writes_to_the_order_queue(station: Station) -> None:
    assert station.post(envelope(url("order_queue$")), b"x") == 400


def test_a_queue_that_was_deleted_is_unknown_at_once(station: Station) -> None:
    assert station.post(envelope(url("in"), ordinal=1), b"x") == 200
    station.finish(station.manager.delete_queue(".\\private$\\in"))
    assert station.post(envelope(url("in"), ordinal=2), b"x") == 400
    station.make("in")
    assert station.post(envelope(url("in"), ordinal=3), b"y") == 200
    assert station.taken() == [b"y"]


def test_traced_messages_are_told_when_a_queue_has_them() -> None:
    station = Station(Redirections(transparent=True))
    station.make("in")
    station.make("tx", transactional=True)
    away, trace = "http://elsewhere/msmq/private$/in", "<Trace/>"
    texts = [
        envelope(url("in"), ordinal=1, flags=trace),
        envelope(url("in"), ordinal=1, flags=trace),
        envelope(url("in"), ordinal=2),
        envelope(url("tx"), ordinal=3, flags=trace),
        envelope(url("tx"), ordinal=4, flags=trace, headers=stream(5, 1)),
        envelope(url("tx"), ordinal=4, flags=trace, headers=stream(5, 1)),
        envelope(away, ordinal=5, flags=trace),
        envelope(away, ordinal=6),
    ]
    for text in texts:
        station.post(text, b"x")
    assert [message.message_id for message in station.traced] == [1, 4, 5]


# ---- expiry


@pytest.mark.rule("SR-057", "SR-151", "SR-134", "SR-152")
@pytest.mark.parametrize("msmq", [True, False])
def test_what_has_expired_is_dropped(station: Station, msmq: bool) -> None:
    old = envelope(url("in"), headers=DURABLE, now=WALL - 100, reach=99, msmq=msmq)
    assert station.post(old, b"late") == 200
    assert station.taken() == []
    assert station.post(envelope(url("in"), now=WALL - 100, reach=100, msmq=msmq), b"in time") == 200
    assert station.taken() == [b"in time"]


def test_the_limit_for_receiving_counts_too(station: Station) -> None:
    assert station.post(envelope(url("in"), expires=WALL - 1), b"late") == 200
    assert station.taken() == []


@pytest.mark.rule("SR-151")
@pytest.mark.parametrize("headers", [DURABLE, ""])
def test_without_the_check_what_has_expired_is_kept_like_any_other_message(
    station: Station, headers: str
) -> None:
    station.pipeline._parts.check_expiry = False
    late = [
        envelope(url("in"), ordinal=1, now=WALL - 100, reach=99, headers=headers),
        envelope(url("in"), ordinal=2, expires=WALL - 1, headers=headers),
        envelope(url("in"), ordinal=3, now=WALL - 100, reach=99, msmq=False, headers=headers),
        envelope(url("in"), ordinal=4, expires=WALL, headers=headers),
    ]
    for text in late:
        assert station.post(text, b"late") == 200
    station.advance(1_000_000)
    assert station.taken() == [b"late"] * 4
    assert not station.refused
    assert station.post(envelope(url("in"), ordinal=5, now=WALL + 1_000_000, expires=WALL + 1_000_010), b"x")
    assert len(station.taken()) == 5
    station.advance(11)
    assert station.taken() == [b"late"] * 4, "a limit that was not over on arrival counts"


def test_without_the_check_a_stream_goes_on_with_what_has_expired(station: Station) -> None:
    station.pipeline._parts.check_expiry = False
    for number in (1, 2):
        text = envelope(
            url("tx"),
            ordinal=number,
            headers=stream(9, number),
            now=WALL - 100,
            reach=99,
            flags="<DeadLetter/>",
        )
        assert station.post(text, b"%d" % number) == 200
    assert station.taken("tx") == [b"1", b"2"]


def test_without_the_check_what_has_expired_is_passed_on() -> None:
    station = Station(Redirections(transparent=True), http=True)
    station.pipeline._parts.check_expiry = False
    text = envelope("http://elsewhere/msmq/private$/in", now=WALL - 100, reach=99, headers=DURABLE)
    assert station.post(text, b"late") == 200
    station.advance(10_000)
    (queue,) = station.manager.outgoing()
    assert [message.body for message in station.messages(queue)] == [b"late"]


@pytest.mark.rule("SR-068")
def test_an_expired_message_gets_its_negative_receipt(station: Station) -> None:
    asked = services(commitment=ADMIN, negative=True)
    assert station.post(envelope(url("in"), headers=asked, now=WALL - 100, reach=99), b"x") == 200
    (receipt,) = station.sent(ADMIN)
    assert receipt.message_class == MessageClass.NACK_RECEIVE_TIMEOUT
    assert receipt.correlation_id == SENDER.bytes_le + (7).to_bytes(4, "little")


@pytest.mark.rule("SR-214", "SR-057", "SR-134", "SR-152")
def test_an_expired_message_becomes_a_dead_letter_if_it_asks(station: Station) -> None:
    assert station.post(late("in", 1), b"late") == 200
    assert station.dead() == [b"late"]


@pytest.mark.rule("SR-179")
def test_an_expired_message_leaves_nothing_where_its_sender_may_not_send(station: Station) -> None:
    station.make("closed", security=parse_sddl(ADMINISTRATORS))
    before = station.manager.ledger.sequence
    assert station.post(late("closed", 1), b"late") == 400
    assert station.refused[-1][0] is Reason.ACCESS_DENIED
    assert (station.dead(), station.sent()) == ([], [])
    assert station.manager.ledger.sequence == before


def test_an_expired_message_without_a_signature_leaves_nothing_where_one_is_demanded(
    station: Station,
) -> None:
    station.make("signed", authenticated=True)
    assert station.post(late("signed", 1), b"late") == 400
    assert (station.dead(), station.sent()) == ([], [])


@pytest.mark.rule("SR-057", "SR-179")
def test_an_expired_multicast_message_leaves_nothing_where_its_sender_may_not_send(
    station: Station,
) -> None:
    group = "234.1.1.1:8001"
    station.make("closed", security=parse_sddl(ADMINISTRATORS), multicast_address=group)
    text = late("in", 1).replace(url("in"), f"MSMQ:MULTICAST={group}")
    kind, body = compound(text, b"late")
    apdu = f"POST /x HTTP/1.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    station.pipeline.handle_apdu(apdu + body, group)
    station.run()
    assert (station.dead(), station.sent()) == ([], [])
    station.make("open", multicast_address=group)
    station.pipeline.handle_apdu(apdu + body, group)
    station.run()
    assert station.dead() == [b"late"]


def test_dead_letters_of_one_address_have_a_bound_and_their_senders_keep_the_others() -> None:
    """With 400, by which a sender makes a dead letter of a message; each address has a share of its own."""
    station = Station(dead_letters=Allowance(20_000, 3600.0))
    station.make("in")
    asked = [station.post(late("in", number), bytes(6000)) for number in range(1, 6)]
    assert asked == [200, 200, 400, 400, 400]
    assert len(station.dead()) == 2
    assert station.refused[-1][0] is Reason.DEAD_LETTERS
    assert len(station.sent()) == 2, "a sender that was told hears it once"
    assert station.post(late("in", 6), bytes(6000), peer="192.0.2.2") == 200
    assert station.post(late("in", 7), bytes(6000), peer="2001:db8::1") == 200
    assert station.post(late("in", 8), bytes(6000), peer="2001:db8::2") == 200
    assert station.post(late("in", 9), bytes(6000), peer="2001:db8::3") == 400, "of the same network"
    plain = envelope(url("in"), ordinal=10, now=WALL - 100, reach=99)
    assert station.post(plain, bytes(6000)) == 200, "one that asks for no dead letter costs nothing"
    station.advance(3600)
    assert station.post(late("in", 11), bytes(6000)) == 200


# ---- duplicates


@pytest.mark.rule("SR-109", "SR-178", "SR-134", "SR-159")
@pytest.mark.parametrize("headers", [DURABLE, ""])
def test_the_same_message_twice_is_one(station: Station, headers: str) -> None:
    assert [station.post(envelope(url("in"), headers=headers), b"x") for _ in range(3)] == [200] * 3
    assert (station.taken(), station.pipeline.counters.not_taken[Reason.DUPLICATE]) == ([b"x"], 2)


@pytest.mark.rule("SR-177")
def test_without_an_identifier_nothing_is_a_duplicate(station: Station) -> None:
    for _ in range(2):
        assert station.post(envelope(url("in"), msmq=False), b"x") == 200
    assert station.taken() == [b"x", b"x"]


@pytest.mark.rule("SR-110", "SR-130")
def test_duplicates_are_known_after_a_crash(station: Station) -> None:
    assert station.post(envelope(url("in"), headers=DURABLE), b"x") == 200
    station.crash()
    assert station.post(envelope(url("in"), headers=DURABLE), b"x") == 200
    assert station.taken() == [b"x"]


def test_a_repetition_waits_for_the_first_copy(station: Station) -> None:
    first = station.begin(envelope(url("in"), headers=DURABLE), b"x")
    again = station.begin(envelope(url("in"), headers=DURABLE), b"x")
    assert not first.done
    assert not again.done
    station.run()
    assert (first.result(), again.result()) == (200, 200)
    assert station.taken() == [b"x"]


def test_a_message_that_was_not_stored_is_no_duplicate(station: Station) -> None:
    first = station.begin(envelope(url("in"), headers=DURABLE), b"x")
    again = station.begin(envelope(url("in"), headers=DURABLE), b"x")
    station.writer.submit()
    station.writer.complete_all(28)  # no space left
    station.run()
    assert (first.result(), again.result()) == (500, 500)
    assert station.post(envelope(url("in"), headers=DURABLE), b"x") == 200
    assert station.taken() == [b"x"]


# ---- durability


@pytest.mark.rule("SR-062", "SR-160")
def test_a_durable_message_is_answered_when_it_is_stored(station: Station) -> None:
    answer = station.begin(envelope(url("in"), headers=DURABLE), b"x")
    assert not answer.done
    station.writer.submit()
    assert not answer.done
    station.run()
    assert answer.result() == 200
    station.crash()
    assert station.taken() == [b"x"]


def test_an_express_message_is_answered_at_once(station: Station) -> None:
    assert station.begin(envelope(url("in")), b"x").result() == 200
    station.crash()
    assert station.taken() == []


@pytest.mark.rule("SR-160")
def test_messages_of_a_stream_are_stored_before_the_answer(station: Station) -> None:
    answer = station.begin(envelope(url("tx"), headers=stream(1, 1)), b"x")
    assert not answer.done, "with or without a durable element (A-83)"
    station.run()
    assert answer.result() == 200
    station.crash()
    assert station.taken("tx") == [b"x"]


def test_all_requests_of_one_turn_share_one_commit(station: Station) -> None:
    before = station.writer.statistics()["batches"]
    answers = [
        station.begin(envelope(url("in"), headers=DURABLE, ordinal=number), b"x") for number in range(50)
    ]
    station.run()
    assert [answer.result() for answer in answers] == [200] * 50
    assert station.writer.statistics()["batches"] - before == 1


@pytest.mark.rule("SR-108", "SR-134")
def test_a_crash_between_any_two_steps_keeps_all_or_nothing(station: Station) -> None:
    answer = station.begin(envelope(url("tx"), headers=stream(1, 1)), b"1")
    station.crash()
    assert not answer.done
    assert station.taken("tx") == []
    assert station.post(envelope(url("tx"), headers=stream(1, 2)), b"2") == 200, "out of order: 1 is missing"
    assert station.taken("tx") == []
    assert station.post(envelope(url("tx"), headers=stream(1, 1)), b"1") == 200
    assert station.taken("tx") == [b"1"]


# ---- access, quotas, draining


@pytest.mark.rule("SR-179", "SR-180")
def test_without_the_right_nothing_is_stored(station: Station) -> None:
    station.make("closed", security=parse_sddl(ADMINISTRATORS))
    assert station.post(envelope(url("closed"), headers=DURABLE), b"x") == 400
    assert station.taken("closed") == []
    assert station.refused[-1][0] is Reason.ACCESS_DENIED
    assert station.post(envelope(url("closed"), headers=DURABLE), b"x") == 400, "and it is no duplicate"


@pytest.mark.rule("SR-179")
@pytest.mark.parametrize("who", ["WD", "AN"])
def test_everyone_and_anonymous_are_who_sends(station: Station, who: str) -> None:
    station.make("open", security=parse_sddl(f"D:P(A;;LC;;;{who})"))
    assert station.post(envelope(url("open"), headers=DURABLE), b"x") == 200
    assert station.taken("open") == [b"x"]


def test_a_change_of_rights_counts_at_once(station: Station) -> None:
    queue = station.manager.find(".\\private$\\in")
    assert station.post(envelope(url("in"), ordinal=1), b"1") == 200
    station.finish(station.manager.set_security(queue, parse_sddl(ADMINISTRATORS)))
    assert station.post(envelope(url("in"), ordinal=2), b"2") == 400
    assert station.taken() == [b"1"]


@pytest.mark.rule("SR-181")
def test_the_quota_of_a_queue(station: Station) -> None:
    queue, text = station.make("small", quota_kb=1), envelope(url("small"), headers=DURABLE)
    assert station.post(text, bytes(2000)) == 400
    assert station.taken("small") == []
    station.finish(station.manager.set_properties(queue, quota_kb=100))
    assert station.post(text, bytes(2000)) == 200
    assert station.taken("small") == [bytes(2000)], "it is no duplicate"


@pytest.mark.rule("SR-182")
def test_the_quota_of_the_computer(station: Station) -> None:
    for name, headers in (("in", DURABLE), ("tx", stream(1, 1))):
        station.manager.ledger.quota_bytes = 100
        assert station.post(envelope(url(name), headers=headers), b"x") == 500
        station.manager.ledger.quota_bytes = 1 << 30
        assert station.post(envelope(url(name), headers=headers), b"x") == 200
        assert station.taken(name) == [b"x"]


def test_while_nothing_is_let_in_senders_try_again(station: Station) -> None:
    station.manager.flow.begin("disk low")
    assert station.post(envelope(url("in"), headers=DURABLE), b"x") == 500
    station.manager.flow.end("disk low")
    assert station.post(envelope(url("in"), headers=DURABLE), b"x") == 200


def test_a_queue_manager_that_stops_takes_nothing(station: Station) -> None:
    station.manager.stop()
    assert station.begin(envelope(url("in")), b"x").result() == 500


def test_a_store_that_fails_keeps_nothing(station: Station) -> None:
    answer = station.begin(envelope(url("in"), headers=DURABLE), b"x")
    station.writer.fail_commit(1, -5)
    station.run()
    assert answer.result() == 500


# ---- demands on protection


@pytest.mark.rule("SR-159")
def test_a_queue_for_signed_messages_refuses_others(station: Station) -> None:
    station.make("signed", authenticated=True)
    assert station.post(envelope(url("signed"), headers=DURABLE), b"x") == 400
    assert station.refused[-1][0] is Reason.SIGNATURE


def test_a_queue_for_encrypted_messages_refuses_all(station: Station) -> None:
    station.make("secret", privacy=2)
    assert station.post(envelope(url("secret"), headers=DURABLE), b"x") == 400
    assert station.refused[-1][0] is Reason.PRIVACY


# ---- receipts that arrive

_DELIVERY = (
    f"<deliveryReceipt><receivedAt>20230101T000000</receivedAt><id>uuid:5@{SENDER}</id></deliveryReceipt>"
)


def _commitment(decision: str) -> str:
    return (
        "<commitmentReceipt><decidedAt>20230101T000000</decidedAt>"
        f"<decision>{decision}</decision><id>uuid:5@{SENDER}</id></commitmentReceipt>"
    )


def _acknowledged(last: int, number: int = 1 << 32 | 9) -> str:
    text = f"<streamId>uid:{SENDER}\\{number}</streamId><lastOrdinal>{last}</lastOrdinal>"
    return f"<streamReceipt>{text}</streamReceipt>"


@pytest.mark.rule("SR-167", "SR-124")
def test_a_delivery_receipt_goes_into_its_queue(station: Station) -> None:
    text = envelope(url("in"), headers=_DELIVERY, message_class=2)
    assert [station.post(text) for _ in range(2)] == [200, 200]
    (message,) = station.messages(station.manager.find(".\\private$\\in"))
    assert message.message_class == MessageClass.ACK_REACH_QUEUE


@pytest.mark.rule("SR-176")
@pytest.mark.parametrize(
    ("message_class", "decision"),
    [(0x4000, "positive"), *((each, "negative") for each in (0x8001, 0xC000, 0xC001, 0xC002, 0xC004))],
)
def test_a_commitment_receipt_goes_into_its_queue(
    station: Station, message_class: int, decision: str
) -> None:
    text = envelope(url("in"), headers=_commitment(decision), message_class=message_class)
    assert [station.post(text) for _ in range(2)] == [200, 200]
    (message,) = station.messages(station.manager.find(".\\private$\\in"))
    assert message.message_class == message_class


def test_a_stream_receipt_is_consumed(station: Station) -> None:
    text = envelope(
        url("order_queue$"), headers=_acknowledged(4), message_class=255, label="MSMQ:QM Ordering Ack"
    )
    assert station.post(text) == 200
    assert station.recorder.calls == [("stream", SENDER, 1 << 32 | 9, 4)]
    assert station.manager.find(".\\private$\\order_queue$").messages == 0


def test_a_final_stream_receipt_is_consumed(station: Station) -> None:
    headers = _acknowledged(4) + _commitment("negative")
    text = envelope(url("order_queue$"), headers=headers, message_class=0xC001, label="MSMQ:QM Ordering Ack")
    assert station.post(text) == 200
    assert station.recorder.calls == [("final", SENDER, 1 << 32 | 9, 4, 5, 0xC001)]


def test_elsewhere_a_stream_receipt_counts_and_is_kept(station: Station) -> None:
    text = envelope(url("in"), headers=_acknowledged(4), message_class=255, label="MSMQ:QM Ordering Ack")
    assert [station.post(text) for _ in range(2)] == [200, 200]
    assert station.recorder.calls == [("stream", SENDER, 1 << 32 | 9, 4)], "the repetition is a duplicate"
    assert len(station.taken()) == 1


def test_a_delivery_receipt_is_nothing_for_the_order_queue(station: Station) -> None:
    text = envelope(url("order_queue$"), headers=_DELIVERY, message_class=2)
    assert station.post(text) == 400


# ---- multicast

GROUP = "234.1.1.1:8001"


def apdu(text: str, content: bytes) -> bytes:
    kind, body = compound(text, content)
    head = f"POST {GROUP} HTTP/1.1\r\nHost: {GROUP}\r\n"
    head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.rule("SR-144", "SR-006")
def test_multicast_goes_into_every_bound_queue_once(station: Station) -> None:
    for name in ("one", "two"):
        station.make(name, multicast_address=GROUP)
    station.make("other", multicast_address="234.1.1.1:8002")
    text = envelope(f"MSMQ:MULTICAST={GROUP}")
    for _ in range(2):
        station.pipeline.handle_apdu(apdu(text, b"all"), GROUP)
        station.run()
    assert [station.taken(name) for name in ("one", "two", "other", "in")] == [[b"all"], [b"all"], [], []]


@pytest.mark.rule("SR-144", "SR-006")
def test_multicast_without_a_queue_is_disregarded(station: Station) -> None:
    station.make("other", multicast_address="234.1.1.1:8002")
    station.pipeline.handle_apdu(apdu(envelope(f"MSMQ:MULTICAST={GROUP}"), b"x"), GROUP)
    station.run()
    assert [reason for reason, _ in station.refused] == [Reason.NO_GROUP]
    assert [station.taken(name) for name in ("other", "in")] == [[], []]
    station.make("late", multicast_address=GROUP)  # nothing was kept for a queue that comes later
    station.run()
    assert station.taken("late") == []


@pytest.mark.rule("SR-048")
def test_multicast_knows_neither_streams_nor_other_groups_nor_nonsense(station: Station) -> None:
    station.make("one", multicast_address=GROUP)
    station.pipeline.handle_apdu(apdu(envelope(f"MSMQ:MULTICAST={GROUP}", headers=stream(1, 1)), b"x"), GROUP)
    station.pipeline.handle_apdu(apdu(envelope("MSMQ:MULTICAST=234.9.9.9:1"), b"x"), GROUP)
    station.pipeline.handle_apdu(apdu(envelope(url("in")), b"x"), GROUP)
    station.pipeline.handle_apdu(b"nonsense", GROUP)
    station.run()
    assert [station.taken(name) for name in ("one", "in")] == [[], []]
    assert [reason for reason, _ in station.refused] == [Reason.MULTICAST_STREAM, *[Reason.MALFORMED] * 3]


@pytest.mark.rule("SR-225")
def test_a_public_queue_is_the_one_of_the_directory() -> None:
    station = Station()
    to = "http://host/msmq/orders"
    assert station.post(envelope(to), b"early") == 400
    orders = station.create(".\\orders")
    published = everything(station.manager.directory.events.provider, ObjectType.QUEUE)
    assert [item.identifier for item in published] == [orders.guid]
    assert station.post(envelope(to), b"in time") == 200
    assert [message.body for message in station.messages(orders)] == [b"in time"]
    station.finish(station.manager.delete_queue(orders.name))
    assert station.post(envelope(to), b"late") == 400


# ---- redirection, forwarding


@pytest.mark.rule("SR-147")
def test_inbound_redirection_comes_before_the_look_at_the_host() -> None:
    station = Station(Redirections(inbound=(Pair("http://public.example/*", url("in")),)))
    station.make("in")
    assert station.post(envelope("http://public.example/msmq/orders"), b"x") == 200
    (message,) = station.messages(station.manager.find(".\\private$\\in"))
    assert str(message.destination) == "DIRECT=http://public.example/msmq/orders", "as it was sent (A-52)"


@pytest.mark.rule("SR-146")
def test_store_and_forward_keeps_the_envelope() -> None:
    station = Station(Redirections(transparent=True))
    to = "http://elsewhere/msmq/private$/in"
    text = envelope(to, headers=DURABLE + stream(1, 3))
    answer = station.begin(text, b"content")
    assert not answer.done
    station.run()
    assert answer.result() == 200
    (queue,) = station.manager.outgoing()
    assert str(queue.destination) == f"DIRECT={to}"
    (message,) = station.messages(queue)
    assert (message.source_machine, message.message_id, message.body) == (SENDER, 7, b"content")
    assert message.transaction is not None
    assert message.transaction.sequence_number == 3
    assert not station.streams.transfers(), "nothing is numbered here"
    assert station.post(text, b"content") == 200
    assert len(station.messages(queue)) == 1, "it waits already"
    (sent,) = queue_requests(station, queue)
    assert sent.body == compound(text, b"content")[1], "the same bytes"
    assert (sent.host, sent.target) == ("elsewhere", b"/msmq/private$/in")
    assert dict(sent.headers)[b"Via"] == b"1.1 msmq-fast"


def sent_away(station: Station) -> None:
    """What waits in outgoing queues has left."""
    for queue in station.manager.outgoing():
        station.finish(station.manager.purge(queue))
    station.run()


def test_what_was_passed_on_is_not_passed_on_to_the_same_url_again() -> None:
    station = Station(Redirections(transparent=True))
    there, else_where = "http://there/msmq/private$/in", "http://elsewhere/msmq/private$/in"
    for headers in (DURABLE, ""):
        text = envelope(there, ordinal=len(headers), headers=headers)
        assert station.post(text, b"x") == 200
        assert len(station.sent()) == 1
        sent_away(station)
        assert station.post(text, b"x") == 200, "it went round in a circle, or its answer was lost"
        assert not station.sent()
        assert station.post(envelope(else_where, ordinal=len(headers), headers=headers), b"x") == 200
        assert len(station.sent()) == 1
        sent_away(station)
    assert station.pipeline.counters.not_taken[Reason.DUPLICATE] == 2


def test_what_could_not_be_stored_may_be_passed_on_again() -> None:
    station = Station(Redirections(transparent=True))
    text = envelope("http://there/msmq/private$/in", headers=DURABLE)
    first, again = station.begin(text, b"x"), station.begin(text, b"x")
    station.writer.submit()
    station.writer.complete_all(28)  # no space left
    station.run()
    assert (first.result(), again.result()) == (500, 500)
    assert station.post(text, b"x") == 200
    assert len(station.sent()) == 1


def test_a_stream_passes_as_often_as_its_sender_repeats_it() -> None:
    station = Station(Redirections(transparent=True))
    to = "http://there/msmq/private$/in"
    one, two = (envelope(to, headers=stream(5, number)) for number in (1, 2))  # with one id, as in 4.4
    for _ in range(2):
        assert [station.post(text, b"x") for text in (one, two, one)] == [200] * 3
        assert len(station.sent()) == 2
        sent_away(station)


@pytest.mark.parametrize("named", [1, 29])
def test_a_message_is_passed_on_so_often_at_most(named: int) -> None:
    """Computers that lead a URL to each other: also what has no identifier does not go round for ever."""
    station = Station(Redirections(transparent=True))
    text = envelope("http://there/msmq/private$/in", msmq=False)
    kind, body = compound(text, b"x")
    names = ["1.1 relay"] * named
    via = f"Via: {names[0]}\r\nVia: {', '.join(names[1:])}\r\n" if named > 1 else f"via:{names[0]}\r\n"
    head = f"POST /msmq/x HTTP/1.1\r\n{via}Content-Type: {kind}\r\n\r\n".encode()
    fields = [(b"content-type", kind.encode())]
    answer = station.pipeline.handle(HttpRequest("POST", b"/msmq/x", fields, body, raw_head=head))
    station.run()
    if named == 1:
        assert answer.result() == 200
        (request,) = queue_requests(station, next(iter(station.manager.outgoing())))
        assert dict(request.headers)[b"Via"] == b"1.1 relay, 1.1 msmq-fast"
    else:
        assert answer.result() == 400
        assert [reason for reason, _ in station.refused] == [Reason.HOPS]
        assert not station.sent()


def queue_requests(station: Station, queue: OutgoingQueue) -> list[Request]:
    """What leaves an outgoing queue."""
    packets: list[bytes] = []
    for key in queue.core.positions.keys():  # noqa: SIM118 - no mapping
        queue.core.peek(key, lambda message, _: packets.append(message.packet))
        station.store.reader.complete()
    return [Requests(lambda to: to)(packet, url_of(queue)) for packet in packets]


@pytest.mark.rule("SR-211")
@pytest.mark.parametrize("ends", ["purged", "expired"])
def test_no_receipts_are_made_on_the_way(ends: str) -> None:
    station = Station(Redirections(transparent=True), http=True)
    asked = services(durable=True, delivery=ADMIN, commitment=ADMIN, positive=True, negative=True)
    text = envelope("http://elsewhere/msmq/private$/in", headers=asked, expires=WALL + 3600)
    assert station.post(text, b"x") == 200
    (queue,) = station.manager.outgoing()
    if ends == "purged":
        station.finish(station.manager.purge(queue))
    else:
        station.advance(3601)
    station.run()
    assert queue.messages == 0
    assert not station.sent(ADMIN)


def test_redirection_out_of_the_house() -> None:
    station = Station(Redirections(inbound=(Pair(url("moved"), "http://elsewhere/msmq/private$/new"),)))
    station.make("moved")
    assert station.post(envelope(url("moved")), b"x") == 200
    (queue,) = station.manager.outgoing()
    assert str(queue.destination) == "DIRECT=http://elsewhere/msmq/private$/new"
    assert station.taken("moved") == []


def test_what_was_sent_from_here_is_not_passed_on_again() -> None:
    station = Station(Redirections(transparent=True))
    text = envelope("http://elsewhere/msmq/private$/in", sender=station.manager.guid)
    assert station.post(text, b"x") == 400
    assert not station.sent()


# ---- what programs see


@pytest.mark.rule("SR-159")
def test_a_program_receives_an_ordinary_message(station: Station) -> None:
    station.post(envelope(url("in"), headers=DURABLE, label="MSMQ:greeting", priority=6), b"hello", b"more")
    handle = station.manager.open(".\\private$\\in", Access.RECEIVE)
    message = Message.from_packet(station.finish(handle.receive(0).completion).packet)
    assert (message.label, message.body, message.extension, message.priority) == (
        "greeting",
        b"hello",
        b"more",
        6,
    )
    assert (message.source_machine, message.message_id) == (SENDER, 7)


# ---- signatures, whose keys are used in turns


class Slow:
    """Every signature is good and takes 1 ms of a budget of a tenth of a core, which is used up."""

    policy = SignaturePolicy()

    def __init__(self, **more: int) -> None:
        self.calculated = 0.0
        self.turns = KeyTurns(0.1, 0.001, clock=lambda: self.calculated, **more)
        self.now = 1000.0

        def use_up() -> None:
            self.calculated += 0.002

        self.turns.take("", lambda: self.turns.run(use_up, self.now))

    def verify(self, *_: object) -> Signer:
        def operation() -> Signer:
            self.calculated += 0.001
            return Signer(b"certificate")

        return self.turns.run(operation, self.now)


def waiting(slow: Slow) -> Station:
    station = Station(verify=slow, turns=slow.turns)
    station.make("signed", authenticated=True)
    station.make("in")
    return station


def test_a_signed_message_waits_for_its_turn_and_nothing_else_does() -> None:
    slow = Slow()
    station = waiting(slow)
    first = station.begin(envelope(url("signed"), ordinal=1, headers=DURABLE), b"1", peer="192.0.2.1")
    again = station.begin(envelope(url("signed"), ordinal=1, headers=DURABLE), b"1", peer="192.0.2.2")
    assert station.post(envelope(url("in"), ordinal=2, headers=DURABLE), b"2") == 200
    assert not first.done
    assert (station.taken("signed"), station.taken()) == ([], [b"2"])
    slow.turns.expire(1001.0)
    slow.turns.expire(1002.0)
    assert (station.finish(first), station.finish(again)) == (200, 200)
    assert station.taken("signed") == [b"1"], "it is one message, whoever came first"


def test_signed_messages_beyond_those_that_may_wait_are_to_come_again() -> None:
    slow = Slow(per_group=2)
    station = waiting(slow)
    asked = [station.begin(envelope(url("signed"), ordinal=n, headers=DURABLE), b"x") for n in range(1, 4)]
    assert station.finish(asked[2]) == 500
    assert [reason for reason, _ in station.refused] == [Reason.KEYS]
    assert not asked[0].done
    slow.turns.expire(1001.0)
    slow.turns.expire(1002.0)
    assert [station.finish(each) for each in asked[:2]] == [200, 200]


def test_a_turn_that_comes_too_late_changes_nothing() -> None:
    slow = Slow()
    station = waiting(slow)
    gone = station.begin(envelope(url("signed"), ordinal=1, headers=DURABLE), b"1")
    station.finish(station.manager.delete_queue(".\\private$\\signed"))
    slow.turns.expire(1001.0)
    assert station.finish(gone) == 400
    assert station.dead() == []

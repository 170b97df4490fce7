"""SRMP messages that have expired on arrival: drops, receipts, dead letters and their bounds."""

from __future__ import annotations

import pytest

from msmq_fast.protocol.classes import MessageClass
from msmq_fast.security.allowance import Allowance
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.srmp.reasons import Reason
from msmq_fast.srmp.redirection import Redirections
from tests.srmp.receiving import ADMINISTRATORS, DURABLE, late, url
from tests.support.clocks import WALL
from tests.support.srmp.station import ADMIN, SENDER, Station, compound, envelope, services, stream


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

"""Where receipts may go: what a peer can make this server post to, and what it cannot."""

from __future__ import annotations

import pytest

from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Acknowledge
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.srmp.reasons import Reason
from msmq_fast.srmp.returnpath import ReturnPaths, bound, is_allowed_text, split, with_peer
from msmq_fast.srmp.urls import parse_url
from tests.srmp.receiving import receive
from tests.support.clocks import WALL
from tests.support.srmp.station import ADMIN, SENDER, SINK, Station, envelope, services, stream

HERE = Station.base + "in"
THERE = "http://elsewhere.example:8500/msmq/private$/x"


# ---- the policy


@pytest.mark.parametrize(
    ("url", "peer", "allowed", "expected"),
    [
        ("http://a.test/msmq/q", "192.0.2.1", (), "192.0.2.1"),
        ("http://192.0.2.1/msmq/q", "192.0.2.1", (), "192.0.2.1"),
        ("http://[2001:db8::1]/msmq/q", "2001:db8:0::1", (), "2001:db8:0::1"),
        ("http://192.0.2.1/msmq/q", "::ffff:192.0.2.1", (), "::ffff:192.0.2.1"),
        ("http://127.0.0.1/msmq/q", "127.0.0.1", (), "127.0.0.1"),
        ("http://192.0.2.2/msmq/q", "192.0.2.1", (), None),
        ("http://127.0.0.1:9200/msmq/q", "192.0.2.1", (), None),
        ("http://169.254.169.254/msmq/q", "192.0.2.1", ("169.254.169.254",), "192.0.2.1"),
        ("http://169.254.169.254/msmq/q", "192.0.2.1", ("*",), "192.0.2.1"),
        ("http://192.0.2.2/msmq/q", "192.0.2.1", ("192.0.2.0/24",), "192.0.2.1"),
        ("http://a.test/msmq/q", "", (), None),
        ("http://a.test/msmq/q", "", ("A.Test",), "*"),
        ("http://a.test/msmq/q", "", ("*.test",), "*"),
        ("http://a.tests/msmq/q", "", ("*.test",), None),
        ("http://a.test/msmq/q", "", ("10.0.0.0/8",), "*"),
        ("http://a.test/msmq/q;at=10.0.0.1", "192.0.2.1", (), None),
    ],
)
def test_whose_receipts_get_a_queue(
    url: str, peer: str, allowed: tuple[str, ...], expected: str | None
) -> None:
    found = ReturnPaths(allowed).bind(url, parse_url(url), peer)
    assert found == (None if expected is None else f"{url};at={expected}")


@pytest.mark.parametrize(
    ("address", "allowed", "admitted"),
    [
        ("192.0.2.1", (), True),
        ("192.0.2.2", (), False),
        ("127.0.0.1", (), False),
        ("::1", ("a.test",), False),
        ("127.0.0.1", ("a.test",), False),
        ("169.254.169.254", ("a.test",), False),
        ("fe80::1", ("*",), False),
        ("224.0.0.1", ("*",), False),
        ("10.0.0.5", ("a.test",), True),
        ("10.0.0.5", ("b.test",), False),
        ("10.0.0.5", ("10.0.0.0/8",), True),
        ("127.0.0.1", ("127.0.0.1",), True),
        ("no address", ("*",), False),
    ],
)
def test_what_is_connected_to(address: str, allowed: tuple[str, ...], admitted: bool) -> None:
    assert ReturnPaths(allowed).admits("192.0.2.1", "a.test", address) is admitted


def test_texts() -> None:
    assert split(bound(ADMIN, "2001:db8::1")) == (ADMIN, "2001:db8::1")
    assert split(ADMIN) == (ADMIN, None)
    assert with_peer(b"POST / HTTP/1.1\r\nA: b\r\n\r\nbody\r\n", 6, "10.0.0.1") == (
        b"POST / HTTP/1.1\r\nA: b\r\nX-MSMQ-Fast-Peer: 10.0.0.1\r\n\r\nbody\r\n"
    )
    assert with_peer(b"A: b\n\nbody", 4, "") == b"A: b\r\nX-MSMQ-Fast-Peer: \r\n\r\nbody"
    for text in ("host", "*.example.org", "10.0.0.0/8", "2001:db8::/32", "192.0.2.1"):
        assert is_allowed_text(text)
    for text in ("", "10.0.0.0/33", "a b", "http://a/", "10.0.0.1/8"):
        assert not is_allowed_text(text)


# ---- what a peer asks for


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.40.77:8500/msmq/x",
        "http://10.0.0.5:9200/msmq/x",
        "http://[fe80::1]/msmq/x",
        ADMIN + ";at=10.0.0.5",
    ],
)
def test_no_receipt_goes_to_the_address_of_another(station: Station, url: str) -> None:
    asked = services(durable=True, delivery=url, commitment=url, positive=True, negative=True)
    assert station.post(envelope(HERE, ordinal=1, headers=asked), b"x") == 200, "the message is taken"
    assert station.post(envelope(HERE, ordinal=2, headers=asked, now=WALL - 100, reach=99), b"x") == 200
    tx = envelope(Station.base + "tx", ordinal=3, headers=stream(5, 1, to=url), flags="<DeadLetter/>")
    assert station.post(tx, b"x") == 200
    assert station.taken("tx") == [b"x"]
    station.advance(20)
    assert station.sent() == []
    assert list(station.manager.outgoing()) == []
    assert Reason.RECEIPT in [reason for reason, _ in station.receipts_refused]


def test_a_receipt_knows_its_address_after_a_restart(station: Station) -> None:
    asked = services(durable=True, commitment=ADMIN, positive=True)
    forged = "X-MSMQ-Fast-Peer: 10.0.0.5\r\n"
    assert station.post(envelope(HERE, headers=asked), b"x", peer="192.0.2.7", fields=forged) == 200
    station.crash()
    receive(station, "in")
    (receipt,) = station.sent(ADMIN)
    assert str(receipt.destination) == f"DIRECT={ADMIN};at=192.0.2.7"
    (queue,) = station.manager.outgoing()
    assert split(queue.destination.text) == (ADMIN, "192.0.2.7")


def test_the_receipts_of_a_stream_follow_its_sender(station: Station) -> None:
    """As it gets another address; also after a restart, and by what it repeats."""

    def post(number: int, peer: str) -> None:
        text = envelope(Station.base + "tx", ordinal=number, headers=stream(5, number))
        assert station.post(text, b"%d" % number, peer=peer) == 200

    def asked() -> set[str]:
        return {str(receipt.destination).partition(";at=")[2] for receipt in station.sent(SINK)}

    post(1, "192.0.2.7")
    station.advance(1)
    assert asked() == {"192.0.2.7"}
    station.crash()
    post(1, "192.0.2.8")
    station.advance(1)
    assert "192.0.2.8" in asked()
    post(2, "192.0.2.9")
    station.crash()
    station.advance(30)
    assert "192.0.2.9" in asked()
    assert station.taken("tx") == [b"1", b"2"]


def test_a_receipt_into_a_queue_here_needs_the_right_to_send(station: Station) -> None:
    station.make("closed", security=parse_sddl("D:P(A;;CCDCLCSWRPWPSDRCWDWO;;;BA)"))
    station.make("open")
    for name, got in (("closed", 0), ("open", 1)):
        asked = services(delivery=Station.base + name)
        assert station.post(envelope(HERE, ordinal=got + 1, headers=asked, label="MSMQ:forged"), b"x") == 200
        assert len(station.taken(name)) == got


def test_a_multicast_message_has_no_address_for_receipts(station: Station) -> None:
    group = "234.1.1.1:8001"
    station.make("bound", multicast_address=group)
    text = envelope(HERE, headers=services(delivery=ADMIN)).replace(HERE, f"MSMQ:MULTICAST={group}")
    head = "POST /x HTTP/1.1\r\nContent-Type: text/xml\r\nX-MSMQ-Fast-Peer: 10.0.0.5\r\n"
    head += f"Content-Length: {len(text)}\r\n\r\n"
    station.pipeline.handle_apdu((head + text).encode(), group)
    station.run()
    assert len(station.taken("bound")) == 1
    assert station.sent() == []


# ---- acknowledgments of messages over MS-MQQB


@pytest.mark.parametrize("peer", ["2001:db8::1", "::ffff:192.0.2.7", "127.0.0.1"])
def test_an_address_of_any_kind_is_in_the_name_of_the_queue(station: Station, peer: str) -> None:
    asked = services(durable=True, delivery=ADMIN)
    assert station.post(envelope(HERE, headers=asked), b"x", peer=peer) == 200
    station.crash()
    (queue,) = station.manager.outgoing()
    assert split(queue.destination.text) == (ADMIN, peer)
    assert len(station.sent(ADMIN)) == 1


@pytest.mark.parametrize(
    ("allowed", "expected"), [((), []), (("elsewhere.example",), [f"DIRECT={THERE};at=*"])]
)
def test_acknowledgments_over_http_need_the_configuration(
    allowed: tuple[str, ...], expected: list[str]
) -> None:
    station = Station(receipts_to=allowed, http=True)
    queue = station.make("in")
    message = Message(
        body=b"x",
        source_machine=SENDER,
        message_id=7,
        destination=parse_format_name("DIRECT=OS:host\\private$\\in"),
        admin_queue=parse_format_name(f"DIRECT={THERE}"),
        acknowledge=Acknowledge.POSITIVE_ARRIVAL | Acknowledge.NEGATIVE_ARRIVAL,
    )
    writer = station.writer
    writer.begin_unit()
    try:
        queue.core.enqueue_packets([message.to_packet()])
        station.manager.ack_policy.reject(message.to_packet(), MessageClass.NACK_REACH_QUEUE_TIMEOUT)
    finally:
        writer.keep_unit()
    station.run()
    assert [str(each.destination) for each in station.manager.outgoing()] == expected

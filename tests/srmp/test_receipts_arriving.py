"""SRMP receipts that arrive: for deliveries, commitments and streams."""

from __future__ import annotations

import pytest

from msmq_fast.protocol.classes import MessageClass
from tests.srmp.receiving import DELIVERY_RECEIPT, url
from tests.support.srmp.station import SENDER, Station, envelope


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
    text = envelope(url("in"), headers=DELIVERY_RECEIPT, message_class=2)
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
    text = envelope(url("order_queue$"), headers=DELIVERY_RECEIPT, message_class=2)
    assert station.post(text) == 400

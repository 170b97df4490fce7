"""What kind of message an envelope makes: every class with every combination of receipts."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from msmq_fast.srmp.classify import Kind, classify
from msmq_fast.srmp.model import CommitmentReceipt, DeliveryReceipt, Envelope, MsmqPart, StreamReceipt

pytestmark = pytest.mark.smoke

ORDERING = "MSMQ:QM Ordering Ack"
NEGATIVE = (0x8001, 0xC000, 0xC001, 0xC002, 0xC004)
CLASSES = (
    None,
    0,
    1,
    2,
    7,
    0x80,
    0xFF,
    0x100,
    0x200,
    0x1000,
    0x4000,
    0x4001,
    0x8000,
    0x8002,
    0xC003,
    *NEGATIVE,
)


def made(
    message_class: int | None,
    receipts: str = "",
    *,
    positive: bool = True,
    action: str = ORDERING,
) -> Envelope:
    """`receipts`: D, S, C for the three elements."""
    return Envelope(
        action=action,
        to="http://h/msmq/q",
        id="",
        expires_at=0,
        delivery_receipt=DeliveryReceipt(0, "") if "D" in receipts else None,
        stream_receipt=StreamReceipt(UUID(int=1), 1, 1) if "S" in receipts else None,
        commitment_receipt=CommitmentReceipt(0, positive, "") if "C" in receipts else None,
        msmq=None if message_class is None else MsmqPart(UUID(int=1), 0, message_class),
    )


@pytest.mark.rule("SR-153", "SR-158")
@pytest.mark.parametrize("action", [ORDERING, "MSMQ:x", "x"])
def test_messages_of_users(action: str) -> None:
    """A-36: also those of a class that an application made up."""
    for number in CLASSES:
        expected = Kind.USER if number in (None, 0, 7, 0x80, 0x100, 0x4001) else None
        assert classify(made(number, action=action)) is expected, number


@pytest.mark.rule("SR-154")
def test_delivery_receipts() -> None:
    for number in CLASSES:
        expected = Kind.DELIVERY_RECEIPT if number == 2 else None
        assert classify(made(number, "D", action="MSMQ:x")) is expected, number


@pytest.mark.rule("SR-155")
def test_stream_receipts() -> None:
    for number in CLASSES:
        expected = Kind.STREAM_RECEIPT if number == 255 else None
        assert classify(made(number, "S")) is expected, number
    for action in ("MSMQ:", "MSMQ:QM ordering ack", "QM Ordering Ack", "MSMQ:QM Ordering Ack "):
        assert classify(made(255, "S", action=action)) is None


@pytest.mark.rule("SR-156")
@pytest.mark.parametrize("positive", [True, False])
def test_final_stream_receipts(positive: bool) -> None:
    good = (0x4000,) if positive else NEGATIVE
    for number in CLASSES:
        expected = Kind.FINAL_STREAM_RECEIPT if number in good else None
        assert classify(made(number, "SC", positive=positive)) is expected, number
        assert classify(made(number, "SC", positive=positive, action="MSMQ:x")) is None


@pytest.mark.rule("SR-157")
@pytest.mark.parametrize("positive", [True, False])
def test_commitment_receipts(positive: bool) -> None:
    good = (0x4000,) if positive else NEGATIVE
    for number in CLASSES:
        expected = Kind.COMMITMENT_RECEIPT if number in good else None
        assert classify(made(number, "C", positive=positive, action="MSMQ:x")) is expected, number


@pytest.mark.rule("SR-154", "SR-155", "SR-156", "SR-157", "SR-158")
@pytest.mark.parametrize("receipts", ["DS", "DC", "DSC"])
def test_other_combinations_are_nothing(receipts: str) -> None:
    for number in CLASSES:
        for positive in (True, False):
            assert classify(made(number, receipts, positive=positive)) is None


def test_the_kind_of_a_stream_message_is_that_of_others() -> None:
    assert classify(replace(made(0), durable=True, services=True)) is Kind.USER

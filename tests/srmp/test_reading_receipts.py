"""Receipts in an envelope that arrives."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.srmp.model import CommitmentReceipt, DeliveryReceipt, StreamReceipt
from msmq_fast.srmp.reading import read_envelope
from tests.srmp.reading import refused
from tests.support.srmp.texts import OTHER, SENT, STREAM_ID, full

RECEIPT_ID = f"<id>uuid:32852@{OTHER}</id>"
RECEIVED = "<receivedAt>20070719T031140</receivedAt>"
DECIDED = "<decidedAt>20070719T031140</decidedAt>"
POSITIVE = "<decision>positive</decision>"
LAST = "<lastOrdinal>3</lastOrdinal>"


@pytest.mark.rule("SR-077", "SR-078", "SR-079")
def test_what_receipts_say() -> None:
    found = read_envelope(full(f"<deliveryReceipt>{RECEIVED}{RECEIPT_ID}</deliveryReceipt>"))
    assert found.delivery_receipt == DeliveryReceipt(SENT, f"uuid:32852@{OTHER}")
    assert found.is_receipt
    negative = POSITIVE.replace("posi", "nega")
    found = read_envelope(full(f"<commitmentReceipt>{DECIDED}{negative}{RECEIPT_ID}</commitmentReceipt>"))
    assert found.commitment_receipt == CommitmentReceipt(SENT, False, f"uuid:32852@{OTHER}")
    found = read_envelope(full(f"<streamReceipt>{STREAM_ID}{LAST}</streamReceipt>"))
    assert found.stream_receipt == StreamReceipt(UUID(OTHER), 4839986701558349830, 3)


@pytest.mark.parametrize(
    "receipt",
    [
        *(
            pytest.param(f"<deliveryReceipt>{parts}</deliveryReceipt>", marks=pytest.mark.rule("SR-077"))
            for parts in (RECEIVED, RECEIPT_ID, RECEIVED + "<id>x</id>", RECEIVED * 2 + RECEIPT_ID)
        ),
        *(
            pytest.param(f"<commitmentReceipt>{parts}</commitmentReceipt>", marks=pytest.mark.rule("SR-078"))
            for parts in (
                *(DECIDED + POSITIVE, DECIDED + RECEIPT_ID, POSITIVE + RECEIPT_ID),
                DECIDED + RECEIPT_ID + "<decision>maybe</decision>",
            )
        ),
        *(
            pytest.param(f"<streamReceipt>{parts}</streamReceipt>", marks=pytest.mark.rule("SR-079"))
            for parts in (STREAM_ID, LAST, STREAM_ID + "<lastOrdinal>-1</lastOrdinal>")
        ),
    ],
)
def test_receipts_that_say_too_little(receipt: str) -> None:
    refused(full(receipt))

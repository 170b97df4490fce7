"""The properties and services of an envelope that arrives: dates, receipts that are asked for."""

from __future__ import annotations

import pytest

from msmq_fast.srmp.reading import read_envelope
from tests.srmp.reading import read, refused
from tests.support.srmp.texts import DATES, URL, envelope, full, path, properties, services


@pytest.mark.rule("SR-055")
def test_properties_must_be_there() -> None:
    refused(envelope(path()), "properties")
    refused(envelope(path(), properties(attributes="")), "properties")


@pytest.mark.rule("SR-056")
def test_dates_of_a_message() -> None:
    for content in ("", "<sentAt>20070719T031140</sentAt>", "<expiresAt/>", DATES + DATES):
        refused(envelope(path(), properties(content)))
    refused(envelope(path(), properties("<expiresAt>2007-06-19T21:06:54Z</expiresAt>")), "date")
    refused(envelope(path(), properties("<expiresAt>20380119T031407</expiresAt><sentAt/>")), "date")
    assert read(path(), properties("<expiresAt>20070720T031140</expiresAt>")).sent_at is None


@pytest.mark.rule("SR-059")
def test_in_reply_to_is_ignored() -> None:
    assert read(path(), properties(DATES + "<inReplyTo>x</inReplyTo>" * 2)) == read_envelope(envelope())


@pytest.mark.rule("SR-060")
def test_services() -> None:
    refused(full(services("<durable/>", "")), "<services> lacks")
    assert read_envelope(full(services(""))).services
    found = read_envelope(full(services("<durable/>")))
    assert (found.services, found.durable, found.recoverable) == (True, True, True)


@pytest.mark.rule("SR-064", "SR-066")
@pytest.mark.parametrize("request_", ["deliveryReceiptRequest", "commitmentReceiptRequest"])
@pytest.mark.parametrize(
    "content",
    [
        "",
        "<sendTo/>",
        "<sendTo>MSMQ:PRIVATE=x</sendTo>",
        "<sendTo>ftp://x</sendTo>",
        f"<sendTo>{URL}</sendTo>" * 2,
    ],
)
def test_receipts_need_a_place_to_go(request_: str, content: str) -> None:
    refused(full(services(f"<{request_}>{content}</{request_}>")), "sendTo")


@pytest.mark.rule("SR-064", "SR-066")
def test_receipts_that_are_asked_for() -> None:
    found = read_envelope(
        full(
            services(
                f"<commitmentReceiptRequest><negativeOnly/><sendTo> {URL}2 </sendTo>"
                "</commitmentReceiptRequest>"
                f"<deliveryReceiptRequest>\n<sendTo>{URL}</sendTo></deliveryReceiptRequest>"
            )
        )
    )
    assert (found.delivery_to, found.commitment_to) == (URL, f"{URL}2")
    assert (found.positive_only, found.negative_only, found.durable) == (False, True, False)

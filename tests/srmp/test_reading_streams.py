"""The stream element of an envelope that arrives."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.srmp.reading import read_envelope
from tests.srmp.reading import refused
from tests.support.srmp.texts import OTHER, START, STREAM_ID, URL, envelope, full, path, properties, stream


@pytest.mark.rule("SR-071")
def test_a_stream_needs_msmq_and_must_be_understood() -> None:
    refused(envelope(path(), properties(), stream()), "must have the Msmq element")
    refused(full(stream(attributes="")), "<stream> lacks")


@pytest.mark.rule("SR-073", "SR-074", "SR-075", "SR-076")
def test_the_parts_of_a_stream() -> None:
    part = read_envelope(full(stream())).stream
    assert part is not None
    assert (part.sender, part.sequence) == (UUID(OTHER), 4839986701558349830)
    assert (part.current, part.previous, part.before, part.start) == (1, None, 0, True)
    assert part.receipts_to == URL
    part = read_envelope(full(stream(f"{STREAM_ID}<previous>4</previous><current>9</current>"))).stream
    assert part is not None
    assert (part.current, part.previous, part.before, part.start, part.receipts_to) == (9, 4, 4, False, None)
    assert read_envelope(full(stream())).recoverable  # also without durable


@pytest.mark.rule("SR-071")
def test_a_stream_in_either_spelling() -> None:
    other = stream().replace("Stream se", "stream se").replace("</Stream>", "</stream>")
    assert read_envelope(full(other)) == read_envelope(full(stream()))
    refused(full(stream(), other), "twice")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"<current>1</current>{START}", marks=pytest.mark.rule("SR-073")),
        pytest.param(
            f"<streamId>uid:{OTHER}/1</streamId><current>1</current>{START}",
            marks=pytest.mark.rule("SR-073"),
        ),
        pytest.param(STREAM_ID + START, marks=pytest.mark.rule("SR-074")),
        pytest.param(f"{STREAM_ID}<current>0</current>", marks=pytest.mark.rule("SR-074")),
        pytest.param(f"{STREAM_ID}<current>-1</current>", marks=pytest.mark.rule("SR-032")),
        pytest.param(f"{STREAM_ID}<current>{1 << 32}</current>", marks=pytest.mark.rule("SR-074", "SR-115")),
        pytest.param(f"{STREAM_ID}<current>{1 << 64}</current>", marks=pytest.mark.rule("SR-032")),
        pytest.param(
            f"{STREAM_ID}<current>2</current><previous>x</previous>", marks=pytest.mark.rule("SR-075")
        ),
        pytest.param(f"{STREAM_ID}<current>1</current>", marks=pytest.mark.rule("SR-076")),
        pytest.param(f"{STREAM_ID}<current>2</current>{START}", marks=pytest.mark.rule("SR-076")),
        pytest.param(f"{STREAM_ID}<current>1</current><start/>", marks=pytest.mark.rule("SR-076")),
        pytest.param(
            f"{STREAM_ID}<current>1</current><start><sendReceiptsTo>MSMQ:x</sendReceiptsTo></start>",
            marks=pytest.mark.rule("SR-076"),
        ),
    ],
)  # fmt: skip
def test_streams_that_are_none(content: str) -> None:
    refused(full(stream(content)))

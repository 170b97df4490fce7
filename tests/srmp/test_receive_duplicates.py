"""SRMP messages that arrive twice: which are duplicates, also after a crash."""

from __future__ import annotations

import pytest

from msmq_fast.srmp.reasons import Reason
from tests.srmp.receiving import DURABLE, url
from tests.support.srmp.station import Station, envelope


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

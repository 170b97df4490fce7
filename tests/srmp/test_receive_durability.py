"""When an SRMP request is answered: what is stored before, and what a crash leaves."""

from __future__ import annotations

import pytest

from tests.srmp.receiving import DURABLE, url
from tests.support.srmp.station import Station, envelope, stream


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

"""SRMP messages that a queue does not let in: rights, quotas, draining, signatures, encryption."""

from __future__ import annotations

import pytest

from msmq_fast.security.sddl import parse_sddl
from msmq_fast.srmp.reasons import Reason
from tests.srmp.receiving import ADMINISTRATORS, DURABLE, url
from tests.support.srmp.station import Station, envelope, stream


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

"""Two queue managers with messages for each other, of which one refuses what the other brings."""

from __future__ import annotations

import pytest

from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.transfer import Connect
from tests.mqqb.transfers import Bench
from tests.support.worlds.hosts import sent


@pytest.mark.parametrize(
    ("reason", "at_once"), [(CloseReason.QUOTA, False), (CloseReason.DISCONNECTED, True)]
)
def test_who_ends_a_session_over_a_refusal_waits_before_it_dials(reason: CloseReason, at_once: bool) -> None:
    """Else each would dial as soon as the other has ended the session, over and over."""
    bench = Bench()
    session = bench.accepted("10.0.0.7", 5.0)
    sent(session)
    bench.transfer.submit(bench.queue("10.0.0.7", recoverable=True), 10.0)
    sent(session)
    session.close(reason, 11.0)
    assert bench.take() == ([Connect(1, "10.0.0.7")] if at_once else [])
    bench.endpoint.expire(16.0)
    assert bench.take() == ([] if at_once else [Connect(1, "10.0.0.7")])

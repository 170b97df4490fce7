"""When the duplicate history is cleaned up, in memory and in the store; virtual clock."""

from __future__ import annotations

import pytest

from msmq_fast._native.history import DuplicateHistory
from msmq_fast.mqqb.endpoint import Endpoint
from tests.mqqb.transfers import Bench
from tests.support.mqqb import wire
from tests.support.worlds.hosts import Host


@pytest.mark.rule("QB-316", "QB-129")
def test_the_duplicate_history_is_cleaned_up_every_half_hour() -> None:
    bench = Bench()
    bench.accepted("10.0.0.1", 0.0).receive(wire.message(1), 1.0)
    assert len(bench.host.session_context.history) == 1
    bench.host.ledger.tick(5_000 * 1_000_000)
    bench.endpoint.expire(1_799.0)
    assert len(bench.host.session_context.history) == 1
    bench.endpoint.expire(1_800.0)
    assert len(bench.host.session_context.history) == 0
    bench.accepted("10.0.0.1", 1_801.0).receive(wire.message(2), 1_802.0)
    bench.host.ledger.tick(9_000 * 1_000_000)
    bench.endpoint.expire(3_599.0)
    assert len(bench.host.session_context.history) == 1
    bench.endpoint.expire(3_600.0)
    assert len(bench.host.session_context.history) == 0


@pytest.mark.rule("QB-078")
def test_the_stored_history_is_trimmed_to_what_is_remembered() -> None:
    host = Host(history=DuplicateHistory(100))
    calls: list[tuple[int, int]] = []
    left = [200, 3]

    def trim(before: int, limit: int) -> int:
        calls.append((before, limit))
        return left.pop(0)

    endpoint = Endpoint(host.session_context, lambda _: None, 0.0, trim_history=trim)
    session = endpoint.accept("10.0.0.1", 0.0)
    session.receive(wire.establish() + wire.parameters(), 0.0)
    endpoint.expire(10.0)
    assert calls == []
    session.receive(b"".join(wire.message(n, recoverable=True) for n in range(1, 131)), 11.0)
    host.commit()
    number = host.writer.next_entry(4)
    endpoint.expire(20.0)
    endpoint.expire(20.25)  # there was more than one portion
    endpoint.expire(25.0)
    assert calls == [(number - 100, 200)] * 2

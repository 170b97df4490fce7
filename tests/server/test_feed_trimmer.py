"""Trimming the feed: small steps while there is something to drop, then rest."""

from __future__ import annotations

import pytest

from msmq_fast.server.runtime.feed_trimmer import FeedTrimmer


def test_steps_follow_quickly_until_nothing_is_left() -> None:
    now, left = 0.0, 450

    def trim(limit: int) -> int:
        nonlocal left
        dropped = min(limit, left)
        left -= dropped
        return dropped

    trimmer = FeedTrimmer(lambda: now, trim)
    assert trimmer.next_deadline() == 5.0
    for expected in (0.1, 0.1, 5.0):
        now = trimmer.next_deadline()
        trimmer.expire(now)
        assert trimmer.next_deadline() - now == pytest.approx(expected)
    assert left == 0

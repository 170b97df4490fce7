"""The measurement of staged publishing runs, on a small scale."""

from __future__ import annotations

from pathlib import Path

from bench.server import Server
from bench.stage import _beside, measure


def test_every_step_is_measured(tmp_path: Path) -> None:
    figures = measure(5000, 100, tmp_path)
    assert [figure.what for figure in figures] == ["stage", "publish"]
    assert all(figure.rate > 0 and figure.live and figure.live_max >= figure.live_p50 for figure in figures)


def test_a_message_is_sent_beside_the_shortest_work(tmp_path: Path) -> None:
    with Server(tmp_path, queues=("live",)) as server:
        with _beside(server.socket) as live:
            pass
        assert len(live) >= 1

"""The measurement of staged publishing runs, on a small scale."""

from __future__ import annotations

from pathlib import Path

from bench.stage import measure


def test_every_step_is_measured(tmp_path: Path) -> None:
    figures = measure(5000, 100, tmp_path)
    assert [figure.what for figure in figures] == ["stage", "publish"]
    assert all(figure.rate > 0 and figure.live and figure.live_max >= figure.live_p50 for figure in figures)

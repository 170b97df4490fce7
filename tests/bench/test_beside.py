"""The measurements of reading beside live traffic, on a small scale, and what their verdicts follow from."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import beside
from bench.appload import AppLoad
from bench.beside import Growth, Window, checks, growth, ratio, traffic
from bench.server import Server


@pytest.mark.long(seconds=7)
def test_windows_come_in_pairs_and_only_those_with_a_reader_read(tmp_path: Path) -> None:
    load = AppLoad(rate=500, body=100, window=256, seconds=0.5, warmup=0, max_bytes=0)
    found = list(traffic(tmp_path, load=load, depth=5000, windows=2))
    assert [window.reader for window in found] == [False, True, True, False]
    assert [window.read_per_s > 0 for window in found] == [False, True, True, False]
    assert all(0 < window.p50 <= window.p99 for window in found)
    assert all(0 < window.in_per_s < 600 for window in found)  # never above the rate, however late


def test_the_ratio_is_that_of_the_medians() -> None:
    times = [(False, 1.0), (True, 1.2), (False, 1.0), (True, 1.4), (False, 50.0), (True, 9.0)]
    assert ratio([Window(reader, 0, 0, p99, 0, 0) for reader, p99 in times]) == pytest.approx(1.4)


def test_the_queue_is_turned_over_at_its_depth(tmp_path: Path) -> None:
    load = AppLoad(rate=10_000, body=100, window=256, warmup=0, max_bytes=0)
    found = growth(tmp_path, load=load, depth=2000, seconds=1, settle=0.5, pause_s=0.05)
    assert found.turnover > 2
    assert found.read_rows > 0
    assert found.file_before > 0
    assert found.used_most >= found.used_before > 0


def test_growth_is_a_share_of_what_was_there() -> None:
    found = Growth(60, 3.0, 1, 100, 104, 50, 51, 60)
    assert found.file == pytest.approx(0.04)
    assert found.used == pytest.approx(0.2)  # at its most
    assert [check.passed for check in checks(found)] == [True, True, False]


def test_a_reader_that_gets_nothing_is_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "_READY_S", 0.5)
    with Server(tmp_path, queues=("deep",)) as server, beside.reading(server, "deep") as readers:
        assert readers == []
        reader = beside.Reader(server, "deep")
        with pytest.raises(RuntimeError, match="got no rows"):
            reader.start()
        reader.stop()
        with pytest.raises(RuntimeError, match="ended with code 0"):
            reader.check()

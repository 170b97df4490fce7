"""The benchmark of reading in bulk reads everything, each way."""

from __future__ import annotations

from bench.bulk import CHOICES, measure


def test_every_choice_is_measured() -> None:
    figures = list(measure(2000, 100, 1))
    ways = {(figure.what, figure.packets) for figure in figures}
    assert ways == {(what, packets) for what in CHOICES for packets in ("disk", "memory")} | {
        ("events", "disk")
    }
    assert all(figure.rows >= 2000 and figure.rate > 0 for figure in figures)

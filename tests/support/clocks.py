"""Clocks that stand still until a test moves them, and the instant at which they begin."""

from __future__ import annotations

WALL = 1_700_000_000


class StillClock:
    def __init__(self) -> None:
        self.seconds = 1000.0
        self.wall = WALL * 1_000_000

    def monotonic(self) -> float:
        return self.seconds

    def wall_us(self) -> int:
        return self.wall

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        self.wall += round(seconds * 1_000_000)


class FakeClock:
    """Stands still unless told."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def monotonic(self) -> float:
        return self.now

    def wall_us(self) -> int:
        return int(self.now * 1_000_000)

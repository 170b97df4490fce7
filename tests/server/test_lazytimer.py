"""A lazy timer is moved forward only: it fires early when a deadline was put off, never late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from weakref import ref

from msmq_fast.lazytimer import LazyTimer
from msmq_fast.timing import NEVER


class Loop:
    """A loop in virtual time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.made: list[tuple[float, Any]] = []
        self.cancelled = 0

    def call_later(self, delay: float, callback: Any) -> Any:
        entry = (self.now + delay, callback)
        self.made.append(entry)
        return SimpleNamespace(cancel=lambda: self._cancel(entry))

    def _cancel(self, entry: tuple[float, Any]) -> None:
        self.cancelled += 1
        self.made.remove(entry)

    def run(self, until: float) -> None:
        for entry in sorted(self.made, key=lambda made: made[0]):
            if entry[0] <= until and entry in self.made:
                self.made.remove(entry)
                self.now = max(self.now, entry[0])
                entry[1]()
        self.now = until


def timer(loop: Any) -> tuple[LazyTimer, list[float]]:
    fired: list[float] = []
    return LazyTimer(loop, lambda: loop.now, lambda: fired.append(loop.now)), fired


def test_it_fires_at_the_deadline_and_once() -> None:
    loop = Loop()
    it, fired = timer(loop)
    it.arm(None)
    assert (it.at, loop.made) == (NEVER, [])
    it.arm(105.0)
    assert it.at == 105.0
    loop.run(200.0)
    assert fired == [105.0]
    assert (it.at, loop.made) == (NEVER, [])


def test_a_later_deadline_leaves_the_timer_where_it_is() -> None:
    loop = Loop()
    it, fired = timer(loop)
    it.arm(105.0)
    it.arm(130.0)
    it.arm(None)
    assert (len(loop.made), loop.cancelled) == (1, 0)
    loop.run(110.0)
    assert fired == [105.0]


def test_an_earlier_deadline_moves_it() -> None:
    loop = Loop()
    it, fired = timer(loop)
    it.arm(130.0)
    it.arm(105.0)
    assert (len(loop.made), loop.cancelled) == (1, 1)
    loop.run(200.0)
    assert fired == [105.0]


def test_a_deadline_that_has_passed_fires_at_once() -> None:
    loop = Loop()
    it, fired = timer(loop)
    it.arm(90.0)
    loop.run(100.0)
    assert fired == [100.0]


def test_a_closed_timer_never_fires_and_lets_go_of_its_owner() -> None:
    class Owner:
        def __init__(self) -> None:
            self.timer = LazyTimer(loop, lambda: loop.now, self.due)  # type: ignore[arg-type]

        def due(self) -> None:
            raise AssertionError

    loop = Loop()
    owner = Owner()
    owner.timer.arm(105.0)
    owner.timer.close()
    assert loop.made == []
    owner.timer.arm(101.0)
    loop.run(200.0)
    gone = ref(owner)
    del owner
    assert gone() is None

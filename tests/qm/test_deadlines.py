"""Deadlines against a plain dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.qm.deadlines import Deadlines

STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "clear", "take"]), st.integers(0, 5), st.integers(0, 20)), max_size=200
)


@given(STEPS)
def test_each_key_has_one_deadline_the_one_set_last(steps: list[tuple[str, int, int]]) -> None:
    deadlines: Deadlines[int] = Deadlines()
    model: dict[int, float] = {}
    for action, key, when in steps:
        if action == "set":
            deadlines.set(key, float(when))
            model[key] = float(when)
        elif action == "clear":
            deadlines.set(key, None)
            model.pop(key, None)
        else:
            taken = deadlines.take(float(when))
            assert sorted(taken) == sorted(due for due, at in model.items() if at <= when)
            assert [model[due] for due in taken] == sorted(model[due] for due in taken)
            for due in taken:
                del model[due]
        assert deadlines.next_deadline() == min(model.values(), default=None)
        assert len(deadlines) == len(model)


def test_what_is_outdated_takes_no_room() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("first", 1.0)
    for step in range(10_000):
        deadlines.set("moved", 2.0 + step)
    assert len(deadlines._heap) <= 66
    assert deadlines.take(1.0) == ["first"]
    assert deadlines.take(20_000.0) == ["moved"]
    assert deadlines.next_deadline() is None

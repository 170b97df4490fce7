"""Agenda against a plain dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.qm.agenda import Agenda

STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "clear", "take"]), st.integers(0, 5), st.integers(0, 20)), max_size=200
)


@given(STEPS)
def test_agenda(steps: list[tuple[str, int, int]]) -> None:
    agenda: Agenda[int] = Agenda()
    model: dict[int, float] = {}
    for action, key, when in steps:
        if action == "set":
            agenda.set(key, float(when))
            model[key] = float(when)
        elif action == "clear":
            agenda.set(key, None)
            model.pop(key, None)
        else:
            taken = agenda.take(float(when))
            assert sorted(taken) == sorted(due for due, at in model.items() if at <= when)
            assert [model[due] for due in taken] == sorted(model[due] for due in taken)
            for due in taken:
                del model[due]
        assert agenda.next_deadline == min(model.values(), default=None)
        assert len(agenda) == len(model)


def test_what_is_outdated_takes_no_room() -> None:
    agenda: Agenda[str] = Agenda()
    agenda.set("first", 1.0)
    for step in range(10_000):
        agenda.set("moved", 2.0 + step)
    assert len(agenda._heap) <= 66
    assert agenda.take(1.0) == ["first"]
    assert agenda.take(20_000.0) == ["moved"]
    assert agenda.next_deadline is None

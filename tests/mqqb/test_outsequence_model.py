"""The ring of a transactional sequence against a list of dicts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.outsequence import OTHER, OVER, WAITS, OutSequence


class Model:
    """Every message that ever had a number and is not gone, in order."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.identifier = self.last_ack = self.count = self.highest = 0
        self.next = 1

    def entry(self, key: int) -> dict[str, Any] | None:
        return next((entry for entry in self.entries if entry["key"] == key), None)

    @property
    def open(self) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if not entry["ordered"]]

    def begin(self, identifier: int) -> None:
        self.identifier, self.next = identifier, 1
        self.last_ack = self.count = self.highest = 0

    def assign(self, key: int) -> int:
        self.entries.append(
            {"key": key, "number": self.next, "sent": False, "kept": False, "ordered": False}
            | {"id": self.identifier}
        )
        self.next += 1
        return self.next - 1

    def previous(self, entry: dict[str, Any]) -> int:
        before = [other["number"] for other in self.open if other["key"] < entry["key"]]
        return before[-1] if before else self.last_ack

    def transmit(self, key: int) -> tuple[int, int]:
        entry = self.entry(key)
        if entry is None:
            return 0, 0
        entry["sent"], entry["kept"] = True, False
        self.highest = max(self.highest, entry["number"])
        return entry["number"], self.previous(entry)

    def acknowledged(self, key: int) -> int:
        entry = self.entry(key)
        if entry is None:
            return OTHER
        if entry["ordered"]:
            return OVER
        entry["kept"] = True
        return WAITS

    def returned(self, key: int) -> int:
        entry = self.entry(key)
        if entry is None:
            return OTHER
        if entry["ordered"]:
            return OVER
        entry["sent"] = entry["kept"] = False
        return WAITS

    def order(self, number: int) -> list[int] | None:
        if not 0 < number <= self.highest:
            return None
        if number <= self.last_ack:
            self.count += 1
            return []
        self.last_ack, self.count = number, 1
        over = []
        for entry in self.open:
            if entry["number"] <= number:
                entry["ordered"] = True
                if entry["kept"] or not entry["sent"]:
                    over.append(entry["key"])
        return over

    def remove(self, key: int) -> bool:
        entry = self.entry(key)
        if entry is None:
            return False
        self.entries.remove(entry)
        return True


def compare(ring: OutSequence, model: Model) -> None:
    assert list(ring.keys()) == [entry["key"] for entry in model.entries]
    assert ring.unordered == len(model.open)
    assert ring.sent == sum(entry["sent"] for entry in model.open)
    assert list(ring.underway()) == [entry["key"] for entry in model.entries if entry["sent"]]
    assert list(ring.covered()) == [entry["key"] for entry in model.entries if entry["ordered"]]
    assert (ring.identifier, ring.next_number, ring.last_ack) == (
        model.identifier,
        model.next,
        model.last_ack,
    )
    assert (ring.ack_count, ring.highest) == (model.count, model.highest)
    ends = [(entry["number"], model.previous(entry)) for entry in model.open]
    assert ring.first_unordered == (ends[0] if ends else None)
    assert ring.last_unordered == (ends[-1] if ends else None)


STEP = st.tuples(
    st.sampled_from(
        ["assign"] * 4 + ["send"] * 3 + ["transmit", "acknowledged", "returned", "order", "remove", "restart"]
    ),
    st.integers(0, 40),
)


@pytest.mark.rule("QB-111", "QB-208", "QB-211", "QB-213", "QB-333", "QB-112", "QB-113", "QB-377")
@settings(max_examples=300, deadline=None)
@given(st.lists(STEP, max_size=60))
def test_the_ring_is_the_model(steps: list[tuple[str, int]]) -> None:
    ring, model = OutSequence(), Model()
    keys: list[int] = []
    for what, which in steps:
        key = keys[which % len(keys)] if keys else 0
        if what == "assign":
            if not model.open and (not model.identifier or model.next > 1):
                ring.begin(model.identifier + 1)
                model.begin(model.identifier + 1)
            keys.append((keys[-1] if keys else 0) + which + 1)
            assert ring.assign(keys[-1], which) == model.assign(keys[-1])
        elif what == "send":
            for entry in [entry for entry in model.open if not entry["sent"]][:3]:
                assert ring.transmit(entry["key"]) == model.transmit(entry["key"])
        elif what == "order":
            over, expected = ring.order(which % 20), model.order(which % 20)
            assert (None if over is None else list(over)) == expected
            for gone in expected or []:
                assert ring.remove(gone) == model.remove(gone)
        elif what == "restart":
            ring = restarted(model)
        elif what in ("acknowledged", "returned"):
            answer = getattr(model, what)(key)
            assert getattr(ring, what)(key) == answer
            if answer == OVER:
                assert ring.remove(key) == model.remove(key)
        elif what == "transmit" and (entry := model.entry(key)) is not None and not entry["ordered"]:
            assert ring.transmit(key) == model.transmit(key)
        elif what == "remove":
            assert ring.remove(key) == model.remove(key)
        compare(ring, model)


def restarted(model: Model) -> OutSequence:
    """The ring after a restart, from what was stored; the model goes on as it does."""
    ring = OutSequence()
    if model.identifier:
        ring.resume(model.identifier, model.next, model.last_ack, model.count)
    for entry in model.entries:
        known = ring.restore(entry["key"], 0, entry["id"], entry["number"])
        assert known == entry["ordered"]
        entry["sent"] = entry["kept"] = False
    model.highest = model.next - 1
    return ring


@pytest.mark.rule("QB-111", "REC-09")
def test_an_acknowledgment_of_a_message_that_left_counts_after_a_restart() -> None:
    ring = OutSequence()
    ring.resume(5, 4, 0, 0)  # 1 to 3 were assigned; 3 was transmitted, and expired
    assert not ring.restore(1, 1, 5, 1)
    assert not ring.restore(2, 2, 5, 2)
    assert ring.order(4) is None, "no message had this number"
    over = ring.order(3)
    assert over is not None
    assert list(over) == [1, 2]


@pytest.mark.rule("QB-093", "QB-112")
def test_a_sequence_begins_when_the_one_before_is_over() -> None:
    ring = OutSequence()
    ring.begin(7)
    ring.assign(1, 1)
    for identifier in (8, 7):
        with pytest.raises(ValueError, match="has not ended"):
            ring.begin(identifier)
    ring.remove(1)
    with pytest.raises(ValueError, match="has not ended"):
        ring.begin(7)
    ring.begin(8)
    assert ring.assign(2, 2) == 1
    with pytest.raises(ValueError, match="is not greater than that of the message before it"):
        ring.assign(2, 3)


@pytest.mark.rule("SR-200", "QB-214", "QB-139", "QB-209")
def test_a_sequence_begins_with_new_counts() -> None:
    ring = OutSequence()
    ring.begin(7)
    ring.assign(1, 1)
    ring.transmit(1)
    ring.order(1)
    ring.last_ack_s = ring.resend_s = ring.resend_index = 9
    ring.remove(1)
    ring.begin(8)
    assert (ring.last_ack, ring.ack_count, ring.last_ack_s, ring.resend_s, ring.resend_index) == (0,) * 5
    ring.assign(2, 1)
    assert ring.order(1) is None, "it was not sent"


@pytest.mark.rule("REC-09")
def test_what_a_later_sequence_left_behind_is_known_to_have_arrived() -> None:
    ring = OutSequence()
    ring.resume(5, 3, 1, 1)
    assert [ring.restore(key, key, *place) for key, place in enumerate([(5, 1), (5, 2), (6, 1)], 1)] == [
        True,
        False,
        False,
    ]
    assert (ring.identifier, ring.next_number, list(ring.covered())) == (6, 2, [1, 2])
    assert ring.transmit(3) == (1, 0)


@pytest.mark.rule("SR-115")
def test_numbers_end() -> None:
    ring = OutSequence()
    ring.resume(5, 0xFFFFFFFF, 0xFFFFFFF0, 1)
    assert ring.assign(1, 1) == 0xFFFFFFFF
    with pytest.raises(OverflowError):
        ring.assign(2, 2)

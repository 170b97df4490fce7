"""Units of work: nested, kept or rolled back, in the store and in memory, against a plain model."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.memorystore import MemoryWriter
from msmq_fast._native.outsequence import OutSequence
from msmq_fast._native.tables import StoreError
from msmq_fast.store.schema import Table

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5), st.binary(max_size=4)),
        st.tuples(st.just("delete"), st.integers(0, 5)),
        st.tuples(st.just("entry"), st.binary(min_size=56, max_size=56)),
        st.just(("begin",)),
        st.just(("keep",)),
        st.just(("back",)),
    ),
    max_size=60,
)


class Model:
    """What the store holds and what memory says, by copies of both at the begin of each unit."""

    def __init__(self) -> None:
        self.table: dict[bytes, bytes] = {}
        self.entries: list[bytes] = []
        self.memory: list[int] = []
        self.copies: list[tuple[dict[bytes, bytes], list[bytes], list[int]]] = []

    def begin(self) -> None:
        self.copies.append((dict(self.table), list(self.entries), list(self.memory)))

    def back(self) -> None:
        self.table, self.entries, self.memory = self.copies.pop()


@given(STEPS)
@settings(max_examples=300, deadline=None)
def test_units_against_a_model(steps: list[tuple[object, ...]]) -> None:
    writer, model = MemoryWriter(), Model()
    memory: list[int] = []
    for number, step in enumerate(steps):
        match step:
            case ("put", int(key), bytes(value)):
                writer.put_record(Table.META, b"%d" % key, value)
                model.table[b"%d" % key] = value
            case ("delete", int(key)):
                writer.delete_record(Table.META, b"%d" % key)
                model.table.pop(b"%d" % key, None)
            case ("entry", bytes(entry)):
                writer.add_entry(Table.FEED, entry)
                model.entries.append(entry)
            case ("begin",):
                writer.begin_unit()
                model.begin()
                memory.append(number)
                model.memory.append(number)
                writer.on_roll_back(memory.pop)
            case ("keep",) if model.copies:
                writer.keep_unit()
                model.copies.pop()
            case ("back",) if model.copies:
                writer.roll_back()
                model.back()
        assert memory == model.memory
        assert writer.in_unit == bool(model.copies)
    while model.copies:
        writer.keep_unit()
        model.copies.pop()
    assert writer.next_entry(Table.FEED) == len(model.entries) + 1
    writer.complete_all()
    assert writer.tables.tables[Table.META] == model.table
    packs = list(writer.tables.tables[Table.FEED].values())
    assert b"".join(pack[8:] for pack in packs) == b"".join(model.entries)
    assert not len(writer.undo)


def test_what_undoes_runs_the_latest_first_and_only_that_of_the_unit() -> None:
    writer = MemoryWriter()
    undone: list[int] = []
    with writer.unit():
        writer.on_roll_back(lambda: undone.append(1))
        writer.begin_unit()
        writer.on_roll_back(lambda: undone.append(2))
        writer.on_roll_back(lambda: undone.append(3))
        writer.roll_back()
        assert undone == [3, 2]
    assert undone == [3, 2]
    writer.on_roll_back(lambda: undone.append(4))  # outside of units nothing is undone
    with pytest.raises(KeyError), writer.unit():
        raise KeyError
    assert undone == [3, 2]


def test_a_notice_of_a_unit_that_was_rolled_back_is_not_given() -> None:
    writer = MemoryWriter()
    told: list[str] = []
    with writer.unit():
        writer.when_durable(lambda _: told.append("outer"))
        writer.begin_unit()
        writer.when_durable(lambda _: told.append("inner"))
        writer.roll_back()
    writer.complete_all()
    assert told == ["outer"]


def test_an_undo_that_raises_ends_the_store_and_the_others_run() -> None:
    writer = MemoryWriter()
    failures: list[int] = []
    undone: list[int] = []
    writer.on_failure.connect(failures.append)
    writer.begin_unit()
    writer.on_roll_back(lambda: undone.append(1))
    writer.on_roll_back(lambda: [].pop())
    with pytest.raises(ExceptionGroup, match="could not be undone"):
        writer.roll_back()
    assert undone == [1]
    assert failures
    with pytest.raises(StoreError):
        writer.begin_unit()


def test_a_unit_of_which_an_operation_was_refused_is_not_kept() -> None:
    writer = MemoryWriter()
    undone: list[int] = []
    writer.begin_unit()
    writer.on_roll_back(lambda: undone.append(1))
    writer.put_record(Table.META, b"a", b"1")
    writer.fail_call(1)
    with pytest.raises(StoreError, match="refused by the test"):
        writer.put_record(Table.META, b"b", b"2")
    with pytest.raises(StoreError, match="this unit of work was refused"):
        writer.keep_unit()
    assert undone == [1]
    assert not writer.in_unit
    assert not writer.failed
    writer.put_record(Table.META, b"c", b"3")
    writer.complete_all()
    assert writer.tables.tables[Table.META] == {b"c": b"3"}


@pytest.mark.parametrize("where", ["inner", "outer"])
def test_a_refused_operation_takes_its_own_unit_and_not_the_one_around_it(where: str) -> None:
    writer = MemoryWriter()
    writer.begin_unit()
    writer.put_record(Table.META, b"a", b"1")
    if where == "outer":
        writer.fail_call(1)
        with pytest.raises(StoreError):
            writer.put_record(Table.META, b"b", b"2")
    writer.begin_unit()
    if where == "inner":
        writer.fail_call(1)
    with pytest.raises(StoreError) if where == "inner" else nullcontext():
        writer.put_record(Table.META, b"c", b"3")
    writer.roll_back()
    if where == "outer":
        with pytest.raises(StoreError, match="refused"):
            writer.keep_unit()
    else:
        writer.keep_unit()
    writer.complete_all()
    assert writer.tables.tables[Table.META] == ({b"a": b"1"} if where == "inner" else {})


SEQUENCE_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *(["assign"] * 5 + ["begin"] * 3 + ["back"] * 3 + ["remove"] * 4 + ["transmit"] * 2),
                *("keep", "acknowledged", "returned", "order", "next"),
            ]
        ),
        st.integers(1, 12),
    ),
    max_size=60,
)


def seen(sequence: OutSequence) -> tuple[object, ...]:
    return (
        *(list(keys()) for keys in (sequence.keys, sequence.underway, sequence.covered)),
        sequence.first_unordered,
        sequence.last_unordered,
        (sequence.identifier, sequence.next_number, sequence.unordered, sequence.sent, sequence.finals),
        (sequence.last_ack, sequence.ack_count, sequence.highest),
    )


@given(SEQUENCE_STEPS)
@settings(max_examples=2000, deadline=None)
def test_a_sequence_is_as_before_a_unit_that_is_rolled_back(steps: list[tuple[str, int]]) -> None:
    writer = MemoryWriter()
    sequence = OutSequence(writer.undo)
    sequence.begin(1)
    copies: list[tuple[object, ...]] = []
    key = 0
    for step, number in steps:
        match step:
            case "assign":
                key += 1
                sequence.assign(key, number)
            case "remove" | "acknowledged" | "returned" if sequence.keys():
                getattr(sequence, step)(sequence.keys()[number % len(sequence.keys())])
            case "order":
                sequence.order(number)
            case "transmit" if sequence.keys() and not copies:  # what was sent is not taken back
                sequence.transmit(sequence.keys()[number % len(sequence.keys())])
            case "next" if not sequence.unordered:
                sequence.begin(sequence.identifier + 1)
            case "begin":
                writer.begin_unit()
                copies.append(seen(sequence))
            case "keep" if copies:
                writer.keep_unit()
                copies.pop()
            case "back" if copies:
                writer.roll_back()
                assert seen(sequence) == copies.pop()
                key = max([*sequence.keys(), key])
    while copies:
        writer.roll_back()
        assert seen(sequence) == copies.pop()

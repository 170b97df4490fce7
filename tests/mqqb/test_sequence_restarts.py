"""Outgoing sequences after a crash, from a restored copy, from older and from damaged records."""

from __future__ import annotations

import pytest

from msmq_fast.qm.outgoing.sequences import transfer_info
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from msmq_fast.store.store import Store, renew_incarnation
from tests.mqqb.transactional import Sender, sender
from tests.support.clocks import WALL

__all__ = ["sender"]


@pytest.mark.rule("DU-19", "KV-08", "KV-09", "QB-094", "QB-105", "QB-139", "QB-140", "QB-333", "REC-09")
@pytest.mark.rule("DU-14")
def test_a_crash_changes_no_number(sender: Sender) -> None:
    sender.send(b"1", b"2")
    sender.connect()
    first = sender.taken()[0]
    sender.keep(2)
    sender.send(b"3")
    sender.taken()
    sender.order(first)
    sender.world.crash()
    sender.restart()
    info = transfer_info(sender.queue)
    assert (info.no_ack_count, str(info.next_sequence)) == (2, f"{first.stamp}.{first.ordinal}:4 after 3")
    sender.send(b"4")
    sender.connect()
    again = sender.taken()
    assert [sent.place for sent in again] == [(2, 1), (3, 2), (4, 3)]
    assert {sent.ordinal for sent in again} == {first.ordinal}
    sender.order(again[-1])
    sender.keep(3)
    assert sender.queue.messages == 0
    sender.send(b"5")
    (fifth,) = sender.taken()
    assert (fifth.place, fifth.ordinal > first.ordinal) == ((1, 0), True)


def put_back(sender: Sender) -> None:
    """The sender runs on from an old state of its store: a copy was restored."""
    tables = sender.world.writer.crash()
    store = sender.world.store = Store.in_memory(now_s=WALL, random=sender.world.random, tables=tables)
    with store.unit():
        renew_incarnation(store.tables, store.writer, WALL + 100)
    store.commit()
    store = sender.world.store = Store.in_memory(
        now_s=WALL, random=sender.world.random, tables=sender.world.writer.crash()
    )
    sender.world._begin()
    sender.restart()


@pytest.mark.rule("DU-19", "QB-094")
def test_a_restored_sender_gives_no_number_that_the_original_may_have_given_since(sender: Sender) -> None:
    sender.send(b"1", b"2")
    put_back(sender)
    sender.send(b"3")
    sender.connect()
    first, second, third = sender.taken()
    assert [first.place, second.place] == [(1, 0), (2, 1)]
    assert third.number > 1 << 24
    assert third.previous == 2
    sender.keep(3)
    sender.order(first, 500)  # the receiver has had 498 more of the original
    assert sender.queue.messages == 1
    sender.order(third)
    assert sender.queue.messages == 0
    sender.send(b"4")
    (fourth,) = sender.taken()
    assert (fourth.place, fourth.stamp) == ((1, 0), WALL + 100)


@pytest.mark.rule("DU-19")
def test_numbers_are_set_apart_once_for_each_restored_copy(sender: Sender) -> None:
    sender.send(b"1")
    put_back(sender)
    once = transfer_info(sender.queue).next_sequence.number
    sender.world.crash()
    sender.restart()
    assert transfer_info(sender.queue).next_sequence.number == once
    assert once > 1 << 24


@pytest.mark.parametrize("stamp", [WALL, WALL + 1])
def test_identifiers_grow_behind_the_last_ordinal_too(stamp: int) -> None:
    sender = Sender()
    streams = sender.manager.streams
    streams._stamp = stamp
    streams.ordinals.last, streams.ordinals.limit = (1 << 32) - 2, (1 << 32) + 99
    found = []
    for _ in range(3):
        sender.send(b"1")
        found.append(sender.queue.core.sequence.identifier)  # type: ignore[union-attr]
        sender.manager.purge(sender.queue)
        sender.world.run()
    assert found == [(stamp << 32) + (1 << 32) - 1 + more for more in range(3)]


@pytest.mark.rule("QB-112", "QB-092", "QB-094", "QB-213")
def test_a_sequence_identifier_is_never_used_again(sender: Sender) -> None:
    seen: set[int] = set()
    for number in range(3):
        sender.send(b"%d" % number)
        sender.connect()
        (sent,) = sender.taken()
        assert sent.ordinal not in seen
        seen.add(sent.ordinal)
        sender.keep(1)
        sender.order(sent)
        sender.world.crash()
        sender.restart()


@pytest.mark.rule("REC-09", "DU-19")
def test_messages_of_a_store_without_numbers_get_them(sender: Sender) -> None:
    sender.send(b"1", b"2")
    tables = sender.world.writer.tables.tables
    for key, value in list(tables[Table.POSITION].items()):
        tables[Table.POSITION][key] = b"\x01" + value[1 : decode.POSITION.size]
    tables[Table.SEQUENCE].clear()
    for _ in range(2):
        sender.world.crash()
        sender.restart()
    sender.connect()
    assert [(sent.body, *sent.place) for sent in sender.taken()] == [(b"1", 1, 0), (b"2", 2, 1)]


@pytest.mark.rule("REC-09")
def test_what_was_ordered_and_not_acknowledged_is_not_loaded_again(sender: Sender) -> None:
    """Recovery reads the state of the sequences before the messages that it applies to."""
    sender.send(b"1", b"2", b"3")
    sender.connect()
    second = sender.taken()[1]
    sender.order(second)
    sender.world.crash()
    sender.restart()
    assert sender.queue.messages == 1
    sender.connect()
    assert [sent.place for sent in sender.taken()] == [(3, 2)]


@pytest.mark.rule("REC-09")
@pytest.mark.parametrize("record", [b"", b"\x01" + bytes(31), b"\x02" + bytes(40)])
def test_a_damaged_state_is_set_aside_and_the_numbers_stay(sender: Sender, record: bytes) -> None:
    sender.send(b"1", b"2")
    sender.connect()
    first = sender.taken()[0]
    tables = sender.world.writer.tables.tables
    (key,) = tables[Table.SEQUENCE]
    tables[Table.SEQUENCE][key] = record
    sender.world.crash()
    sender.restart()
    assert sender.manager.damage["sequence"] == 1
    sender.connect()
    again = sender.taken()
    assert [sent.place for sent in again] == [(1, 0), (2, 1)]
    assert again[0].ordinal == first.ordinal

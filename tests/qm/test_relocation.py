"""Batches of an operator: one unit each, so that nothing is lost or doubled when a commit fails or a process
dies.
"""

from __future__ import annotations

import errno
from array import array
from collections import Counter
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.operations import Identifiers, survey
from msmq_fast.packet import Message
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol import errors
from msmq_fast.qm.operator.importing import Entry, Import
from msmq_fast.qm.operator.outcome import Outcome
from msmq_fast.qm.operator.relocation import relocate
from msmq_fast.qm.queues.browse import BATCH_BYTES, SEQUENCE_MASK, Selection, Stretch, browse
from msmq_fast.security.sid import sid
from msmq_fast.store.completion import Completion
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World

ALL = Stretch(Selection())
JOB = b"j" * 16
SID = sid("S-1-5-21-7-8-9-1001").data


@pytest.fixture
def world() -> World:
    world = World()
    world.create("source")
    world.create("target")
    return world


def fill(world: World, count: int, name: str = "source", **values: object) -> None:
    for number in range(count):
        world.send(b"%d" % number, name, priority=number % 8, label=f"l{number}", **values)


def shift(world: World, stretch: Stretch = ALL, *, keep: bool = False) -> Completion[Outcome]:
    manager = world.manager
    return relocate(manager.store, manager.find("source"), manager.find("target"), stretch, keep=keep)


def bodies(world: World, name: str) -> Counter[bytes]:
    return Counter(world.bodies(name))


def every(count: int) -> Counter[bytes]:
    return Counter(b"%d" % number for number in range(count))


def packets(world: World, name: str) -> list[bytes]:
    page = world.finish(browse(world.manager.find(name).core, ALL))
    return [message.packet for message in page.messages]


def entries(world: World, name: str) -> list[Entry]:
    page = world.finish(browse(world.manager.find(name).core, ALL))
    return [(m.packet, m.arrived_us, m.abort_count, m.move_count, m.reason) for m in page.messages]


# ------------------------------------------------------------------------------------------ moving


@pytest.mark.parametrize("keep", [False, True])
def test_no_way_round_what_a_queue_demands_of_its_messages(world: World, keep: bool) -> None:
    world.finish(world.manager.set_properties(world.manager.find("target"), authenticated=True))
    world.send(b"plain", "source")
    with pytest.raises(errors.MessageNotAuthenticated):
        world.finish(shift(world, keep=keep))
    assert world.manager.find("source").messages == 1
    world.finish(world.manager.set_properties(world.manager.find("target"), authenticated=False, privacy=2))
    with pytest.raises(errors.MSMQError, match="encrypted"):
        world.finish(shift(world, keep=keep))
    world.finish(world.manager.set_properties(world.manager.find("target"), privacy=1))
    world.finish(shift(world, keep=keep))
    assert bodies(world, "target") == Counter([b"plain"])


def test_what_was_verified_when_it_came_may_go_where_that_is_demanded(world: World) -> None:
    world.finish(world.manager.set_properties(world.manager.find("target"), authenticated=True))
    world.send(b"0", "source", security=SecurityHeader(1, sender_id=SID, authentication_level=3))
    world.finish(shift(world))
    assert bodies(world, "target") == every(1)


def test_batches_follow_arrival_and_end_at_the_bound(world: World) -> None:
    fill(world, 20)
    core = world.manager.find("source").core

    def examined(after: int, upto: int) -> list[int]:
        found, _, finished = survey(core, after, upto, 100)
        assert finished
        return [key for key, _ in found]

    keys = examined(0, SEQUENCE_MASK)
    assert [key & SEQUENCE_MASK for key in keys] == sorted(key & SEQUENCE_MASK for key in keys)
    assert len(keys) == 20
    middle = keys[9] & SEQUENCE_MASK
    assert examined(0, middle) == keys[:10]
    assert examined(middle, SEQUENCE_MASK) == keys[10:]
    page = world.finish(browse(core, Stretch(Selection(), limit=7)))
    assert (len(page.messages), page.finished, page.next) == (7, False, keys[6] & SEQUENCE_MASK)


def test_a_batch_is_bounded_in_bytes(world: World) -> None:
    for number in range(5):
        world.send(b"%d" % number + bytes(BATCH_BYTES // 2), "source")
    done = world.finish(shift(world))
    assert done.count < 3
    assert not done.finished
    while not done.finished:
        done = world.finish(shift(world, Stretch(Selection(), done.next)))
    assert len(world.bodies("target")) == 5
    assert world.bodies("source") == []


@pytest.mark.parametrize("keep", [False, True])
def test_a_commit_that_fails_leaves_both_queues_as_they_were(world: World, keep: bool) -> None:
    fill(world, 10)
    before = world.bodies("source")
    for _ in range(2):
        done = shift(world, keep=keep)
        world.store.reader.complete()
        world.writer.submit()
        world.writer.complete_one(errno.ENOSPC)
        with pytest.raises(errors.MessageStorageFailed):
            done.result()
        assert world.bodies("source") == before
        assert world.bodies("target") == []
    world.advance(2)
    assert world.finish(shift(world, keep=keep)).count == 10
    world.crash()
    assert bodies(world, "target") == every(10)
    assert world.bodies("source") == (before if keep else [])


@pytest.mark.parametrize("durable", [False, True])
def test_a_crash_keeps_all_of_a_batch_or_nothing(world: World, durable: bool) -> None:
    fill(world, 10)
    shift(world)
    world.store.reader.complete()
    if durable:
        world.writer.submit()
        world.writer.complete_one()
    world.crash()
    there, gone = ("target", "source") if durable else ("source", "target")
    assert bodies(world, there) == every(10)
    assert world.bodies(gone) == []


def test_accounts_fit_after_a_move(world: World) -> None:
    fill(world, 10)
    source, target = world.manager.find("source"), world.manager.find("target")
    before = (source.core.messages, source.core.bytes, world.manager.ledger.bytes)
    world.finish(shift(world))
    assert (source.core.messages, source.core.bytes, source.core.used_bytes) == (0, 0, 0)
    assert (target.core.messages, target.core.bytes, world.manager.ledger.bytes) == before


def test_messages_that_somebody_holds_stay(world: World) -> None:
    fill(world, 4)
    core = world.manager.find("source").core
    owner = world.manager.ledger.new_owner()
    held = core.take(2, 1 << 20, owner)
    assert world.finish(shift(world)).count == 2
    core.release(array("Q", [message.lookup_id for message in held]), owner)
    assert world.finish(shift(world)).count == 2


def test_a_message_taken_while_its_packet_is_read_is_not_moved(world: World) -> None:
    fill(world, 3)
    world.crash()  # the packets are on disk only
    done = shift(world)
    assert not done.done
    core = world.manager.find("source").core
    first = core.positions.first()
    assert first is not None
    assert core.claim(first, 99)
    assert world.finish(done).count == 2
    core.release(array("Q", [first]), 99)
    assert bodies(world, "source") + bodies(world, "target") == every(3)


def test_what_is_selected(world: World) -> None:
    fill(world, 12)
    world.advance(100)
    world.send(b"late", "source", label="l1")
    now_us = world.clock.wall
    select = {
        Selection("l1"): 2,
        Selection("l1*"): 4,
        Selection("L1"): 0,
        Selection(message_class=0): 13,
        Selection(message_class=2): 0,
        Selection(until_us=now_us - 50_000_000): 12,
        Selection("l1", since_us=now_us - 50_000_000): 1,
    }
    for selection, expected in select.items():
        page = world.finish(browse(world.manager.find("source").core, Stretch(selection)))
        assert len(page.messages) == expected, selection


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32), st.lists(st.sampled_from(["move", "copy", "fail", "crash", "send"]), max_size=12)
)
def test_against_a_model(seed: int, steps: list[str]) -> None:
    random = Random(seed)
    world = World()
    world.create("source")
    world.create("target")
    source: Counter[bytes] = Counter()
    target: Counter[bytes] = Counter()
    number = 0
    for step in steps:
        stretch = Stretch(Selection(), limit=random.randrange(1, 5))
        match step:
            case "send":
                for _ in range(random.randrange(5)):
                    number += 1
                    world.send(b"%d" % number, "source", priority=random.randrange(8))
                    source[b"%d" % number] += 1
            case "crash":
                world.crash()
            case "fail":
                shift(world, stretch)
                world.store.reader.complete()
                world.writer.submit()
                world.writer.complete_one(errno.ENOSPC)
                world.advance(2)
            case _:
                before = bodies(world, "target")
                done = world.finish(shift(world, stretch, keep=step == "copy"))
                moved = bodies(world, "target") - before
                assert moved.total() == done.count
                target += moved
                if step == "move":
                    source -= moved
        assert bodies(world, "source") == source
        assert bodies(world, "target") == target


# ------------------------------------------------------------------------------------------ dead letters


def dead(world: World, destination: str, count: int) -> None:
    """Messages for a queue that end up in the dead-letter queue."""
    for number in range(count):
        world.send(b"%d" % number, destination, journal=1, time_to_be_received=1)
    world.advance(3)
    assert len(world.bodies(r".\system$;deadletter")) == count


def send_again(world: World) -> Completion[Outcome]:
    return world.manager.resubmission.resubmit(world.manager.find(r".\system$;deadletter"), ALL, None)


def test_a_resubmission_that_is_not_kept_leaves_the_dead_letters(world: World) -> None:
    dead(world, "target", 5)
    done = send_again(world)
    world.store.reader.complete()
    world.writer.submit()
    world.writer.complete_one(errno.ENOSPC)
    with pytest.raises(errors.MessageStorageFailed):
        done.result()
    assert len(world.bodies(r".\system$;deadletter")) == 5
    assert world.bodies("target") == []
    world.advance(2)
    assert world.finish(send_again(world)).count == 5
    world.crash()
    assert bodies(world, "target") == every(5)
    assert world.bodies(r".\system$;deadletter") == []


def test_a_message_that_is_sent_again_is_of_this_moment(world: World) -> None:
    dead(world, "target", 1)
    (old,) = packets(world, r".\system$;deadletter")
    world.advance(1000)
    world.finish(send_again(world))
    (new,) = packets(world, "target")
    before, after = Message.from_packet(old), Message.from_packet(new)
    assert after.message_id != before.message_id
    assert (after.source_machine, after.sent_time) == (world.manager.guid, WALL + 1003)
    after.message_id, after.sent_time = before.message_id, before.sent_time
    assert after == before


def test_refusals_are_told_by_reason(world: World) -> None:
    dead(world, "target", 3)
    world.finish(world.manager.delete_queue("target"))
    done = world.finish(send_again(world))
    assert (done.count, done.finished) == (0, True)
    ((reason, count),) = done.refusals.items()
    assert count == 3
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in reason


def test_what_is_sent_again_is_signed_where_that_is_demanded(world: World) -> None:
    dead(world, "target", 1)
    world.finish(world.manager.set_properties(world.manager.find("target"), authenticated=True))
    done = world.finish(send_again(world))
    assert done.count == 0
    ((reason, _),) = done.refusals.items()
    assert "NOT_AUTHENTICATED" in reason


# ------------------------------------------------------------------------------------------ imports


def begin(world: World, *, anew: bool = False) -> tuple[Import, int]:
    running = Import(world.manager.services, world.manager.jobs, JOB)
    return running, world.finish(running.begin(anew=anew))


def test_an_import_goes_on_where_a_crash_left_it(world: World) -> None:
    fill(world, 9)
    found = entries(world, "source")
    running, done = begin(world)
    assert done == 0
    target = world.manager.find("target")
    assert world.finish(running.put(target, 0, found[:4], skip=False, last=False)) == (4, 0)
    running.put(target, 4, found[4:6], skip=False, last=False)
    world.crash()
    target = world.manager.find("target")
    assert len(world.bodies("target")) == 4
    world.receive("target")
    running, done = begin(world)
    assert done == 4
    assert world.finish(running.put(target, 4, found[4:], skip=False, last=False)) == (5, 0)
    assert world.finish(running.put(None, 9, [], skip=False, last=True)) == (0, 0)
    running.close()
    assert len(world.bodies("target")) == 8
    # Now it is complete, and the same file is another import.
    running, done = begin(world)
    assert done == 0
    with pytest.raises(errors.InvalidParameter, match="identifier"):
        running.put(target, 0, found[-1:], skip=False, last=False)
    running, _ = begin(world)
    assert world.finish(running.put(target, 0, found, skip=True, last=False)) == (1, 8)


def test_an_import_whose_queue_was_deleted_begins_anew(world: World) -> None:
    fill(world, 4)
    found = entries(world, "source")
    running, _ = begin(world)
    world.finish(running.put(world.manager.find("target"), 0, found[:3], skip=False, last=False))
    running.close()
    assert begin(world)[0].done == 3
    world.manager.jobs.importing.clear()
    world.finish(world.manager.delete_queue("target"))
    world.create("target")
    running, at = begin(world)
    assert at == 0
    world.finish(running.put(world.manager.find("target"), 0, found, skip=False, last=True))
    assert bodies(world, "target") == every(4)


def test_what_belongs_to_a_message_is_kept(world: World) -> None:
    fill(world, 1)
    ((packet, arrived, _, _, _),) = entries(world, "source")
    running, _ = begin(world)
    given = (packet, arrived - 5_000_000, 7, 8, 0xC001)
    world.finish(running.put(world.manager.find("target"), 0, [given], skip=False, last=False))
    assert entries(world, "target") == [given]
    world.crash()
    assert entries(world, "target") == [given]


def test_an_arrival_in_the_future_is_one_of_now(world: World) -> None:
    fill(world, 1)
    ((packet, *_),) = entries(world, "source")
    running, _ = begin(world)
    target = world.manager.find("target")
    world.finish(running.put(target, 0, [(packet, 1 << 62, 0, 0, 0)], skip=False, last=False))
    assert entries(world, "target")[0][1] == world.clock.wall


def test_a_commit_that_fails_ends_an_import_that_can_begin_again(world: World) -> None:
    fill(world, 6)
    found = entries(world, "source")
    target = world.manager.find("target")
    running, _ = begin(world)
    world.finish(running.put(target, 0, found[:2], skip=False, last=False))
    done = running.put(target, 2, found[2:4], skip=False, last=False)
    world.writer.submit()
    world.writer.complete_one(errno.ENOSPC)
    with pytest.raises(errors.MessageStorageFailed):
        done.result()
    with pytest.raises(errors.InvalidParameter):
        running.put(target, 4, found[4:], skip=False, last=False)
    world.advance(2)
    running, at = begin(world)
    assert at == 2
    assert world.finish(running.put(target, 2, found[2:], skip=False, last=False)) == (4, 0)
    assert bodies(world, "target") == every(6)


def test_imports_that_cannot_be(world: World) -> None:
    fill(world, 2)
    found = entries(world, "source")
    target = world.manager.find("target")
    running, _ = begin(world)
    with pytest.raises(errors.SharingViolation):
        Import(world.manager.services, world.manager.jobs, JOB)
    for first, records, queue in (
        (1, found, target),
        (0, found, None),
        (0, [(b"no packet", 0, 0, 0, 0)], target),
        (0, [(found[0][0] + b"x", 0, 0, 0, 0)], target),
        (0, [(found[0][0][:-4], 0, 0, 0, 0)], target),
    ):
        with pytest.raises(errors.InvalidParameter):
            running.put(queue, first, records, skip=False, last=False)
        running.close()
        running, at = begin(world)
        assert at == 0
    world.sender(r"DIRECT=TCP:10.9.9.9\private$\far")
    (outgoing,) = world.manager.outgoing()
    with pytest.raises(errors.InvalidParameter, match="outgoing"):
        running.put(outgoing, 0, found, skip=False, last=False)
    assert world.bodies("target") == []
    with pytest.raises(errors.InvalidParameter, match="16 bytes"):
        world.manager.jobs.find(b"short")


def test_a_bad_record_keeps_what_came_before(world: World) -> None:
    fill(world, 3)
    found = entries(world, "source")
    running, _ = begin(world)
    bad: Entry = (b"no packet", 0, 0, 0, 0)
    done = running.put(world.manager.find("target"), 0, [*found[:2], bad, found[2]], skip=False, last=False)
    with pytest.raises(errors.InvalidParameter, match="record 2"):
        world.finish(done)
    assert bodies(world, "target") == every(2)
    _, at = begin(world)
    assert at == 2


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), max_size=80))
def test_identifiers_are_a_set(given_ids: list[tuple[int, int]]) -> None:
    world = World()
    known = Identifiers(world.create().core)
    model: set[tuple[int, int]] = set()
    for source, ordinal in given_ids:
        message = Message(source_machine=UUID(int=source), message_id=ordinal)
        message.destination = world.manager.find("orders").format_name(world.manager.guid)
        packet = message.to_packet()
        assert (packet in known) is ((source, ordinal) in model)
        assert known.add(packet) is ((source, ordinal) not in model)
        model.add((source, ordinal))
        assert len(known) == len(model)


def test_identifiers_of_a_queue(world: World) -> None:
    fill(world, 50)
    fill(world, 3, "target")
    known = Identifiers(world.manager.find("source").core)
    assert len(known) == 50
    assert all(packet in known for packet in packets(world, "source"))
    assert not any(packet in known for packet in packets(world, "target"))

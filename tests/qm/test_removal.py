"""The removal of selected messages: one unit a batch, the side effects of a purge, and what stays with the
reason.
"""

from __future__ import annotations

import errno

import pytest

from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import MessageStorageFailed
from msmq_fast.protocol.hresults import HRESULTS
from msmq_fast.protocol.properties import Acknowledge
from msmq_fast.qm.access import Access
from msmq_fast.qm.operator.outcome import Outcome
from msmq_fast.qm.operator.removal import remove
from msmq_fast.qm.queues.browse import Selection, Stretch, browse, lookup_order
from tests.support.worlds.queue_manager import World


@pytest.fixture
def world() -> World:
    world = World()
    world.create("source")
    return world


def fill(world: World, count: int, **values: object) -> list[int]:
    """Send messages; returns their lookup ids in the order of arrival."""
    for number in range(count):
        world.send(b"%d" % number, "source", priority=number % 8, label=f"l{number}", **values)
    page = world.finish(browse(world.manager.find("source").core, Stretch(Selection())))
    return [message.lookup_id for message in page.messages]


def removed(world: World, selection: Selection, *, dry_run: bool = False, limit: int = 1000) -> Outcome:
    manager = world.manager
    stretch = Stretch(selection, limit=limit)
    return world.finish(remove(manager.store, manager.find("source"), stretch, dry_run=dry_run))


def reasons(outcome: Outcome) -> dict[str, list[int]]:
    return {HRESULTS[code]: found for (code, _), found in outcome.refused.items()}


@pytest.mark.parametrize("recoverable", [False, True])
def test_selected_messages_leave_and_stay_gone_after_a_restart(world: World, recoverable: bool) -> None:
    ids = fill(world, 6, delivery=int(recoverable))
    chosen = Selection(lookup_ids=lookup_order([ids[4], ids[1]]))
    planned = removed(world, chosen, dry_run=True)
    assert (planned.count, planned.finished, world.manager.find("source").messages) == (2, True, 6)
    done = removed(world, chosen)
    assert (done.count, done.size, done.refused) == (2, planned.size, {})
    assert sorted(world.bodies("source")) == [b"0", b"2", b"3", b"5"]
    world.crash()
    assert sorted(world.bodies("source")) == ([b"0", b"2", b"3", b"5"] if recoverable else [])


def test_each_lookup_id_that_stays_has_its_reason(world: World) -> None:
    ids = fill(world, 4)
    reader = world.manager.open("source", Access.RECEIVE)
    held = reader.begin_now()
    assert held is not None
    missing = max(ids) + 1000
    free = [one for one in ids if one != held.lookup_id]
    chosen = Selection(label="l[0-2]", lookup_ids=lookup_order([*ids, missing]))
    labelled = [one for one in ids[:3] if one in free]
    for dry_run in (True, False):
        done = removed(world, chosen, dry_run=dry_run)
        assert done.count == len(labelled)
        found = reasons(done)
        assert found["MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"] == [held.lookup_id]
        assert sorted(found["MQ_ERROR_MESSAGE_NOT_FOUND"]) == sorted({*free, missing} - set(labelled))
    assert world.manager.find("source").messages == 4 - len(labelled)


def test_batches_name_each_lookup_id_once(world: World) -> None:
    ids = fill(world, 10)
    wanted = [*ids, 0, 1 << 63, ids[-1] + 5]
    after, count, named, finished = 0, 0, [], False
    while not finished:
        stretch = Stretch(Selection(lookup_ids=lookup_order(wanted)), after, limit=3)
        manager = world.manager
        done = world.finish(remove(manager.store, manager.find("source"), stretch, dry_run=False))
        count += done.count
        named += [one for found in done.refused.values() for one in found]
        after, finished = done.next, done.finished
    assert (count, sorted(named)) == (10, sorted([0, 1 << 63, ids[-1] + 5]))


@pytest.mark.parametrize("recoverable", [False, True])
def test_the_sender_gets_the_acknowledgment_of_a_purge(world: World, recoverable: bool) -> None:
    world.create("answers")
    answers = parse_format_name(r"DIRECT=OS:HOST\private$\answers")
    fill(world, 2, delivery=int(recoverable), acknowledge=Acknowledge(12), admin_queue=answers)
    world.crash()  # the bodies of stored messages are no longer in memory
    if not recoverable:
        fill(world, 2, delivery=0, acknowledge=Acknowledge(12), admin_queue=answers)
    assert removed(world, Selection(label="l1")).count == 1
    assert world.manager.find("answers").messages == 1
    page = world.finish(browse(world.manager.find("answers").core, Stretch(Selection())))
    only = Selection(message_class=MessageClass.NACK_Q_PURGED)
    assert len(world.finish(browse(world.manager.find("answers").core, Stretch(only))).messages) == 1
    assert len(page.messages) == 1


def test_a_failed_commit_is_an_error(world: World) -> None:
    fill(world, 2)
    manager = world.manager
    done = remove(manager.store, manager.find("source"), Stretch(Selection()), dry_run=False)
    world.store.reader.complete()
    world.writer.submit()
    world.writer.complete_one(errno.ENOSPC)
    with pytest.raises(MessageStorageFailed):
        done.result()

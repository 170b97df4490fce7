"""How long stages live: quotas, discarding, expiry, restarts, damage, and queues that are deleted."""

from __future__ import annotations

import pytest

from msmq_fast.protocol.errors import InsufficientResources, OperationCancelled, QueueDeleted
from msmq_fast.qm.bulk.rollforward import Publication
from msmq_fast.qm.bulk.stages import Part
from tests.bulk.publications import REMOTE, held, step, used, world
from tests.support.worlds.queue_manager import World
from tests.support.worlds.stages import bodies, counts, opened, publish, put, staged

__all__ = ["world"]


def test_quota_is_taken_by_the_stage_and_given_back(world: World) -> None:
    world.create("small", quota_kb=1)
    stage = staged(world, [("small", bytes(100))])
    before = world.manager.find("small").core.used_bytes
    assert 200 < before < 300
    with pytest.raises(
        InsufficientResources, match=r"row 2: HOST.private\$.small: the queue's quota is used up"
    ):
        staged(world, [("small", bytes(100)) for _ in range(6)], number=1)
    world.run()
    assert world.manager.find("small").core.used_bytes == before
    assert world.finish(world.manager.staging.discard([stage, stage, 32 * "0"])) == 1
    assert used(world) == (0, 0)
    assert counts(world) == (0, 0, 0)


def test_stages_that_nobody_publishes_go_after_their_time(world: World) -> None:
    staged(world, [("plain", b"%d" % n) for n in range(3000)])
    world.advance(300)
    world.crash()
    assert len(world.manager.staging) == 1
    world.advance(299)
    assert len(world.manager.staging) == 1
    world.advance(2)
    assert len(world.manager.staging) == 0
    assert counts(world) == (0, 0, 0)
    assert used(world) == (0, 0)


def test_a_batch_may_take_longer_than_a_stage_lives_as_long_as_it_goes_on(world: World) -> None:
    """What the first tasks of a long job brought is there when the last one ends, over a restart too."""
    stages = []
    for number in range(4):
        stages.append(staged(world, [("plain", b"%d" % number)], number=number))
        staged(world, [("plain", b"x")], batch=1 + number)
        world.advance(400)
        if number == 2:
            world.crash()
    assert publish(world, stages=stages).rows == 4
    world.advance(600)
    assert len(world.manager.staging) == 0


def test_a_stage_that_is_not_complete_is_gone_after_a_crash(world: World) -> None:
    stage = opened(world, Part("w", 0, 0, 0))
    put(world, stage, [("plain", b"%d" % n) for n in range(3000)])
    world.run()
    assert counts(world)[1] == 2048
    world.crash()
    assert counts(world) == (0, 0, 0)
    assert used(world) == (0, 0)


def test_a_stage_is_given_up(world: World) -> None:
    stage = opened(world, Part("w", 0, 0, 0))
    put(world, stage, [("plain", b"%d" % n) for n in range(3000)])
    stage.abort()
    stage.abort()
    world.run()
    assert counts(world) == (0, 0, 0)
    assert used(world) == (0, 0)


def test_giving_up_while_the_end_is_being_written(world: World) -> None:
    stage = opened(world, Part("w", 0, 0, 0))
    put(world, stage, [("plain", b"1")])
    done = stage.finish()
    world.writer.submit()
    stage.abort()
    world.run()
    with pytest.raises(OperationCancelled):
        done.result()
    assert counts(world) == (0, 0, 0)
    world.crash()
    assert len(world.manager.staging) == 0


def test_stages_wait_for_a_restart_with_their_quota(world: World) -> None:
    stage = staged(world, [("plain", b"1"), ("exact", b"2"), (REMOTE, b"3")])
    before = used(world)
    world.crash()
    assert used(world) == before
    publish(world, stages=[stage])
    assert used(world) == (held(world), held(world)) == before


# ---- queues that go


def test_a_batch_for_a_queue_that_was_deleted_is_refused(world: World) -> None:
    stage = staged(world, [("plain", b"1"), ("exact", b"2")])
    world.finish(world.manager.delete_queue("plain"))
    for _ in range(2):
        with pytest.raises(QueueDeleted, match="plain, for which the stage"):
            publish(world, stages=[stage])
        world.crash()
    assert bodies(world, "exact") == []
    world.finish(world.manager.staging.discard([stage]))
    assert counts(world) == (0, 0, 0)
    assert used(world) == (0, 0)


@pytest.mark.parametrize("restart", [False, True])
def test_a_queue_that_is_deleted_during_a_publication_takes_its_messages_along(
    world: World, restart: bool
) -> None:
    rows = [("plain" if n % 2 else "exact", b"%d" % n) for n in range(6000)]
    stage = staged(world, rows)
    done = world.manager.staging.publish("w", 0, 0, [stage])
    step(world, 3)
    assert 0 < world.manager.find("plain").core.messages < 3000
    deleted = world.manager.delete_queue("plain")
    if restart:
        step(world, 2)
        world.crash()
    else:
        assert world.finish(done).rows == 6000
        assert deleted.result() is None
    world.run()
    assert bodies(world, "exact") == [b"%d" % n for n in range(0, 6000, 2)]
    assert counts(world) == (3000, 3000, 0)
    assert used(world) == (held(world), held(world))


def test_damaged_rows_are_set_aside(world: World) -> None:
    stage = staged(world, [("plain", b"%d" % n) for n in range(3000)])
    table = world.writer.tables.tables[0]
    rows = sorted(key for key in table if key[:4] == b"stg\0")
    assert len(rows) == 4
    table[rows[2]] = table[rows[2]][:-1]
    publish(world, stages=[stage])
    assert world.manager.damage["stage"] == 1
    assert len(bodies(world, "plain")) == 3000 - 1024
    assert used(world) == (held(world), held(world))


def test_a_damaged_record_of_a_publication_is_set_aside() -> None:
    with pytest.raises((ValueError, TypeError)):
        Publication.load(b"\0\0\0\0\0\0\0\1", [1, 2])

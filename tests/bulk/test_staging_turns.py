"""Publications at a time: bounded units, several writers, turns of one writer, a stop."""

from __future__ import annotations

import pytest

from msmq_fast.protocol.errors import OperationCancelled, ServiceNotAvailable
from msmq_fast.qm.bulk.stages import Part
from tests.bulk.publications import packet_admin, step, world
from tests.support.worlds.queue_manager import World
from tests.support.worlds.stages import bodies, counts, opened, put, staged

__all__ = ["world"]


@pytest.mark.parametrize(("wishes", "most"), [(False, 2048), (True, 128)])
def test_no_unit_is_great(world: World, wishes: bool, most: int) -> None:
    """What one turn of the loop and one commit do is bounded, by how much work the messages are."""
    world.create("admin")
    stage = opened(world, Part("w", 0, 0, 0))
    put(world, stage, [("plain", b"%d" % n) for n in range(5000)], **(packet_admin(world) if wishes else {}))
    name = world.finish(stage.finish()).stage
    done = world.manager.staging.publish("w", 0, 0, [name])
    core = world.manager.find("plain").core
    before, units = 0, 0
    while not done.done:
        step(world, 1)
        assert core.messages - before <= most
        units += core.messages > before
        before = core.messages
    assert units == -(-5000 // most)


def test_publications_of_several_writers_share_the_store(world: World) -> None:
    great = staged(world, [("plain", b"%d" % n) for n in range(9000)], "great")
    small = staged(world, [("exact", b"1")], "small")
    first = world.manager.staging.publish("great", 0, 0, [great])
    second = world.manager.staging.publish("small", 0, 0, [small])
    while not second.done:
        step(world, 1)
    assert not first.done
    assert world.finish(first).rows == 9000


def test_what_was_discarded_goes_while_others_publish(world: World) -> None:
    gone = staged(world, [("plain", b"x") for _ in range(4000)], "other")
    kept = staged(world, [("plain", b"%d" % n) for n in range(25_000)])
    first = counts(world)[1]
    world.manager.staging.discard([gone])
    done = world.manager.staging.publish("w", 0, 0, [kept])
    while counts(world)[1] == first:
        step(world, 1)
    assert not done.done
    assert world.finish(done).rows == 25_000
    assert counts(world) == (25_000, 25_000, 0)


def test_publications_of_one_writer_take_turns(world: World) -> None:
    stages = [staged(world, [("plain", b"%d" % batch)] * 2000, batch=batch) for batch in range(3)]
    staging = world.manager.staging
    done = [staging.publish("w", 0, batch, [stage]) for batch, stage in enumerate(stages)]
    again = staging.publish("w", 0, 2, [])
    world.run()
    assert [one.result().rows for one in done] == [2000] * 3
    assert again.result().dup
    assert bodies(world, "plain") == [b"0"] * 2000 + [b"1"] * 2000 + [b"2"] * 2000


def test_a_publication_waits_for_the_one_that_a_crash_interrupted(world: World) -> None:
    stage = staged(world, [("plain", b"1")] * 4000)
    world.manager.staging.publish("w", 0, 0, [stage])
    step(world, 2)
    tables = world.writer.crash()
    world.store = type(world.store).in_memory(now_s=1_700_000_000, random=world.random, tables=tables)
    world.manager = type(world.manager)(world.store, world.settings, world.clock, world.random)
    world.manager.start()
    again = world.manager.staging.publish("w", 0, 0, [stage])
    assert not again.done
    assert world.finish(again).dup
    assert len(bodies(world, "plain")) == 4000


def test_a_stop_lets_nobody_wait(world: World) -> None:
    stage = staged(world, [("plain", b"1")])
    half = opened(world, Part("w", 1, 0, 0))
    world.manager.staging.publish("w", 0, 0, [stage])
    waiting = world.manager.staging.publish("w", 0, 1, [])
    world.manager.stop()
    with pytest.raises(ServiceNotAvailable):
        waiting.result()
    with pytest.raises(OperationCancelled):
        half.finish()
    world.writer.complete_all()
    world.crash()
    assert bodies(world, "plain") == [b"1"]

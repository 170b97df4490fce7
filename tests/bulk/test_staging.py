"""Staged publishing over a store in memory: what is visible when, duplicates, fences, who may publish."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast.protocol.errors import AccessDenied, OperationCancelled
from msmq_fast.qm.bulk.stages import Part
from msmq_fast.qm.bulk.staging import Fenced, Published, StageNotFound
from msmq_fast.store.schema import MetaName, Table
from tests.bulk.publications import REMOTE, held, used, world
from tests.support.worlds.queue_manager import World
from tests.support.worlds.stages import bodies, counts, opened, publish, put, staged

__all__ = ["world"]


def test_nothing_is_visible_before_the_batch_is_published_and_everything_after(world: World) -> None:
    rows = [("plain", b"1"), ("exact", b"2"), ("plain", b"3"), (REMOTE, b"4"), ("exact", b"5")]
    stage = staged(world, rows)
    assert bodies(world, "plain") == bodies(world, "exact") == bodies(world, REMOTE) == []
    assert publish(world, stages=[stage]) == Published(dup=False, rows=5, last=0)
    assert bodies(world, "plain") == [b"1", b"3"]
    assert bodies(world, "exact") == [b"2", b"5"]
    assert bodies(world, REMOTE) == [b"4"]
    assert counts(world) == (5, 5, 0)


def test_order_is_that_of_the_stages_as_they_are_named(world: World) -> None:
    first = staged(world, [("plain", b"a%d" % n) for n in range(5)], number=1)
    second = staged(world, [("plain", b"b%d" % n) for n in range(5)], number=0)
    publish(world, stages=[second, first])
    assert bodies(world, "plain") == [b"b%d" % n for n in range(5)] + [b"a%d" % n for n in range(5)]


def test_a_batch_of_many_rows_and_units_keeps_its_order(world: World) -> None:
    wanted = [b"%d" % n for n in range(5000)]
    stages = [
        staged(world, [("exact", body) for body in wanted[at : at + 1700]], number=at)
        for at in range(0, 5000, 1700)
    ]
    assert publish(world, stages=stages).rows == 5000
    assert bodies(world, "exact") == wanted


def test_the_same_batch_again_is_a_duplicate_and_its_stages_go(world: World) -> None:
    publish(world, stages=[staged(world, [("plain", b"1")])])
    again = staged(world, [("plain", b"1")], attempt=1)
    assert publish(world, stages=[again]) == Published(dup=True, rows=0, last=0)
    assert bodies(world, "plain") == [b"1"]
    assert counts(world) == (1, 1, 0)
    assert used(world) == (held(world), held(world))


def test_an_older_batch_is_a_duplicate(world: World) -> None:
    publish(world, batch=7, stages=[staged(world, [("plain", b"7")], batch=7)])
    again = publish(world, batch=6, stages=[staged(world, [("plain", b"6")], batch=6)])
    assert again == Published(dup=True, rows=0, last=7)
    assert bodies(world, "plain") == [b"7"]


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_anew(world: World) -> None:
    publish(world, epoch=2, batch=9, stages=[staged(world, [("plain", b"9")], batch=9)])
    stage = staged(world, [("plain", b"10")], batch=10)
    with pytest.raises(Fenced, match="epoch 1 of the writer w has ended: epoch 2 has published batch 9"):
        publish(world, epoch=1, batch=10, stages=[stage])
    assert not publish(world, epoch=3, batch=0, stages=[staged(world, [("plain", b"0")])]).dup
    assert bodies(world, "plain") == [b"9", b"0"]


def test_batches_of_another_origin_are_no_repetitions(world: World) -> None:
    """Numbers that are counted elsewhere say nothing of these: such a batch is refused, and not dropped."""
    first = staged(world, [("plain", b"first")])
    publish(world, stages=[first], origin="one")
    world.crash()
    for batch in (0, 1):
        other = staged(world, [("plain", b"other")], batch=batch)
        with pytest.raises(
            Fenced, match="were published from one, up to batch 0: to publish from two, use a greater"
        ):
            publish(world, batch=batch, stages=[other], origin="two")
    assert publish(world, origin="one").dup
    assert publish(world).dup  # who does not say where he counts is taken at his word
    publish(world, batch=1)
    with pytest.raises(Fenced):
        publish(world, batch=2, origin="two")
    stage = staged(world, [("plain", b"anew")])
    assert not publish(world, epoch=1, stages=[stage], origin="two").dup
    assert bodies(world, "plain") == [b"first", b"anew"]


def test_nothing_is_kept_of_a_writer_that_asks_for_that(world: World) -> None:
    for body in (b"1", b"2"):
        assert publish(world, stages=[staged(world, [("plain", body)])], remember=False).rows == 1
    assert bodies(world, "plain") == [b"1", b"2"]
    assert world.store.tables.scan(Table.META, MetaName.WRITER, MetaName.WRITER + b"\xff", 1) == []
    with pytest.raises(StageNotFound):
        publish(world, stages=[32 * "0"], remember=False)


def test_writers_are_forgotten_when_they_publish_nothing_for_long(world: World) -> None:
    """But not those that do."""
    lifetime = world.manager.settings.writer_lifetime
    publish(world, "gone", stages=[staged(world, [("plain", b"1")], "gone")])
    publish(world, "busy", stages=[staged(world, [("plain", b"2")], "busy")])
    world.advance(lifetime / 2)
    publish(world, "busy", batch=1, stages=[staged(world, [("plain", b"3")], "busy", batch=1)])
    world.advance(lifetime / 2 + 3600)
    again = [staged(world, [("plain", b"x")], name) for name in ("gone", "busy")]
    assert not publish(world, "gone", stages=again[:1]).dup
    assert publish(world, "busy", stages=again[1:]).dup


def test_the_fence_outlives_a_crash(world: World) -> None:
    publish(world, epoch=2, batch=9, stages=[staged(world, [("plain", b"9")], batch=9)])
    world.crash()
    assert publish(world, epoch=2, batch=9, stages=[staged(world, [("plain", b"9")], batch=9)]).dup
    with pytest.raises(Fenced):
        publish(world, epoch=1, batch=10)
    assert counts(world) == (1, 1, 0)


def test_of_two_attempts_the_published_one_counts(world: World) -> None:
    lost = staged(world, [("plain", b"lost")], attempt=0)
    kept = staged(world, [("plain", b"kept")], attempt=1)
    halfway = opened(world, Part("w", 0, 0, 2))
    put(world, halfway, [("plain", b"halfway")])
    publish(world, stages=[kept])
    assert bodies(world, "plain") == [b"kept"]
    assert counts(world) == (1, 1, 0)
    with pytest.raises(OperationCancelled):
        halfway.finish()
    with pytest.raises(StageNotFound):
        publish(world, batch=1, stages=[lost])
    assert used(world) == (held(world), held(world))


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"batch": 1}, "belongs to batch 0 of the writer w and not to batch 1 of w"),
        ({"writer": "other"}, "belongs to batch 0 of the writer w and not to batch 0 of other"),
        ({"twice": True}, "named twice"),
        ({"attempts": True}, "are two uploads of part 0"),
        ({"name": "ABCD"}, "must have 32 hexadecimal digits in lower case"),
        ({"writer": ""}, "1 to 200 printable characters"),
        ({"epoch": -1}, "epoch must be a number from 0 to"),
    ],
)
def test_what_cannot_be_published_together_is_refused_and_stays(
    world: World, words: dict[str, Any], match: str
) -> None:
    stage = staged(world, [("plain", b"1")])
    stages = [stage]
    if words.pop("twice", False):
        stages.append(stage)
    if words.pop("attempts", False):
        stages.append(staged(world, [("plain", b"1")], attempt=1))
    if "name" in words:
        stages.append(words.pop("name"))
    with pytest.raises(ValueError, match=match):
        publish(world, stages=stages, **words)
    assert bodies(world, "plain") == []
    assert publish(world, stages=[stage]).rows == 1


def test_a_stage_that_is_not_there_refuses_the_batch(world: World) -> None:
    stage = staged(world, [("plain", b"1")])
    with pytest.raises(StageNotFound, match="stage " + 32 * "0" + " does not exist"):
        publish(world, stages=[stage, 32 * "0"])
    assert not publish(world, stages=[stage]).dup


def test_only_its_owner_publishes_and_discards_a_stage(world: World) -> None:
    stage = staged(world, [("plain", b"1")], owner="ann")
    with pytest.raises(StageNotFound):
        publish(world, stages=[stage], owner="bob")
    assert world.finish(world.manager.staging.discard([stage], owner="bob")) == 0
    publish(world, stages=[stage], owner="ann")
    with pytest.raises(AccessDenied):
        publish(world, batch=1, owner="bob")


def test_an_empty_batch_moves_the_fence(world: World) -> None:
    assert publish(world, batch=3) == Published(dup=False, rows=0, last=3)
    assert publish(world, batch=3).dup
    empty = staged(world, [], batch=4)
    assert publish(world, batch=4, stages=[empty]) == Published(dup=False, rows=0, last=4)
    assert counts(world) == (0, 0, 0)

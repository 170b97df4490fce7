"""Named readers of the event feed: their places outlive crashes; the feed waits for them, not for ever."""

from __future__ import annotations

import errno
import random

import pytest

from msmq_fast.packet import Message
from msmq_fast.protocol.errors import InsufficientResources, MessageStorageFailed
from msmq_fast.qm.feed import subscriptions as module
from msmq_fast.qm.feed.subscriptions import SlotDropped, SubscriptionNotFound, Subscriptions
from msmq_fast.store.decode import FEED_ENTRY
from msmq_fast.store.feed import Feed
from msmq_fast.store.schema import MetaName, Table
from tests.support.worlds.queue_manager import World

EVENT = FEED_ENTRY.size


def busy(count: int) -> tuple[World, Subscriptions, Feed]:
    """A queue manager whose feed has some events."""
    world = World()
    world.create()
    more(world, count)
    return world, world.manager.events.subscriptions, world.manager.events.feed


def more(world: World, count: int) -> None:
    for _ in range(count):
        world.send(b"x")


def trim(world: World, age: int = 1 << 30, size: int = 1 << 40) -> int:
    """Everything that may go goes; the first event that is left."""
    while world.manager.events.trim(age, size, 3):
        world.run()
    world.run()
    return world.manager.events.feed.bounds()[0]


def test_a_place_in_the_feed_outlives_a_crash() -> None:
    world, subscriptions, feed = busy(10)
    made = world.finish(subscriptions.create("lake"))
    first, following = feed.bounds()
    assert (made.position, made.lag_events, made.dropped) == (first, following - first, False)
    moved = world.finish(subscriptions.commit("lake", first + 4))
    assert (moved.position, moved.lag_events, moved.lag_bytes) == (
        first + 4,
        following - first - 4,
        (following - first - 4) * EVENT,
    )
    assert world.finish(subscriptions.commit("lake", first + 2)) == moved, "an old word changes nothing"
    world.crash()
    subscriptions = world.manager.events.subscriptions
    (found,) = subscriptions.listed()
    assert (found.position, found.max_lag_bytes) == (first + 4, module.DEFAULT_MAX_LAG)
    assert world.finish(subscriptions.drop("lake")) is True
    assert world.finish(subscriptions.drop("lake")) is False
    world.crash()
    assert world.manager.events.subscriptions.listed() == []
    with pytest.raises(SubscriptionNotFound):
        world.manager.events.subscriptions.get("lake")


def test_positions_and_limits_have_bounds() -> None:
    world, subscriptions, feed = busy(3)
    first, following = feed.bounds()
    for position in (first - 1, following + 1, -1):
        with pytest.raises(ValueError, match="not a position"):
            subscriptions.create("lake", position)
    for limit in (0, -1, module.LARGEST_LAG + 1):
        with pytest.raises(ValueError, match="max_lag_bytes"):
            subscriptions.create("lake", max_lag_bytes=limit)
    for name in ("", "a/b", "a" * 65, ".a", "ü", "a\n"):
        with pytest.raises(ValueError, match="not a valid subscription name"):
            subscriptions.create(name)
        with pytest.raises(ValueError, match="not a valid subscription name"):
            subscriptions.drop(name)
    world.finish(subscriptions.create("lake", following))
    for position in (following + 1, -1):
        with pytest.raises(ValueError, match="does not exist yet"):
            subscriptions.commit("lake", position)
    with pytest.raises(SubscriptionNotFound):
        subscriptions.commit("other", first)
    assert [one.name for one in subscriptions.listed()] == ["lake"]


def test_a_subscription_is_changed_in_place() -> None:
    world, subscriptions, feed = busy(10)
    first, _ = feed.bounds()
    made = world.finish(subscriptions.create("lake", first + 5, 5000))
    again = world.finish(subscriptions.create("lake"))
    assert (again.position, again.max_lag_bytes, again.created) == (first + 5, 5000, made.created)
    back = world.finish(subscriptions.create("lake", first + 1))
    assert (back.position, back.max_lag_bytes) == (first + 1, 5000)
    assert world.finish(subscriptions.create("lake", max_lag_bytes=6000)).position == first + 1
    assert len(subscriptions) == 1


def test_there_are_not_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SUBSCRIPTIONS", 2)
    world, subscriptions, _ = busy(1)
    for name in ("a", "b", "a"):
        world.finish(subscriptions.create(name))
    with pytest.raises(InsufficientResources, match="2 subscriptions"):
        subscriptions.create("c")
    world.finish(subscriptions.drop("a"))
    world.finish(subscriptions.create("c"))


def test_the_feed_is_kept_for_the_slowest_reader_beyond_age_and_size() -> None:
    world, subscriptions, feed = busy(30)
    first, _ = feed.bounds()
    world.finish(subscriptions.create("slow", first + 10))
    world.finish(subscriptions.create("fast", first + 20))
    world.advance(1000)
    assert trim(world, age=1) == first + 10
    assert trim(world, size=1) == first + 10
    world.finish(subscriptions.commit("slow", first + 25))
    assert trim(world, size=1) == first + 20
    world.finish(subscriptions.drop("fast"))
    assert trim(world, age=1) == first + 25
    assert next(iter(feed.read(1))).number == first + 25


def test_a_reader_that_lags_too_far_loses_its_place_and_is_told() -> None:
    world, subscriptions, feed = busy(10)
    first, _ = feed.bounds()
    world.finish(subscriptions.create("slow", first, 20 * EVENT))
    world.finish(subscriptions.create("good", first))
    more(world, 40)
    world.advance(1000)
    slow = subscriptions.get("slow")
    assert slow.lag_bytes > slow.max_lag_bytes
    assert not slow.dropped
    assert trim(world, age=1) == first, "the other one still keeps it for both"
    assert subscriptions.alive("slow").position == first
    world.finish(subscriptions.commit("good", first + 30))
    assert trim(world, age=1) == first + 30
    assert subscriptions.get("slow").dropped
    for call in (lambda: subscriptions.alive("slow"), lambda: subscriptions.commit("slow", first + 40)):
        with pytest.raises(SlotDropped, match=rf"events before {first + 30} were deleted"):
            call()
    assert subscriptions.keep_from() == first + 30
    world.crash()
    subscriptions = world.manager.events.subscriptions
    assert [one.dropped for one in subscriptions.listed()] == [False, True]
    again = world.finish(subscriptions.create("slow", max_lag_bytes=1 << 20))
    assert (again.position, again.dropped) == (first + 30, False)


def test_a_word_that_was_not_kept_is_not_confirmed() -> None:
    world, subscriptions, feed = busy(10)
    first, _ = feed.bounds()
    world.writer.fail_commit(1, errno.ENOSPC)
    with pytest.raises(MessageStorageFailed):
        world.finish(subscriptions.create("lake", first))
    assert subscriptions.listed() == []
    world.finish(subscriptions.create("lake", first))
    world.writer.fail_commit(1, errno.ENOSPC)
    with pytest.raises(MessageStorageFailed):
        world.finish(subscriptions.commit("lake", first + 5))
    world.finish(subscriptions.commit("lake", first + 5))
    world.crash()
    assert world.manager.events.subscriptions.get("lake").position == first + 5


def test_damaged_records_of_subscriptions_are_passed_over() -> None:
    world, subscriptions, _ = busy(1)
    for name in ("good", "bad"):
        world.finish(subscriptions.create(name))
    meta = world.writer.tables.tables[Table.META]
    meta[MetaName.SUBSCRIPTION + b"bad"] = b"\x01\x80"
    meta[MetaName.SUBSCRIPTION + b"b/d"] = meta[MetaName.SUBSCRIPTION + b"good"]
    world.crash()
    assert [one.name for one in world.manager.events.subscriptions.listed()] == ["good"]
    assert world.manager.damage["subscription"] == 2


def test_trimming_drops_records_of_any_size_and_any_age_alike() -> None:
    rng = random.Random(5)
    world, subscriptions, feed = busy(0)
    for _ in range(60):
        core = world.manager.find("orders").core
        for _ in range(rng.choice((1, 2, 40))):
            world.sender().send(Message(body=b"x"))
        world.run()
        world.advance(1)
        assert core.messages
    first, following = feed.bounds()
    spans = sorted(int.from_bytes(key) for key in world.writer.tables.tables[Table.FEED])
    keep = rng.randrange(first, following)
    world.finish(subscriptions.create("lake", keep))
    assert trim(world, age=0, size=0) == max(span for span in spans if span <= keep)
    assert next(feed.read(1)).number <= keep

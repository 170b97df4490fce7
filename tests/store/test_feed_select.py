"""Selecting events of the feed by the numbers of their messages."""

from __future__ import annotations

from msmq_fast.store.decode import EventKind
from tests.support.worlds.queue_manager import World


def test_the_selected_events_are_those_of_a_whole_read() -> None:
    world = World()
    world.create("orders")
    feed = world.manager.events.feed
    start = feed.bounds()[1]
    for number in range(30):
        world.send(b"%d" % number)
        world.receive()
    whole = [event for event in feed.read(start) if event.kind in (EventKind.ARRIVED, EventKind.RECEIVED)]
    wanted = {event.ordinal for event in whole if event.ordinal % 3 == 0}

    def choose(ordinals: list[int]) -> list[int]:
        return [index for index, ordinal in enumerate(ordinals) if ordinal in wanted]

    found, following = feed.select(start, 1 << 20, choose)
    assert found == [event for event in whole if event.ordinal in wanted]
    assert following == feed.bounds()[1]
    assert feed.select(following, 1 << 20, choose) == ([], following)


def test_a_small_budget_ends_early_and_continues() -> None:
    world = World()
    world.create("orders")
    feed = world.manager.events.feed
    place = start = feed.bounds()[1]
    for _ in range(60):
        world.send(b"x")
    found = []
    steps = 0
    while place < feed.bounds()[1]:
        events, place = feed.select(place, 1, lambda ordinals: range(len(ordinals)))
        found += events
        steps += 1
    assert steps > 1
    assert found == list(feed.read(start))

"""Reading the event feed: numbers without holes, retention that overran, subscriptions that keep events."""

from __future__ import annotations

import pytest

from msmq_fast.spark.losses import DataLoss
from tests.spark.driving import POINTS, Died, Query, batch_rows
from tests.spark.fakeserver import FakeServer


def query(fake: FakeServer, **options: object) -> Query:
    return Query(**{"url": fake.url, "content": "events", "startingOffsets": "earliest", **options})


def happening(fake: FakeServer, count: int) -> None:
    if not any(path.endswith("orders") for path in fake.manager.queues):
        fake.manager.create("orders")
    for index in range(count):
        fake.manager.send("orders", b"%d" % index)


def numbers(running: Query) -> list[int]:
    return [row["feed_seq"] for row in running.rows]


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_every_event_comes_once(fake: FakeServer, point: str) -> None:
    happening(fake, 10)
    running = query(fake, maxRowsPerTrigger=4, minPartitions=2)
    running.batch()
    with pytest.raises(Died):
        running.batch(die=point)
    happening(fake, 5)
    running.restart()
    running.run()
    assert numbers(running) == list(range(1, 17))


def test_events_that_were_trimmed_are_a_loss(fake: FakeServer) -> None:
    happening(fake, 10)
    running = query(fake, maxRowsPerTrigger=4)
    running.batch()
    fake.manager.trim_events(8)
    with pytest.raises(DataLoss, match=r"the events 5 to 7 of fake are no longer kept.*subscription"):
        running.run()
    running.restart(failOnDataLoss="false")
    running.run()
    assert numbers(running) == [1, 2, 3, 4, 8, 9, 10, 11]


def test_events_that_are_trimmed_while_tasks_run(fake: FakeServer) -> None:
    happening(fake, 10)
    running = query(fake)
    with pytest.raises(Died):
        running.batch(die="logged")
    fake.manager.trim_events(3)
    running.restart()
    with pytest.raises(DataLoss, match="no longer kept"):
        running.run()
    running.restart(failOnDataLoss="false")
    running.run()
    assert numbers(running) == list(range(3, 12))


def test_a_store_that_came_back_from_a_backup(fake: FakeServer) -> None:
    happening(fake, 3)
    running = query(fake)
    running.run()
    fake.manager.restored()
    with pytest.raises(DataLoss, match="restored or copied"):
        running.run()
    running.restart(failOnDataLoss="false")
    running.run()
    assert numbers(running) == [1, 2, 3, 4, 1, 2, 3, 4]


def test_a_feed_that_went_back(fake: FakeServer) -> None:
    happening(fake, 5)
    running = query(fake)
    running.run()
    del fake.manager.events[3:]
    with pytest.raises(DataLoss, match="was read up to event 6, and has come to 3 only"):
        running.run()


def test_a_subscription_follows_what_was_processed(fake: FakeServer) -> None:
    happening(fake, 9)
    running = query(fake, maxRowsPerTrigger=5, subscription="audit")
    running.batch()
    assert fake.manager.subscriptions["audit"]["position"] == 1
    running.batch()
    assert fake.manager.subscriptions["audit"]["position"] == 6
    running.run()
    assert fake.manager.subscriptions["audit"]["position"] == 11
    fake.fault("commit", "refuse")
    happening(fake, 1)
    running.restart(numRetries=0)
    running.run()
    assert fake.manager.subscriptions["audit"]["position"] == 11
    running.run()  # a server that can't be told is told later
    assert fake.manager.subscriptions["audit"]["position"] == 12


def test_a_subscription_that_comes_with_a_restart_or_that_the_server_lost(fake: FakeServer) -> None:
    """It is set up where the query is: an option that has no effect would lose events one day."""
    happening(fake, 4)
    running = query(fake)
    running.run()
    running.restart(subscription="audit")
    happening(fake, 3)
    running.batch()
    assert fake.manager.subscriptions["audit"]["position"] == 6
    running.run()
    del fake.manager.subscriptions["audit"]
    happening(fake, 1)
    running.run()
    assert fake.manager.subscriptions["audit"]["position"] == 10
    fake.manager.trim_events(10)
    fake.manager.subscriptions["audit"]["position"] = 9  # it lagged behind too far
    happening(fake, 1)
    running.run()
    assert fake.manager.subscriptions["audit"]["position"] == 11
    assert numbers(running) == list(range(1, 11))


def test_available_now_and_batches(fake: FakeServer) -> None:
    happening(fake, 5)
    running = query(fake, maxBytesPerTrigger=512)
    running._started().prepareForTriggerAvailableNow()
    happening(fake, 5)
    while running.batch():
        pass
    assert numbers(running) == [1, 2, 3, 4, 5, 6]
    assert {len(rows) for rows in running.sink.values()} == {2}
    times = sorted({event["event_time"] for event in fake.manager.events})

    def read(**options: object) -> list[int]:
        return [row["feed_seq"] for row in batch_rows(url=fake.url, content="events", **options)]

    assert read() == list(range(1, 12))
    assert read(startingOffsets='{"events": 4}', endingOffsets='{"events": 6}') == [4, 5]
    assert read(startingTimestamp=times[-2] // 1000) == [10, 11]

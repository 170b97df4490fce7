"""Reading queues empty: nothing is removed before Spark confirms, nothing is left, nothing comes twice."""

from __future__ import annotations

import random

import pytest

from msmq_fast.spark.losses import DataLoss, SourceError
from msmq_fast.spark.options import OptionError
from tests.spark.driving import POINTS, Died, Query
from tests.spark.fakequeues import Queue
from tests.spark.fakeserver import FakeServer

RETRIES = 3
"""As many as a query makes by default (`numRetries`)."""


def query(fake: FakeServer, **options: object) -> Query:
    remove = {"url": fake.url, "subscribe": "orders", "onSourceCommit": "remove", "subscription": "job"}
    return Query(**{**remove, **options})


def filled(fake: FakeServer, count: int, name: str = "orders") -> Queue:
    queue = fake.manager.queues.get(f"private$\\{name}") or fake.manager.create(name)
    for index in range(count):
        fake.manager.send(name, b"%d" % index, priority=index % 8)
    return queue


def test_a_queue_is_read_in_its_order_and_is_empty_at_the_end(fake: FakeServer) -> None:
    queue = filled(fake, 20)
    expected = [h.row["body"] for h in sorted(queue.held.values(), key=lambda held: held.lookup_id)]
    running = query(fake, maxRowsPerTrigger=7)
    assert running.run() == 3
    assert running.bodies == expected
    assert [row["delivery_seq"] for row in running.rows] == list(range(1, 21))
    assert not queue.held


def test_other_receivers_do_not_see_what_is_leased(fake: FakeServer) -> None:
    queue = filled(fake, 4)
    running = query(fake)
    with pytest.raises(Died):
        running.batch(die="read")
    assert fake.manager.receive("orders") is None
    assert len(queue.held) == 4


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_every_message_comes_once(fake: FakeServer, point: str) -> None:
    queue = filled(fake, 10)
    running = query(fake, maxRowsPerTrigger=4)
    running.batch()
    with pytest.raises(Died):
        running.batch(die=point)
    filled(fake, 2)
    running.restart()
    running.run()
    assert len(running.rows) == 12
    assert len({row["message_id"] for row in running.rows}) == 12
    assert not queue.held


def test_many_kills_and_crashes_of_the_server(fake: FakeServer) -> None:
    storm(fake, range(3))


@pytest.mark.long(seconds=60)
def test_very_many_kills_and_crashes_of_the_server(fake: FakeServer) -> None:
    storm(fake, range(3, 100))


def storm(fake: FakeServer, seeds: range) -> None:
    """A query that dies anywhere, a server that crashes and loses answers; every message comes once."""
    for seed in seeds:
        chance = random.Random(seed)
        name = f"orders{seed}"
        queue = filled(fake, 40, name)
        running = query(fake, subscribe=name, maxRowsPerTrigger=chance.randint(1, 9), retryIntervalMs=1)
        expected = 40
        while True:
            try:
                if not running.batch(die=chance.choice([*POINTS, None, None])):
                    break
            except Died:
                pass
            if chance.random() < 0.3:
                fake.manager.crash()
            if chance.random() < 0.3 and expected < 60:
                filled(fake, 3, name)
                expected += 3
            path = chance.choice(["/ack", "/lease", "/release", "/bounds", "/rows"])
            if chance.random() < 0.3 and fake.faults.count(path) < (1 if path == "/lease" else RETRIES):
                fake.fault(path, "drop")  # of more at once the query ends, with an error that says so
        assert len(running.rows) == len({row["message_id"] for row in running.rows}) == expected, seed
        assert not queue.held, seed


def test_available_now_takes_no_more_than_was_there(fake: FakeServer) -> None:
    queue = filled(fake, 6)
    running = query(fake, maxRowsPerTrigger=4)
    running._started().prepareForTriggerAvailableNow()
    filled(fake, 3)
    while running.batch():
        pass
    assert len(running.rows) == 6
    assert len(queue.held) == 3


def test_a_lease_that_ended_is_no_silent_duplicate(fake: FakeServer) -> None:
    queue = filled(fake, 4)
    running = query(fake)
    running.batch()
    fake.manager.expire(queue, now=True)
    with pytest.raises(DataLoss, match=r"lease ended before Spark confirmed.*longer lease"):
        running.run()
    running.restart(failOnDataLoss="false")
    running.run()
    assert len(running.rows) == 8  # said to come twice
    assert not queue.held


def test_a_lease_that_ended_before_the_batch_was_read(fake: FakeServer) -> None:
    queue = filled(fake, 4)
    running = query(fake)
    with pytest.raises(Died):
        running.batch(die="logged")
    fake.manager.expire(queue, now=True)
    running.restart()
    with pytest.raises(DataLoss, match="back in the queue"):
        running.run()
    running.restart(failOnDataLoss="false")
    running.run()
    assert len(running.rows) == 4
    assert not queue.held


def test_what_was_purged_meanwhile_is_gone_and_no_error(fake: FakeServer) -> None:
    queue = filled(fake, 4)
    running = query(fake)
    with pytest.raises(Died):
        running.batch(die="logged")
    fake.manager.purge("orders")
    filled(fake, 2)
    running.restart()
    running.run()
    assert len(running.rows) == 2
    assert not queue.held


def test_a_queue_that_was_deleted_and_made_again(fake: FakeServer) -> None:
    filled(fake, 4)
    running = query(fake)
    running.run()
    fake.manager.delete("orders")
    queue = filled(fake, 3)
    with pytest.raises(DataLoss, match="deleted and created again"):
        running.run()
    running.restart(failOnDataLoss="false")
    running.run()
    assert len(running.rows) == 7
    assert not queue.held


def test_a_store_that_came_back_from_a_backup(fake: FakeServer) -> None:
    filled(fake, 4)
    running = query(fake)
    running.run()
    fake.manager.restored()
    with pytest.raises(DataLoss, match="restored or copied"):
        running.run()


def test_a_store_that_came_back_from_a_backup_counts_deliveries_from_less(fake: FakeServer) -> None:
    queue = filled(fake, 6)
    running = query(fake, maxRowsPerTrigger=2, failOnDataLoss="false")
    running.run()
    fake.manager.restored()
    queue.leases.clear()  # the backup is of before the first lease
    filled(fake, 4)
    running.run()
    assert len(running.rows) == 10
    assert not queue.held


def test_deliveries_of_a_restored_store_that_were_not_read_again_are_not_removed(fake: FakeServer) -> None:
    """The backup holds a lease of the query: what it names goes back first, and is read."""
    queue = filled(fake, 2)
    running = query(fake, maxRowsPerTrigger=2, failOnDataLoss="false")
    running.run()
    fake.manager.restored()
    filled(fake, 2)
    fake.manager.lease("job", "orders", 2, 0, 900.0)  # as the backup has it
    filled(fake, 2)
    running.run()
    assert len({row["message_id"] for row in running.rows}) == 6
    assert not queue.held


def test_numbers_of_another_subscription_are_not_taken_for_ones_own(fake: FakeServer) -> None:
    """They may be those of messages that nobody has read yet."""
    queue = filled(fake, 4)
    running, other = (query(fake, subscription=name, maxRowsPerTrigger=2) for name in ("job", "other"))
    running.batch()
    with pytest.raises(Died):
        other.batch(die="logged")
    running.restart(subscription="other")
    with pytest.raises(SourceError, match=r"belongs to the subscription 'job'.*restore the option"):
        running.run()
    running.restart(subscription="job")
    for one in (running, other):
        one.run()
    assert len({row["message_id"] for row in running.rows + other.rows}) == 4
    assert not queue.held


def test_two_queries_under_one_name_do_not_take_the_same_message(fake: FakeServer) -> None:
    filled(fake, 4)
    one, two = query(fake), query(fake)
    with pytest.raises(Died):
        one.batch(die="logged")
    two.batch()
    one.restart()
    with pytest.raises((DataLoss, SourceError)):
        one.run()
    assert len(two.rows) == 4


def test_options_that_do_not_go_with_it(fake: FakeServer) -> None:
    filled(fake, 1)
    for options, message in (
        ({"subscription": None}, "'subscription' is missing"),
        ({"startingOffsets": "earliest"}, "cannot be combined with onSourceCommit=remove"),
        ({"content": "events", "subscribe": None}, "events are never removed"),
    ):
        running = query(fake, **options)
        running.options = {name: value for name, value in running.options.items() if value is not None}
        with pytest.raises(OptionError, match=message):
            running.run()

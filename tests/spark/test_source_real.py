"""The source against a real server: what loses data elsewhere, kills, and the model beside it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import msmq_fast
from msmq_fast.client.bulk.client import BulkClient
from msmq_fast.spark.losses import DataLoss, SourceError
from tests.spark.driving import POINTS, Died, Query, batch_rows
from tests.spark.fakeserver import serving
from tests.spark.realserver import RealServer, running


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    with running() as found:
        yield found


@pytest.fixture
def queue(server: RealServer, request: pytest.FixtureRequest) -> str:
    """A new queue of this test's."""
    name = f"q{abs(hash(request.node.nodeid)) % 1_000_000_007}"
    server.create(name, journal=True)
    return name


def keeping(server: RealServer, queue: str, **options: object) -> Query:
    common = {"url": server.url, "subscribe": queue, "startingOffsets": "earliest", "retryIntervalMs": 100}
    return Query(**{**common, "numRetries": 100, **options})


def removing(server: RealServer, queue: str, **options: object) -> Query:
    common = {"url": server.url, "subscribe": queue, "onSourceCommit": "remove", "subscription": queue}
    return Query(**{**common, "retryIntervalMs": 100, "numRetries": 100, **options})


def bodies(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def test_mixed_priorities_none_is_missed(server: RealServer, queue: str) -> None:
    chance = random.Random(3)
    sent: list[bytes] = []
    query = keeping(server, queue, maxRowsPerTrigger=17)
    for round_ in range(10):
        for _ in range(chance.randrange(1, 4)):
            some = [b"%d.%d" % (round_, len(sent) + n) for n in range(chance.randrange(1, 12))]
            server.send(queue, some, priority=chance.randrange(8))
            sent += some
        query.run()
    assert query.bodies == sent


def test_an_aborted_transaction_behind_the_watermark_loses_nothing(server: RealServer) -> None:
    server.create("xact", transactional=True)
    connection = server.connection()
    with connection.open("xact", msmq_fast.Access.SEND) as opened, connection.transaction() as transaction:
        for body in bodies(0, 10):
            opened.send(msmq_fast.Message(body), transaction=transaction)
    query = keeping(server, "xact", maxRowsPerTrigger=4)
    with server.receiving("xact") as opened:
        with connection.transaction() as transaction:
            for _ in range(5):
                opened.receive(timeout=0, transaction=transaction)
            query.run()
            transaction.abort()
        assert query.bodies == bodies(0, 10)
        with connection.transaction() as transaction:
            assert opened.receive(timeout=0, transaction=transaction).body == b"0"
    assert query.run() == 0


@pytest.mark.parametrize("mode", ["keep", "remove"])
def test_kills_of_server_and_driver_at_every_point(server: RealServer, queue: str, mode: str) -> None:
    query = (keeping if mode == "keep" else removing)(server, queue, maxRowsPerTrigger=7)
    server.send(queue, bodies(0, 60))
    sent = 60
    for number, point in enumerate(POINTS):
        with pytest.raises(Died):
            query.batch(die=point)
        if number % 2:
            server.kill()
            server.forget()
        server.send(queue, bodies(sent, sent + 5))
        sent += 5
        query.restart()
        query.batch()
    query.run()
    assert sorted(map(int, query.bodies)) == list(range(sent))
    if mode == "remove":
        assert server.count(queue) == 0
        journal = batch_rows(url=server.url, subscribe=queue, content="journal")
        assert len(journal) == sent  # it was a receive like any other


@pytest.mark.long(seconds=60)
@pytest.mark.parametrize("mode", ["keep", "remove"])
def test_kills_of_server_and_driver_with_many_queues(server: RealServer, mode: str) -> None:
    """Queues that are idle, that lag behind the others, and that come later."""
    chance = random.Random(mode)
    names = [f"{mode}{number}" for number in range(60)]
    for name in names[:40]:
        server.create(name)
    options = {"subscribePattern": rf".*\\{mode}\d+", "maxRowsPerTrigger": 25}
    query = (keeping if mode == "keep" else removing)(server, names[0], **options)
    del query.options["subscribe"]
    sent: list[bytes] = []
    for round_ in range(12):
        if round_ < 10:
            server.create(names[40 + round_])
        for name in chance.sample(names[: 40 + min(round_, 9)], 15):
            some = [b"%d %d" % (round_, len(sent) + n) for n in range(chance.randrange(1, 5))]
            assert server.send(name, some)
            sent += some
        with pytest.raises(Died):
            query.batch(die=POINTS[round_ % len(POINTS)])
        if round_ % 3 == 2:
            server.kill()
            server.forget()
        query.restart()
        query.batch()
    query.run()
    assert sorted(query.bodies) == sorted(sent)
    if mode == "remove":
        assert sum(server.count(name) for name in names[:50]) == 0


def test_others_take_nothing_of_what_is_leased(server: RealServer, queue: str) -> None:
    server.send(queue, bodies(0, 6))
    query = removing(server, queue, maxRowsPerTrigger=4)
    with pytest.raises(Died):
        query.batch(die="read")
    assert server.receive(queue) == b"4"
    query.restart()
    query.run()
    assert query.bodies == [b"0", b"1", b"2", b"3", b"5"]


def test_a_lease_that_ends_gives_its_messages_back_in_order(server: RealServer, queue: str) -> None:
    server.send(queue, bodies(0, 3))
    query = removing(server, queue, lease="1s")
    with pytest.raises(Died):
        query.batch(die="logged")
    with server.receiving(queue) as opened:
        assert opened.peek(timeout=10).body == b"0"  # comes when the second is over
    query.restart()
    with pytest.raises(DataLoss, match="longer lease"):
        query.run()
    query.restart(failOnDataLoss="false", lease="15m")
    query.run()
    assert query.bodies == bodies(0, 3)
    assert server.count(queue) == 0


def test_rows_that_were_received_meanwhile_are_a_loss(server: RealServer, queue: str) -> None:
    server.send(queue, bodies(0, 5))
    query = keeping(server, queue)
    with pytest.raises(Died):
        query.batch(die="logged")
    server.receive(queue)
    query.restart()
    with pytest.raises(DataLoss, match="1 of 5 rows"):
        query.run()
    query.restart(failOnDataLoss="false")
    query.run()
    assert query.bodies == bodies(1, 5)


def test_a_queue_deleted_and_made_again(server: RealServer, queue: str) -> None:
    server.send(queue, bodies(0, 3))
    query = keeping(server, queue)
    query.run()
    server.connection().admin.queues.delete(queue)
    server.forget()
    server.create(queue)
    server.send(queue, bodies(10, 12))
    with pytest.raises(DataLoss, match="deleted and created again"):
        query.run()
    query.restart(failOnDataLoss="false")
    query.run()
    assert query.bodies == [*bodies(0, 3), *bodies(10, 12)]


def test_messages_that_come_from_a_subqueue_behind_what_was_read(server: RealServer, queue: str) -> None:
    server.send(queue, bodies(0, 3))
    with server.receiving(queue) as opened:
        first = opened.peek(timeout=0)
        move = server.connection().open(f"{queue};later", msmq_fast.Access.MOVE)
        opened.move(first, move)
        query = keeping(server, queue)
        query.run()
        assert query.bodies == bodies(1, 3)
        with server.connection().open(f"{queue};later", msmq_fast.Access.RECEIVE) as later:
            back = server.connection().open(queue, msmq_fast.Access.MOVE)
            later.move(later.peek(timeout=0), back)
    with pytest.raises(DataLoss, match="1 messages were moved into"):
        query.run()


def test_missing_queues_and_servers_that_are_down(server: RealServer) -> None:
    with pytest.raises(SourceError, match="there is no queue nowhere"):
        keeping(server, "nowhere").run()
    with pytest.raises(SourceError, match=r"refused.*is the queue manager running"):
        Query(url="msmq+bulk://127.0.0.1:9", subscribe="x", numRetries=0).run()


def test_events_prove_themselves(server: RealServer, queue: str) -> None:
    query = Query(url=server.url, content="events", startingOffsets="earliest", maxRowsPerTrigger=50)
    server.send(queue, bodies(0, 20))
    server.receive(queue)
    query.run()
    numbers = [row["feed_seq"] for row in query.rows]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    mine = [row["event"] for row in query.rows if (row["queue"] or "").endswith(queue)]
    assert mine.count("arrived") == 20
    assert mine.count("received") == 1


def test_the_model_says_the_same(server: RealServer) -> None:
    """Random calls to the real server and to the fake one: the same rows, plans, numbers and counts."""
    for seed in range(4):
        chance = random.Random(seed)
        name = f"model{seed}"
        server.create(name)
        with serving() as fake:
            fake.manager.create(name)
            real_client, fake_client = BulkClient(server.url), BulkClient(fake.url)
            shift = real_client.bounds([name]).next - fake_client.bounds([name]).next
            upto = 1
            for step in range(40):
                real, model = _step(chance.randrange(7), chance, step, name, server, fake.manager)
                if real is None:
                    call = chance.choice(["lease", "rows", "ack", "release"])
                    rows = chance.randrange(1, 6)
                    upto = chance.choice([upto, upto, upto + chance.randrange(4)])
                    real = _call(real_client, call, name, rows, upto)
                    model = _call(fake_client, call, name, rows, upto)
                assert real == model, (seed, step)
                assert _seen(real_client, name, shift) == _seen(fake_client, name, 0), (seed, step)


def _step(
    kind: int, chance: random.Random, step: int, name: str, server: RealServer, manager: object
) -> tuple:
    if kind < 3:
        priority = chance.randrange(8)
        some = [b"%d/%d" % (step, n) for n in range(chance.randrange(1, 5))]
        server.send(name, some, priority=priority)
        for body in some:
            manager.send(name, body, priority=priority)  # type: ignore[attr-defined]
        return 0, 0
    if kind == 3:
        try:
            real: bytes | None = server.receive(name)
        except msmq_fast.errors.IOTimeout:
            real = None
        taken = manager.receive(name)  # type: ignore[attr-defined]
        return (real, taken.row["body"] if taken else None) if real or taken else (0, 0)
    return None, None


def _call(client: BulkClient, call: str, name: str, rows: int, upto: int) -> object:
    try:
        if call == "lease":
            lease = client.lease("s", name, max_rows=rows, max_bytes=1 << 30)
            return lease.start, lease.stop
        if call == "rows":
            parts = client.leased("s", name, upto, upto + rows, columns="body")
            return [row for part in parts for row in part.to_pylist()]
        settle = client.ack if call == "ack" else client.release
        done = settle("s", name, upto)
        return done.removed, done.gone
    except Exception as error:
        return type(error).__name__


def _seen(client: BulkClient, name: str, shift: int) -> object:
    bounds = client.bounds([name])
    plan = client.plan(name, 0, bounds.next, parts=1, max_rows=4)
    rows = [
        r for part in client.rows(name, 0, bounds.next, columns="arrival_seq,body") for r in part.to_pylist()
    ]
    return (
        [(row["arrival_seq"] - shift, row["body"]) for row in rows],
        bounds.queues[0].messages,
        bounds.queues[0].late,
        plan.rows,
        plan.stop - shift,
    )

"""Two subscriptions and an ordinary receiver share a queue while the server is killed again and again: every
message is taken once, by one of them.
"""

from __future__ import annotations

import json
import random
import threading

import pytest

from msmq_fast.client.bulk.client import BulkError
from tests.support.http import bulk as api
from tests.support.processes.servers import Server, data_directory

QUEUE = r"KILLED\private$\work"
EVERYTHING = (1 << 62) - 1


class Subscriber:
    """Reads ranges, remembers what was in them, acknowledges them; after a fault it goes on where it was."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name = name
        self.rng = rng
        self.taken: list[str] = []
        self.read: list[str] = []
        self.upto = 1

    def step(self, server: Server) -> int:
        """One range; how many messages it had."""
        with api.client(server) as client:
            lease = client.lease(self.name, QUEUE, max_rows=self.rng.randint(1, 60))
            found = self._read(client, lease.start, lease.stop)
            if not found:
                return 0
            self.read, self.upto = found, lease.stop
            if self.rng.random() < 0.5:
                assert self._read(client, lease.start, lease.stop) == found, "read as often as one likes"
            self._acknowledge(client)
            return len(found)

    def resume(self, server: Server) -> None:
        """What was read is done with; what was perhaps leased, and nobody was told so, goes back."""
        with api.client(server) as client:
            self._acknowledge(client)
            client.release(self.name, QUEUE, EVERYTHING)

    def _read(self, client: api.BulkClient, start: int, stop: int) -> list[str]:
        batches = client.leased(self.name, QUEUE, start, stop, columns="message_id", body=False)
        found = [(row["delivery_seq"], row["message_id"]) for batch in batches for row in batch.to_pylist()]
        assert [number for number, _ in found] == list(range(start, stop))
        return [identifier for _, identifier in found]

    def _acknowledge(self, client: api.BulkClient) -> None:
        acked = client.ack(self.name, QUEUE, self.upto)
        assert acked.gone == 0
        assert acked.removed in (0, len(self.read))
        self.taken += self.read
        self.read = []


def receive(server: Server, count: int) -> list[str]:
    """Some messages for an ordinary receiver, who sees what was printed before the server died."""
    done = server.run("receive", "work", "--count", str(count), "--json")
    return [json.loads(line)["message_id"] for line in done.stdout.splitlines()]


def run(seed: int, kills: int, count: int) -> None:
    rng = random.Random(seed)
    with data_directory() as data:
        server = Server(data, "--name", "KILLED").start()
        try:
            server.ok("queue", "create", "work", "--journal")
            for priority in ("0", "5"):
                server.ok(
                    *("send", "work", "--body", "x" * 500, "--priority", priority, "--recoverable"),
                    *("--count", str(count // 2)),
                )
            subscribers = [Subscriber(name, rng) for name in ("spark", "lake")]
            received: list[str] = []
            for kill in range(kills + 1):
                assert server.process is not None
                timer = threading.Timer(rng.uniform(0.0, 0.25), server.process.kill)
                if kill < kills:
                    timer.start()
                try:
                    while True:
                        found = sum(subscriber.step(server) for subscriber in subscribers)
                        if rng.random() < 0.2:
                            some = receive(server, rng.randint(1, 5))
                            received += some
                            found += len(some)
                        if not found and kill == kills:
                            break
                except BulkError:
                    assert kill < kills, server.log.read_text()
                    timer.join()
                    server.kill()
                    server.start()
                    for subscriber in subscribers:
                        subscriber.resume(server)
            server.stop()
            server.start()
            assert server.ok("queue", "show", "work")[0]["messages"] == 0
            journal = [message["message_id"] for message in server.messages("work;journal")]
        finally:
            server.kill()
    taken = [identifier for subscriber in subscribers for identifier in subscriber.taken] + received
    assert len(taken) == len(set(taken)), "somebody got what another one had"
    assert len(journal) == len(set(journal)) == count, "every message was received once"
    assert set(taken) <= set(journal)
    assert len(journal) - len(taken) <= 5 * kills, (
        "only what an ordinary receiver had in flight may be unseen"
    )


def test_leases_and_receivers_share_a_queue_of_a_server_that_is_killed() -> None:
    run(seed=3, kills=2, count=400)


@pytest.mark.long(seconds=100)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(2))
def test_leases_and_receivers_share_a_queue_of_a_server_that_is_killed_often(seed: int) -> None:
    run(seed=100 + seed, kills=20, count=5000)

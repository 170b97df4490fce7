"""Nothing that was answered with 200 is lost, and nothing is there twice, whenever the server is killed."""

from __future__ import annotations

import random
import socket
import time
from base64 import b64decode
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from tests.support.processes.servers import Server, data_directory
from tests.support.srmp.independent import answer
from tests.support.srmp.partner import request

SENDER = UUID("5c1a3f6e-9d0c-4a52-8f6b-0f2c7a9d1e44")
STREAM = 0x6543_2100_0000_0001
PLAIN, EXACT = "plain", "exact"
SENT = time.time()
"""When all messages were made: a repetition says the same as the first copy."""


@dataclass
class Lane:
    """Messages to one queue, one after the other as a sender of SRMP brings them: the next one only after a
    200, the same one again when there was none.
    """

    queue: str
    number: int = 1
    """Of the message that is to be sent next."""
    repeated: int = 0

    def request(self) -> bytes:
        headers = '<services se:mustUnderstand="1"><durable/></services>'
        if self.queue == EXACT:
            start = "<start><sendReceiptsTo>http://localhost/msmq/private$/receipts</sendReceiptsTo></start>"
            headers += (
                f'<Stream se:mustUnderstand="1"><streamId>uid:{SENDER}\\{STREAM}</streamId>'
                f"<current>{self.number}</current>{start * (self.number == 1)}</Stream>"
            )
        to = f"http://localhost/msmq/private$/{self.queue}"
        ordinal = self.number + (1 << 30) * (self.queue == EXACT)
        return request(to, b"%d" % self.number, headers=headers, number=ordinal, sender=SENDER, now=SENT)


@dataclass
class Account:
    """What was done."""

    kills: int = 0
    answered: int = 0
    lanes: list[Lane] = field(default_factory=lambda: [Lane(PLAIN), Lane(EXACT)])


def one_life(server: Server, account: Account, chance: random.Random) -> None:
    """Messages until the server is killed: right behind an answer, or while it works on a message."""
    server.start()
    try:
        connections = [
            socket.create_connection(("127.0.0.1", server.port("http")), 10) for _ in account.lanes
        ]
        behind_answer = chance.random() < 0.6
        for left in range(chance.randint(1, 8), -1, -1):
            index = chance.randrange(len(account.lanes))
            connections[index].sendall(account.lanes[index].request())
            if left == 0 and not behind_answer:
                time.sleep(chance.random() * 0.004)
                account.lanes[index].repeated += 1
                break
            status, _ = answer(connections[index])
            assert status == 200
            account.lanes[index].number += 1
            account.answered += 1
        account.kills += 1
    finally:
        server.kill()
    for connection in connections:
        connection.close()


def run(kills: int, seed: int) -> None:
    account, chance = Account(), random.Random(seed)
    with data_directory() as data:
        server = Server(data, "--http-port", "0")
        server.start()
        for name, flags in ((PLAIN, ()), (EXACT, ("--transactional",)), ("receipts", ())):
            server.ok("queue", "create", name, *flags)
        server.stop()
        while account.kills < kills:
            one_life(server, account, chance)
        server.start()
        try:
            check(server, account)
        finally:
            server.kill()
    repeated = sum(lane.repeated for lane in account.lanes)
    print(f"{account.kills} kills, {account.answered} answers, {repeated} messages that had none")


def check(server: Server, account: Account) -> None:
    """All messages are there once, in order; those without an answer once as well when they come again."""
    for lane in account.lanes:
        with socket.create_connection(("127.0.0.1", server.port("http")), 10) as connection:
            connection.sendall(lane.request())
            assert answer(connection)[0] == 200
        found = [int(b64decode(message["body_b64"])) for message in server.messages(lane.queue)]
        assert found == list(range(1, lane.number + 1)), (lane, found[-20:])


@pytest.mark.long(seconds=8)
@pytest.mark.rule("SR-062", "SR-108", "SR-160")
def test_twenty_kills() -> None:
    run(20, seed=1)


@pytest.mark.long(seconds=300)
@pytest.mark.timeout(1200)
@pytest.mark.rule("SR-062", "SR-108", "SR-160")
@pytest.mark.parametrize("seed", range(2, 7))
def test_a_thousand_kills(seed: int) -> None:
    run(200, seed)

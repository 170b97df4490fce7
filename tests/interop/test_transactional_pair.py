"""Transactional messages between two server processes: exactly once, in order, whatever is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from msmq_fast.client import Access, Message, MSMQError, connect
from msmq_fast.protocol.properties import Journal
from tests.support.processes.pair import collect, drained, free_port
from tests.support.processes.servers import Server, data_directory, until

TARGET = r"DIRECT=TCP:127.0.0.3\private$\inbox"


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    port = str(free_port())
    environment = {"MSMQ_FAST_MQQB__RETRY_INTERVAL": "0.3"}
    with data_directory() as first, data_directory() as second:
        a = Server(first, "--port", port, "--name", "ALPHA", host="127.0.0.2", environment=environment)
        b = Server(second, "--port", port, "--name", "BETA", host="127.0.0.3", environment=environment)
        b.start()
        b.ok("queue", "create", "inbox", "--transactional")
        a.start()
        try:
            yield a, b
        finally:
            a.kill()
            b.kill()


def send(server: Server, transactions: list[list[str]], journal: Journal = Journal.NONE) -> int:
    """Commit transactions; how many were."""

    async def run() -> int:
        done = 0
        async with await connect(server.endpoint) as connection:
            queue = await connection.open(TARGET, Access.SEND)
            for labels in transactions:
                async with connection.transaction() as transaction:
                    messages = [Message(b"x" * 500, label=label, journal=journal) for label in labels]
                    await queue.send_many(messages, transaction=transaction)
                done += 1
        return done

    return asyncio.run(run())


def batches(count: int, size: int) -> list[list[str]]:
    return [[str(number) for number in range(at, min(at + size, count))] for at in range(0, count, size)]


@pytest.mark.rule("QB-110", "QB-332", "QB-124", "QB-208", "QB-121")
def test_transactions_arrive_in_order_and_leave_the_sender(pair: tuple[Server, Server]) -> None:
    a, b = pair
    assert send(a, batches(400, 7)) == 58
    assert send(a, batches(50, 1)) == 50
    received = collect(b, "inbox", 450)
    expected = [str(number) for number in range(400)] + [str(number) for number in range(50)]
    assert [message["label"] for message in received] == expected
    assert all(message["transactional"] for message in received)
    until(lambda: drained(a), what="OrderAcks for everything")


@pytest.mark.long(seconds=15)
@pytest.mark.rule("QB-214", "QB-128")
def test_an_operator_sees_what_waits_for_acknowledgment(pair: tuple[Server, Server]) -> None:
    a, b = pair
    a.stop()
    a.environment |= {"MSMQ_FAST_MQQB__RESEND_SHORT": "77", "MSMQ_FAST_MQQB__RESEND_MEDIUM": "99"}
    a.start()
    b.kill()
    send(a, batches(3, 3))
    (shown,) = a.ok("outgoing", "show", TARGET)
    assert (shown["no_ack_count"], shown["no_read_count"], shown["resend_time"]) == (3, 0, 0)
    assert str(shown["first_non_ack"]).endswith(":1 after 0")
    assert str(shown["last_non_ack"]).endswith(":3 after 2")
    b.start()
    until(lambda: a.ok("outgoing", "show", TARGET)[0]["last_ack"] != "", what="an OrderAck")
    (shown,) = a.ok("outgoing", "show", TARGET)
    assert (shown["resend_interval"], shown["no_ack_count"], shown["messages"]) == (77, 0, 0)


@pytest.mark.long(seconds=15)
@pytest.mark.rule("QB-313")
def test_a_receiver_that_acknowledges_late_gets_everything_again_and_takes_it_once(
    pair: tuple[Server, Server],
) -> None:
    a, b = pair
    a.stop()
    a.environment["MSMQ_FAST_MQQB__RESEND_SHORT"] = "0.4"
    a.start()
    b.stop()
    b.environment["MSMQ_FAST_MQQB__ORDER_ACK_DELAY"] = "3"
    b.start()
    send(a, batches(20, 5))
    until(lambda: a.ok("stats")[0]["resends"] >= 2, what="time-outs")
    until(lambda: drained(a), what="OrderAcks for everything")
    assert [message["label"] for message in b.messages("inbox")] == [str(n) for n in range(20)]


@pytest.mark.rule("QB-217", "QB-126", "QB-212")
def test_what_is_read_over_there_is_in_the_journal_here(pair: tuple[Server, Server]) -> None:
    a, b = pair
    send(a, batches(20, 5), Journal.JOURNAL)
    received = collect(b, "inbox", 20)
    until(lambda: drained(a), what="FinalAcks for everything")
    journal = a.messages(r".\system$;JOURNAL")
    assert [message["label"] for message in journal] == [message["label"] for message in received]


@pytest.mark.long(seconds=10)
@pytest.mark.rule("QB-218")
def test_what_is_purged_over_there_is_a_dead_letter_here(pair: tuple[Server, Server]) -> None:
    a, b = pair
    send(a, batches(20, 5), Journal.DEADLETTER)
    until(lambda: b.ok("queue", "show", "inbox")[0]["messages"] == 20, what="arrival")
    b.ok("queue", "purge", "inbox")
    until(lambda: drained(a), what="FinalAcks for everything")
    letters = a.messages(r".\system$;DEADXACT")
    assert sorted(int(str(message["label"])) for message in letters) == list(range(20))


@pytest.mark.long(seconds=40)
@pytest.mark.rule("QB-140", "DU-19", "QB-333")
def test_kills_of_both_sides_lose_nothing_and_repeat_nothing(pair: tuple[Server, Server]) -> None:
    a, b = pair
    sent: list[str] = []
    for round_ in range(4):
        labels = [[f"{round_}.{number}" for number in range(at, at + 5)] for at in range(0, 100, 5)]
        try:
            send(a, labels)
        except (OSError, MSMQError) as error:
            raise AssertionError("nobody was killed meanwhile") from error
        sent += [label for batch in labels for label in batch]
        victim = (b, a)[round_ % 2]
        victim.kill()
        victim.start()
    received = collect(b, "inbox", len(sent))
    assert [message["label"] for message in received] == sent
    until(lambda: drained(a), what="OrderAcks for everything")
    assert b.messages("inbox") == []

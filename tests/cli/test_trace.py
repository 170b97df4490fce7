"""`trace`: what happened to a message, and where it is now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from msmq_fast.client import sync
from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.protocol.exits import Exit
from tests.support.processes.pair import drained, pair
from tests.support.processes.servers import Server, data_directory, until

__all__ = ["pair"]

FAR = r"DIRECT=TCP:127.0.0.88\private$\far"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA").start()
        try:
            running.ok("queue", "create", "orders", "--journal")
            yield running
        finally:
            running.kill()


def sent(server: Server, queue: str, *flags: str) -> str:
    (answer,) = server.ok("send", queue, "--body", "x", *flags)
    return str(answer["message_id"])


def trace(server: Server, message_id: str, *flags: str) -> dict[str, Any]:
    (found,) = server.ok("trace", message_id, *flags)
    assert found["message_id"] == message_id
    return dict(found)


def events(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(event["event"], event["queue"].rpartition("\\")[2]) for event in found["events"]]


def places(found: dict[str, Any]) -> list[str]:
    return [place["queue"].rpartition("\\")[2] for place in found["places"]]


def test_a_message_is_followed_from_its_arrival_to_the_journal(server: Server) -> None:
    message_id = sent(server, "orders", "--recoverable")
    waiting = trace(server, message_id)
    assert events(waiting) == [("arrived", "orders")]
    assert places(waiting) == ["orders"]
    assert waiting["places"][0]["state"] == ""
    (received,) = server.ok("receive", "orders")
    assert received["message_id"] == message_id
    gone = trace(server, message_id)
    assert sorted(events(gone)[1:]) == [("journaled", "orders;JOURNAL"), ("received", "orders")]
    assert places(gone) == ["orders;JOURNAL"]
    assert [event["feed_seq"] for event in gone["events"]] == sorted(
        event["feed_seq"] for event in gone["events"]
    )


def test_a_message_that_left_no_copy_is_in_no_queue(server: Server) -> None:
    server.ok("queue", "create", "plain")
    message_id = sent(server, "plain", "--recoverable")
    server.ok("receive", "plain")
    assert places(trace(server, message_id)) == []
    shown = server.run("trace", message_id).stdout.decode().splitlines()
    assert shown[0].split() == ["EVENT_TIME", "EVENT", "QUEUE", "DETAIL"]
    assert shown[-1].startswith(r"received: a program received it from ALPHA\private$\plain, by ")
    assert shown[-1].endswith(", program msmq-fast receive, on this computer")


def received_by(server: Server, message_id: str, event: str) -> tuple[str, str]:
    """(program, address) of the latest event of this kind."""
    found = [one for one in trace(server, message_id)["events"] if one["event"] == event]
    assert found[-1]["user"]
    return found[-1]["program"], found[-1]["address"]


def test_the_trace_names_the_program_that_received_the_message(server: Server) -> None:
    server.ok("queue", "create", "named", "--transactional")
    server.ok("queue", "create", "plainly")

    def took(how: Callable[[sync.Connection, sync.Queue], object], queue: str = "plainly") -> str:
        flags = ["--transaction"] if queue == "named" else ["--recoverable"]
        message_id = sent(server, queue, *flags)
        with sync.connect(server.endpoint, client="reader 7") as connection, connection.open(queue) as opened:
            how(connection, opened)
        return message_id

    def in_transaction(connection: sync.Connection, queue: sync.Queue) -> None:
        with connection.transaction() as transaction:
            queue.receive(5, transaction=transaction)

    def by_subscription(_: sync.Connection, queue: sync.Queue) -> None:
        with queue.subscribe(credit=1) as messages:
            messages.acknowledge(next(iter(messages)))

    def by_stream(_: sync.Connection, queue: sync.Queue) -> None:
        with queue.subscribe(credit=1, acknowledge=False) as messages:
            next(iter(messages))

    def by_lookup(_: sync.Connection, queue: sync.Queue) -> None:
        queue.lookup(queue.peek(5).lookup_id, receive=True)

    for message_id in (
        took(lambda _, queue: queue.receive(5)),
        took(by_subscription),
        took(by_stream),
        took(by_lookup),
        took(in_transaction, "named"),
    ):
        assert received_by(server, message_id, "received") == ("reader 7", "local")


def test_the_reader_is_known_after_a_restart(server: Server) -> None:
    server.ok("queue", "create", "kept")
    message_id = sent(server, "kept", "--recoverable")
    with sync.connect(server.endpoint, client="x" * 100) as connection, connection.open("kept") as queue:
        queue.receive(5)
    server.kill()
    server.start()
    assert received_by(server, message_id, "received") == ("x" * 64, "local")


def test_the_trace_names_the_operator_that_moved_the_message(server: Server) -> None:
    server.ok("queue", "create", "from-here")
    server.ok("queue", "create", "to-there")
    message_id = sent(server, "from-here", "--recoverable")
    server.ok("queue", "move", "from-here", "to-there")
    assert received_by(server, message_id, "moved") == ("msmq-fast queue move", "local")
    assert ", program msmq-fast queue move, on this computer" in trace(server, message_id)["verdict"]["text"]


def test_a_message_for_another_computer_waits_in_its_outgoing_queue(server: Server) -> None:
    server.ok("send", FAR, "--body", "first", "--recoverable")
    server.ok("outgoing", "pause", FAR)
    message_id = sent(server, FAR, "--recoverable")
    found = trace(server, message_id)
    assert events(found) == [("sent", "far")]
    assert found["places"][0]["queue"] == FAR
    assert "hold" in found["places"][0]["state"]


def test_a_dead_letter_has_its_reason(server: Server) -> None:
    message_id = sent(server, "orders", "--recoverable", "--dead-letter", "--ttbr", "1s")
    until(lambda: "system$;deadletter" in "".join(places(trace(server, message_id))), what="a dead letter")
    shown = server.run("trace", message_id).stdout.decode()
    assert "NACK_RECEIVE_TIMEOUT (was not received in time)" in shown
    assert r"now in ALPHA\system$;deadletter" in shown


def test_an_express_message_is_searched_for(server: Server) -> None:
    server.ok("queue", "create", "express")
    message_id = sent(server, "express")
    assert places(trace(server, message_id, "--search")) == ["express"]


def test_an_identifier_from_stdin(server: Server) -> None:
    server.ok("queue", "create", "piped")
    message_id = sent(server, "piped", "--recoverable")
    (found,) = server.ok("trace", "-", stdin=f"{message_id}\nmore\n".encode())
    assert found["message_id"] == message_id
    assert server.run("trace", "-", stdin=b"").returncode == Exit.USAGE


def test_an_unknown_message(server: Server) -> None:
    done = server.run("trace", r"{ca67622c-7290-4658-b39b-f700fff64801}\5")
    assert done.returncode == Exit.NOT_FOUND
    assert b"neither in a queue nor in the event feed" in done.stderr


@pytest.mark.parametrize(
    "text", ["5", r"{ca67622c}\5", r"{ca67622c-7290-4658-b39b-f700fff64801}", "-" * 36 + r"\5", r"\5"]
)
def test_what_is_not_an_identifier(server: Server, text: str) -> None:
    done = server.run("trace", "--", text)
    assert done.returncode == Exit.USAGE
    assert b"is not a message id: write it as `send` prints it" in done.stderr


def test_the_client_traces_too(server: Server) -> None:
    with sync.connect(server.endpoint) as connection:
        with connection.open("orders") as queue:
            sent_id = queue.send(b"x", delivery=1)
            message = queue.receive(5)
        assert message.message_id == sent_id
        found = connection.admin.trace(message.id)
        assert found[0].event == "arrived"
        with pytest.raises(InvalidParameter, match="20 bytes"):
            connection.admin.trace(b"short")


def test_a_message_that_another_computer_took_may_have_been_refused_there(
    pair: tuple[Server, Server],
) -> None:
    sender, receiver = pair
    sender.start()
    receiver.start()
    message_id = sent(sender, r"DIRECT=TCP:127.0.0.3\private$\nowhere", "--recoverable")
    until(lambda: drained(sender), what="the acknowledgment")
    shown = sender.run("trace", message_id).stdout.decode().splitlines()
    assert shown[-3].endswith("taken by the next queue manager, by mqqb")
    assert "may have refused it later" in shown[-2]
    assert shown[-1].startswith("next: trace it at the receiver")

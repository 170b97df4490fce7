"""Two server processes on addresses of their own and one port number exchange messages over MS-MQQB."""

from __future__ import annotations

import pytest

from tests.support.processes.pair import collect, drained, free_port, pair
from tests.support.processes.servers import Server, until

pytestmark = pytest.mark.smoke

__all__ = ["pair"]

COUNT = 300


def test_express_and_recoverable_messages_go_both_ways(pair: tuple[Server, Server]) -> None:
    a, b = (server.start() for server in pair)
    for server in (a, b):
        server.ok("queue", "create", "inbox")
    for sender, receiver, kind in (
        (a, b, []),
        (a, b, ["--recoverable"]),
        (b, a, []),
        (b, a, ["--recoverable"]),
    ):
        target = f"DIRECT=TCP:{receiver.host}\\private$\\inbox"
        sender.ok("send", target, "--body", "from far", "--label", "greeting", "--count", str(COUNT), *kind)
        received = collect(receiver, "inbox", COUNT)
        assert len(received) == COUNT
        assert len({message["message_id"] for message in received}) == COUNT
        ordinals = [int(str(message["message_id"]).split("\\")[1]) for message in received]
        assert ordinals == sorted(ordinals)
        assert {message["label"] for message in received} == {"greeting"}
        assert {message["delivery"] for message in received} == {"recoverable" if kind else "express"}
        assert {message["source_machine"] for message in received} == {sender.ready["guid"]}


def test_recoverable_messages_leave_the_outgoing_queue_when_acknowledged(pair: tuple[Server, Server]) -> None:
    a, b = (server.start() for server in pair)
    b.ok("queue", "create", "inbox")
    a.ok("send", "DIRECT=TCP:127.0.0.3\\private$\\inbox", "--body", "x", "--recoverable", "--count", "100")
    until(lambda: drained(a), what="empty outgoing queues")
    assert len(collect(b, "inbox", 100)) == 100


@pytest.mark.rule("QB-152")
def test_messages_wait_for_a_host_that_is_down_and_survive_a_kill_of_the_sender(
    pair: tuple[Server, Server],
) -> None:
    a, b = pair
    b.start()
    b.ok("queue", "create", "inbox")
    b.kill()
    a.start()
    target = "DIRECT=TCP:127.0.0.3\\private$\\inbox"
    a.ok("send", target, "--body", "x", "--recoverable", "--count", "50")
    assert [queue["messages"] for queue in a.ok("outgoing", "list")] == [50]
    a.kill()
    a.start()
    assert [queue["messages"] for queue in a.ok("outgoing", "list")] == [50]
    b.start()
    assert len(collect(b, "inbox", 50)) == 50
    until(lambda: drained(a), what="empty outgoing queues")


def test_a_message_for_a_queue_that_does_not_exist_is_counted(pair: tuple[Server, Server]) -> None:
    a, b = (server.start() for server in pair)
    a.ok("send", "DIRECT=TCP:127.0.0.3\\private$\\nowhere", "--body", "x", "--recoverable")
    until(lambda: drained(a), what="the acknowledgment")
    assert b.ok("stats")[0]["refusals"] == {"message: unknown queue": 1}


def test_the_receiver_is_killed_between_messages_and_the_sender_reconnects(
    pair: tuple[Server, Server],
) -> None:
    a, b = (server.start() for server in pair)
    b.ok("queue", "create", "inbox")
    target = "DIRECT=TCP:127.0.0.3\\private$\\inbox"
    a.ok("send", target, "--body", "1", "--recoverable")
    until(lambda: drained(a), what="the first acknowledgment")
    b.kill()
    a.ok("send", target, "--body", "2", "--recoverable")
    b.start()
    until(lambda: drained(a), what="the second acknowledgment")
    assert [message["body_b64"] for message in collect(b, "inbox", 2)] == ["MQ==", "Mg=="]


def test_an_idle_session_closes_and_opens_again_on_demand(pair: tuple[Server, Server]) -> None:
    a, b = pair
    a.environment["MSMQ_FAST_MQQB__IDLE_TIMEOUT"] = "1"
    a.start()
    b.start()
    b.ok("queue", "create", "inbox")
    target = "DIRECT=TCP:127.0.0.3\\private$\\inbox"
    a.ok("send", target, "--body", "1", "--recoverable")
    until(lambda: a.ok("stats")[0]["sessions"] == 1, what="a session")
    until(lambda: a.ok("stats")[0]["sessions"] == 0, what="the idle close")
    a.ok("send", target, "--body", "2", "--recoverable")
    assert len(collect(b, "inbox", 2)) == 2


def test_a_paused_outgoing_queue_keeps_its_messages(pair: tuple[Server, Server]) -> None:
    a, b = (server.start() for server in pair)
    b.ok("queue", "create", "inbox")
    target = "DIRECT=TCP:127.0.0.3\\private$\\inbox"
    a.ok("send", target, "--body", "1", "--recoverable")
    until(lambda: drained(a), what="the first acknowledgment")
    a.ok("outgoing", "pause", target)
    a.ok("send", target, "--body", "2", "--recoverable")
    assert a.ok("outgoing", "show", target)[0]["messages"] == 1
    a.ok("outgoing", "resume", target)
    until(lambda: drained(a), what="the second acknowledgment")
    assert len(collect(b, "inbox", 2)) == 2


def test_ping_says_who_is_there_and_who_is_not(pair: tuple[Server, Server]) -> None:
    a, b = pair
    a.start()
    assert a.run("ping", f"127.0.0.2:{a.port('ping')}").returncode == 0
    assert a.run("ping", f"127.0.0.2:{free_port()}", "--timeout", "0.2").returncode == 4
    assert b.process is None


@pytest.mark.rule("QB-261")
def test_a_queue_that_comes_to_require_signatures_takes_no_unsigned_message_any_more(
    pair: tuple[Server, Server],
) -> None:
    a, b = (server.start() for server in pair)
    b.ok("queue", "create", "inbox")
    target = "DIRECT=TCP:127.0.0.3\\private$\\inbox"
    a.ok("send", target, "--body", "1", "--recoverable", "--count", "3")
    until(lambda: drained(a), what="the first acknowledgment")
    b.ok("queue", "set", "inbox", "--authenticated")
    a.ok("send", target, "--body", "2", "--recoverable")
    until(lambda: drained(a), what="the second acknowledgment")
    assert [message["body_b64"] for message in b.messages("inbox")] == ["MQ=="] * 3
    assert b.ok("stats")[0]["refusals"] == {"message: signed": 1}

"""The ways in which a message is stuck or gone: the trace of the command line, of the management API and of
the console, and the log, each name the cause at the side where an operator looks first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.http.api import ok
from tests.support.http.console import Browser
from tests.support.processes.line import Line
from tests.support.processes.pair import drained, free_port
from tests.support.processes.servers import Server, data_directory, until

Pair = tuple[Server, Server]
SENDER, RECEIVER, LINE = "127.0.0.2", "127.0.0.3", "127.0.0.4"
THERE = rf"DIRECT=TCP:{RECEIVER}\private$\orders"
OVER_LINE = rf"DIRECT=TCP:{LINE}\private$\orders"
LOCAL = {"Host": "localhost"}


@pytest.fixture
def pair() -> Iterator[Pair]:
    port = str(free_port())
    environment = {
        "MSMQ_FAST_MQQB__RETRY_INTERVAL": "0.3",
        "MSMQ_FAST_LOG__FORMAT": "json",
        "MSMQ_FAST_LOG__REFUSALS_PER_SECOND": "100",
    }

    def server(data: Path, name: str, host: str, **more: str) -> Server:
        at = environment | {"MSMQ_FAST_LISTEN__ADMIN__HOST": host} | more
        return Server(data, "--port", port, "--name", name, host=host, environment=at)

    with data_directory() as first, data_directory() as second:
        a = server(first, "ALPHA", SENDER)
        b = server(second, "BETA", RECEIVER, MSMQ_FAST_SERVER__ALIASES=LINE)
        try:
            yield a, b
        finally:
            a.kill()
            b.kill()


def peeked(server: Server) -> list[dict[str, Any]]:
    done = server.run("peek", "orders", "--count", "10", "--json")
    return [json.loads(line) for line in done.stdout.splitlines()]


def sent(server: Server, queue: str, *flags: str) -> str:
    (answer,) = server.ok("send", queue, "--body", "x", "--label", "probe", *flags)
    return str(answer["message_id"])


def verdict(server: Server, message_id: str) -> dict[str, Any]:
    done = server.run("trace", message_id, "--json")
    if done.returncode == Exit.NOT_FOUND:
        return {"cause": "unknown", "text": done.stderr.decode()}
    (found,) = server.ok("trace", message_id)
    return dict(found["verdict"])


def ends(server: Server, message_id: str, cause: str) -> str:
    """The text of the verdict, which gets this cause. People see the same line, and so do the users of the
    API and of the console.
    """
    until(lambda: verdict(server, message_id)["cause"] == cause, what=f"{cause} of {message_id}")
    found = verdict(server, message_id)
    lines = server.run("trace", message_id).stdout.decode().splitlines()
    assert f"{cause}: {found['text']}" in lines
    assert not found["next"] or f"next: {found['next']}" in lines
    assert ok(server, "GET", "/trace/{}", message_id, headers=LOCAL)["verdict"] == found
    page = shown(server, message_id)
    assert cause.capitalize() + "." in page
    assert found["text"][1:].replace("`", "") in page  # a command is in a font of its own there
    return str(found["text"])


def shown(server: Server, message_id: str) -> str:
    """The text of the trace page of the console."""
    browser = Browser(server)
    assert browser.ask("POST", "/login", {"how": "local"}).status == 303
    page = browser.ask("GET", f"/trace?id={message_id.replace('{', '%7B').replace('}', '%7D')}")
    assert page.status == 200
    return " ".join(page.text.split())


def started(servers: Pair, *create: str) -> Pair:
    sender, receiver = servers
    sender.start()
    receiver.start().ok("queue", "create", "orders", *create)
    return sender, receiver


def logged(server: Server, **fields: object) -> dict[str, Any]:
    """The first line of the log with these fields."""
    found: list[dict[str, Any]] = []

    def there() -> bool:
        lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
        found.extend(line for line in lines if all(line.get(name) == value for name, value in fields.items()))
        return bool(found)

    until(there, what=f"a line of the log with {fields}")
    return found[0]


def refused(servers: Pair, cause: str, reason: str, *flags: str) -> None:
    """The receiver refuses a message: its trace has the cause, its log a line with identifier, queue and
    peer, and the sender says where to look.
    """
    sender, receiver = servers
    message_id = sent(sender, THERE, "--recoverable", *flags)
    ends(receiver, message_id, cause)
    ends(sender, message_id, "forwarded")
    line = logged(receiver, what="message", reason=reason, message_id=message_id, peer=SENDER)
    assert line["queue"] == THERE
    assert line["logger"] == "msmq_fast.refusals"


def test_no_route(pair: Pair) -> None:
    sender = pair[0].start()
    name = "PRIVATE=43cd8907-394c-8f11-4445-9078909ea0fc\\00000005"
    message_id = sent(sender, name, "--recoverable")
    assert "[[routes]]" in ends(sender, message_id, "no route")
    line = logged(sender, what="outgoing queue", reason="no route", queue=name)
    assert line["message_id"] == message_id


def test_refused_because_the_queue_is_unknown(pair: Pair) -> None:
    sender, receiver = pair[0].start(), pair[1].start()
    refused((sender, receiver), "unknown queue", "unknown queue")


def test_refused_by_the_access_list(pair: Pair) -> None:
    sender, receiver = started(pair)
    receiver.ok("acl", "deny", "orders", "--user", "anonymous", "--right", "send")
    refused((sender, receiver), "access denied", "access denied")


def test_refused_because_only_one_of_queue_and_message_is_transactional(pair: Pair) -> None:
    refused(started(pair, "--transactional"), "transactional mismatch", "not transactional")


def test_refused_because_the_queue_is_full(pair: Pair) -> None:
    sender, receiver = started(pair)
    receiver.ok("queue", "set", "orders", "--quota", "0")
    refused((sender, receiver), "quota", "queue quota")


def test_expired(pair: Pair) -> None:
    sender = pair[0].start()
    sender.ok("queue", "create", "here")
    message_id = sent(sender, "here", "--recoverable", "--ttbr", "1s")
    assert "no program received it in time" in ends(sender, message_id, "expired")
    line = logged(sender, reason="expired", message_id=message_id)
    assert (line["what"], line["queue"]) == ("message", r"ALPHA\private$\here")


def test_many_expired_messages_have_few_lines(pair: Pair) -> None:
    sender = pair[0].start()
    sender.ok("queue", "create", "here")
    sender.ok("send", "here", "--body", "x", "--count", "500", "--ttbr", "1s")
    until(lambda: sender.ok("queue", "show", "here")[0]["expired"] == 500, what="500 expired messages")
    logged(sender, reason="expired")
    lines = [json.loads(line) for line in sender.log.read_text().splitlines() if line.startswith("{")]
    assert len([line for line in lines if line.get("reason") == "expired"]) <= 100


def test_the_peer_is_down(pair: Pair) -> None:
    sender = pair[0].start()
    message_id = sent(sender, THERE, "--recoverable")
    text = ends(sender, message_id, "connection refused")
    assert f"{RECEIVER} refused the connection (Connection refused): no queue manager listens there" in text
    line = logged(sender, what="outgoing queue", reason="connection refused")
    assert (line["queue"], line["peer"], line["message_id"]) == (THERE, RECEIVER, message_id)


def test_a_peer_that_returns_is_logged_once(pair: Pair) -> None:
    sender, receiver = pair
    sender.start()
    sent(sender, THERE, "--recoverable")
    logged(sender, what="outgoing queue", reason="connection refused")
    receiver.start()
    logged(sender, what="outgoing queue", reason="sends again", queue=THERE, peer=RECEIVER)
    until(lambda: drained(sender), what="the acknowledgment")
    lines = [json.loads(line) for line in sender.log.read_text().splitlines() if line.startswith("{")]
    assert len([line for line in lines if line.get("reason") == "connection refused"]) == 1


def test_paused(pair: Pair) -> None:
    sender = pair[0].start()
    message_id = sent(sender, THERE, "--recoverable")
    sender.ok("outgoing", "pause", THERE)
    assert "paused by" in ends(sender, message_id, "on hold")
    act = logged(sender, logger="msmq_fast.audit", operation="pause outgoing queue")
    assert act["object"] == THERE
    assert act["caller"]
    assert logged(sender, what="outgoing queue", reason="on hold", queue=THERE)["message_id"] == message_id


@pytest.mark.parametrize(
    "flags", [(), ("--recoverable",), ("--transaction",)], ids=["express", "recoverable", "transaction"]
)
def test_a_duplicate_after_a_lost_acknowledgment(pair: Pair, flags: tuple[str, ...]) -> None:
    sender, receiver = started(pair, *(["--transactional"] if "--transaction" in flags else []))
    port = receiver.port("mqqb")
    with closing(Line((LINE, port), (RECEIVER, port))) as line:
        first = sent(sender, OVER_LINE, *flags)
        until(lambda: len(peeked(receiver)) == 1, what="the first message")
        line.deaf = True
        message_id = sent(sender, OVER_LINE, *flags)
        until(lambda: len(peeked(receiver)) == 2, what="the second message")
        line.cut()
        line.deaf = False
        text = ends(receiver, message_id, "duplicate")
        assert r"\private$\orders holds one copy" in text
        found = logged(receiver, reason="duplicate", message_id=message_id)
    assert (found["what"], found["queue"], found["peer"]) == ("message", OVER_LINE, "127.0.0.1")
    assert [one["message_id"] for one in receiver.messages("orders")] == [first, message_id]


def test_dead_lettered(pair: Pair) -> None:
    sender = pair[0].start()
    message_id = sent(sender, THERE, "--recoverable", "--dead-letter", "--ttrq", "1s")
    assert "NACK_REACH_QUEUE_TIMEOUT" in ends(sender, message_id, "dead letter")
    line = logged(sender, what="dead letter", message_id=message_id)
    assert (line["reason"], line["queue"]) == ("NACK_REACH_QUEUE_TIMEOUT", THERE)


def test_a_transactional_message_that_is_refused_tells_its_sender(pair: Pair) -> None:
    sender, _ = started(pair)
    message_id = sent(sender, THERE, "--transaction", "--dead-letter")
    text = ends(sender, message_id, "dead letter")
    assert "transactional" in text
    line = logged(sender, what="sent message", message_id=message_id)
    assert (line["reason"], line["queue"], line["peer"]) == ("NACK_NOT_TRANSACTIONAL_Q", THERE, RECEIVER)


def test_moved(pair: Pair) -> None:
    sender = pair[0].start()
    sender.ok("queue", "create", "first")
    sender.ok("queue", "create", "second")
    message_id = sent(sender, "first", "--recoverable")
    sender.ok("queue", "move", "first", "second")
    text = ends(sender, message_id, "moved")
    assert r"first to ALPHA\private$\second, by " in text
    assert "program msmq-fast queue move" in text
    act = logged(sender, logger="msmq_fast.audit", operation="move messages")
    assert "first" in act["object"]
    assert act["caller"]


def test_received_by_whom(pair: Pair) -> None:
    sender, receiver = started(pair)
    message_id = sent(sender, THERE, "--recoverable")
    until(lambda: drained(sender), what="the acknowledgment")
    assert "no program has received it" in ends(receiver, message_id, "waiting")
    receiver.ok("receive", "orders", "--timeout", "5s")
    text = ends(receiver, message_id, "received")
    assert "a program received it" in text
    assert text.endswith(", program msmq-fast receive, on this computer")
    line = logged(receiver, what="queue", reason="read", queue=r"BETA\private$\orders")
    assert (line["program"], line["peer"]) == ("msmq-fast receive", "local")
    assert line["user"]
    assert "may have refused it later" in ends(sender, message_id, "forwarded")
    assert f"Trace it at {RECEIVER}" in shown(sender, message_id)
    assert "At the other side" not in shown(receiver, message_id)


def test_a_message_that_goes_its_way_has_no_line(pair: Pair) -> None:
    sender, receiver = started(pair)
    sent(sender, THERE, "--recoverable")
    until(lambda: drained(sender), what="the acknowledgment")
    receiver.ok("receive", "orders", "--timeout", "5s")
    before = receiver.log.read_text()
    for _ in range(3):
        message_id = sent(sender, THERE, "--recoverable")
        receiver.ok("receive", "orders", "--timeout", "5s")
        ends(receiver, message_id, "received")
    new = receiver.log.read_text()[len(before) :]
    assert "msmq_fast.messages" not in new
    assert "msmq_fast.refusals" not in new


def test_an_unknown_identifier_says_what_that_means(pair: Pair) -> None:
    sender = pair[0].start()
    text = verdict(sender, r"{ca67622c-7290-4658-b39b-f700fff64801}\5")["text"]
    assert "this queue manager never had it" in text
    assert "whose GUID the identifier begins with" in text
    assert "has no event of this message" in shown(sender, r"{ca67622c-7290-4658-b39b-f700fff64801}\5")


def test_both_sides_in_one_timeline(pair: Pair) -> None:
    sender, receiver = started(pair)
    message_id = sent(sender, THERE, "--recoverable")
    until(lambda: drained(sender), what="the acknowledgment")
    receiver.ok("receive", "orders", "--timeout", "5s")
    (found,) = sender.ok("trace", message_id, "--at", receiver.endpoint)
    assert found["verdict"]["cause"] == "forwarded"
    (other,) = found["others"]
    assert (other["computer"], other["verdict"]["cause"]) == ("BETA", "received")
    shown = sender.run("trace", message_id, "--at", receiver.endpoint).stdout.decode().splitlines()
    assert shown[0].split() == ["EVENT_TIME", "COMPUTER", "EVENT", "QUEUE", "DETAIL"]
    assert {line.split()[1] for line in shown[1:4]} == {"ALPHA", "BETA"}
    assert [line for line in shown if line.startswith("at ")] == ["at ALPHA:", "at BETA:"]
    assert any(line.startswith("received: a program received it") for line in shown)


def test_a_side_that_does_not_answer_leaves_the_other(pair: Pair) -> None:
    sender = pair[0].start()
    message_id = sent(sender, THERE, "--recoverable")
    done = sender.run("trace", message_id, "--at", "tcp://127.0.0.99:1803", "--json")
    assert done.returncode == Exit.OK
    assert done.stderr.startswith(b"msmq-fast trace: tcp://127.0.0.99:1803: ")
    assert json.loads(done.stdout)["others"] == []

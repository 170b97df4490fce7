"""The ways in which a message is stuck or gone: `trace` names each at the side where an operator looks."""

from __future__ import annotations

from typing import Any

from msmq_fast.protocol.exits import Exit
from tests.support.processes.pair import drained, pair
from tests.support.processes.servers import Server, until

__all__ = ["pair"]

Pair = tuple[Server, Server]
THERE = r"DIRECT=TCP:127.0.0.3\private$\orders"


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
    """The text of the verdict, which gets this cause; people see the same line."""
    until(lambda: verdict(server, message_id)["cause"] == cause, what=f"{cause} of {message_id}")
    found = verdict(server, message_id)
    lines = server.run("trace", message_id).stdout.decode().splitlines()
    assert f"{cause}: {found['text']}" in lines
    assert not found["next"] or f"next: {found['next']}" in lines
    return str(found["text"])


def started(servers: Pair, *create: str) -> Pair:
    sender, receiver = servers
    sender.start()
    receiver.start().ok("queue", "create", "orders", *create)
    return sender, receiver


def logged(server: Server, *words: str) -> bool:
    """Whether one line of the log has all these words."""
    return any(all(word in line for word in words) for line in server.log.read_text().splitlines())


def refused(servers: Pair, cause: str, reason: str, *flags: str) -> None:
    """The receiver refuses a message: its trace has the cause, its log a line with identifier and peer, and
    the sender says where to look.
    """
    sender, receiver = servers
    message_id = sent(sender, THERE, "--recoverable", *flags)
    ends(receiver, message_id, cause)
    ends(sender, message_id, "forwarded")
    until(lambda: logged(receiver, "refused message", reason, message_id, "127.0.0.2"), what="the log line")


def test_no_route(pair: Pair) -> None:
    sender = pair[0].start()
    message_id = sent(sender, "PRIVATE=43cd8907-394c-8f11-4445-9078909ea0fc\\00000005", "--recoverable")
    assert "[[routes]]" in ends(sender, message_id, "no route")


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


def test_the_peer_is_down(pair: Pair) -> None:
    sender = pair[0].start()
    message_id = sent(sender, THERE, "--recoverable")
    assert "127.0.0.3 refused the connection" in ends(sender, message_id, "connection refused")


def test_paused(pair: Pair) -> None:
    sender = pair[0].start()
    message_id = sent(sender, THERE, "--recoverable")
    sender.ok("outgoing", "pause", THERE)
    assert "paused by" in ends(sender, message_id, "on hold")
    until(lambda: logged(sender, "pause outgoing queue", "127.0.0.3"), what="the audit line")


def test_dead_lettered(pair: Pair) -> None:
    sender = pair[0].start()
    message_id = sent(sender, THERE, "--recoverable", "--dead-letter", "--ttrq", "1s")
    assert "NACK_REACH_QUEUE_TIMEOUT" in ends(sender, message_id, "dead letter")


def test_a_transactional_message_that_is_refused_tells_its_sender(pair: Pair) -> None:
    sender, _ = started(pair)
    message_id = sent(sender, THERE, "--transaction", "--dead-letter")
    text = ends(sender, message_id, "dead letter")
    assert "transactional" in text
    until(lambda: logged(sender, "refused sent message", message_id, "127.0.0.3"), what="the log line")


def test_moved(pair: Pair) -> None:
    sender = pair[0].start()
    sender.ok("queue", "create", "first")
    sender.ok("queue", "create", "second")
    message_id = sent(sender, "first", "--recoverable")
    sender.ok("queue", "move", "first", "second")
    assert "first to " in ends(sender, message_id, "moved")


def test_received_at_the_receiver_and_taken_at_the_sender(pair: Pair) -> None:
    sender, receiver = started(pair)
    message_id = sent(sender, THERE, "--recoverable")
    until(lambda: drained(sender), what="the acknowledgment")
    assert "no program has received it" in ends(receiver, message_id, "waiting")
    receiver.ok("receive", "orders", "--timeout", "5s")
    assert "a program received it" in ends(receiver, message_id, "received")
    assert "may have refused it later" in ends(sender, message_id, "forwarded")


def test_an_unknown_identifier_says_what_that_means(pair: Pair) -> None:
    sender = pair[0].start()
    text = verdict(sender, r"{ca67622c-7290-4658-b39b-f700fff64801}\5")["text"]
    assert "this queue manager never had it" in text
    assert "whose GUID the identifier begins with" in text

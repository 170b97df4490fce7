"""`receive` and `peek` with filters: by label, correlation id and message id; other messages stay."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes import forking
from tests.support.processes.servers import Server, inherited

FILLED = (("red 1", 3), ("blue 1", 3), ("red 2", 7), ("Red 3", 0), ("blue 2", 3), ("red 4", 3))


@pytest.fixture
def queue(server: Server, request: pytest.FixtureRequest) -> str:
    name = request.node.name.split("[")[0]
    server.ok("queue", "create", name, "--transactional" if "transaction" in name else "--journal")
    return str(name)


def fill(server: Server, queue: str, *flags: str) -> list[str]:
    """Send one message for each of FILLED; returns their identifiers."""
    return [
        server.ok("send", queue, "--body", label, "--label", label, "--priority", str(priority), *flags)[0][
            "message_id"
        ]
        for label, priority in FILLED
    ]


def labels(messages: list[Any]) -> list[str]:
    return [message["label"] for message in messages]


@pytest.mark.parametrize("verb", ["peek", "receive"])
def test_labels(server: Server, verb: str) -> None:
    queue = f"labels-{verb}"
    server.ok("queue", "create", queue)
    fill(server, queue)
    assert labels(server.ok(verb, queue, "--label", "red *", "--count", "2")) == ["red 2", "red 1"]
    assert labels(server.ok(verb, queue, "--label", "blue 2")) == ["blue 2"]
    assert labels(server.ok(verb, queue, "--label", "[Rr]ed [34]", "--count", "5")) == ["red 4", "Red 3"]
    assert server.run(verb, queue, "--label", "blue").returncode == Exit.EMPTY
    assert server.run(verb, queue, "--label", "RED 1").returncode == Exit.EMPTY
    left = labels(server.ok("peek", queue, "--count", "10"))
    assert left == (
        ["blue 1"] if verb == "receive" else ["red 2", "red 1", "blue 1", "blue 2", "red 4", "Red 3"]
    )


@pytest.mark.parametrize("verb", ["peek", "receive"])
def test_arrival(server: Server, verb: str) -> None:
    queue = f"arrival-{verb}"
    server.ok("queue", "create", queue)
    fill(server, queue)
    first = server.ok("peek", queue, "--label", "red 1")[0]["arrived_time"]
    day = datetime.fromtimestamp(first, UTC)
    tomorrow, yesterday = (f"{day + timedelta(days=days):%Y-%m-%d}" for days in (2, -2))
    for ways in (("--timeout", "0s"), ("--timeout", "300ms")):  # the server selects, or the client does
        every = ("--count", "9", *ways)
        assert server.run(verb, queue, *every, "--since", tomorrow).returncode == Exit.EMPTY
        assert server.run(verb, queue, *every, "--until", yesterday).returncode == Exit.EMPTY
        assert server.run(verb, queue, *every, "--until", str(first - 1)).returncode == Exit.EMPTY
        assert labels(server.ok("peek", queue, *every[:1], "1", "--since", str(first))) == ["red 2"]
    found = server.ok(verb, queue, "--count", "9", "--since", f"{day:%Y-%m-%d}", "--until", tomorrow)
    assert len(found) == len(FILLED)


def test_identifier(server: Server, queue: str) -> None:
    identifiers = fill(server, queue)
    assert labels(server.ok("peek", queue, "--id", identifiers[1])) == ["blue 1"]
    assert labels(server.ok("receive", queue, "--id", identifiers[4])) == ["blue 2"]
    assert server.run("receive", queue, "--id", identifiers[4]).returncode == Exit.EMPTY
    assert len(server.ok("peek", queue, "--count", "10")) == len(FILLED) - 1
    assert labels(server.ok("receive", queue, "--peek", "--label", "blue *", "--count", "9")) == ["blue 1"]


def test_acknowledgment_of_a_message(server: Server, queue: str) -> None:
    server.ok("queue", "create", "asked")
    asked = ("--ack", "reach", "--admin-queue", queue)
    sent = [server.ok("send", "asked", "--body", "x", *asked)[0]["message_id"] for _ in range(3)]
    for message_id in reversed(sent):
        flags = ("--correlation-id", message_id, "--timeout", "20s")
        shown = server.run("receive", queue, *flags)
        assert shown.returncode == Exit.OK
        assert f"correlation_id: {message_id}" in " ".join(shown.stdout.decode().split())
    (answer,) = server.ok("send", queue, "--body", "x", "--correlation-id", "ab" * 20)
    (found,) = server.ok("receive", queue, "--correlation-id", "AB" * 20)
    assert found["message_id"] == answer["message_id"]


def test_transaction(server: Server, queue: str) -> None:
    fill(server, queue, "--transaction")
    taken = server.ok("receive", queue, "--transaction", "--label", "red*", "--count", "9")
    assert sorted(labels(taken)) == ["red 1", "red 2", "red 4"]
    assert sorted(labels(server.ok("peek", queue, "--count", "9"))) == ["Red 3", "blue 1", "blue 2"]


@pytest.mark.parametrize("verb", ["peek", "receive"])
def test_follow_sees_what_arrives_in_front(server: Server, verb: str) -> None:
    """A message of a higher priority stands before those that do not match and were passed already."""
    queue = f"followed-{verb}"
    server.ok("queue", "create", queue)
    environment = {**inherited(), "MSMQ_FAST_ENDPOINT": server.endpoint}
    words = (verb, queue, "--follow", "--label", "red*", "--json", "--count", "4", "--timeout", "1m")
    with forking.start(*words, environment=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for label, priority in (("red 1", 3), ("blue 1", 1), ("red 2", 7), ("red 3", 5), ("red 4", 7)):
            server.ok("send", queue, "--label", label, "--body", label, "--priority", str(priority))
            if label.startswith("red"):
                assert json.loads(process.stdout.readline())["label"] == label
        assert process.wait(30) == Exit.OK
    assert "blue 1" in labels(server.ok("peek", queue, "--count", "9"))
    assert len(server.ok("peek", queue, "--count", "9")) == (1 if verb == "receive" else 5)


def test_help_says_that_others_stay(server: Server) -> None:
    for verb in ("peek", "receive"):
        assert "messages that do not match stay in the queue" in server.run(verb, "--help").stdout.decode()

"""Peeking with a cursor, subqueues and poison handling on the command line."""

from __future__ import annotations

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes.servers import Server


def test_peek_shows_different_messages_and_leaves_them(server: Server) -> None:
    server.ok("queue", "create", "peeked")
    for text, priority in (("one", "3"), ("two", "3"), ("first", "7")):
        server.ok("send", "peeked", "--body", text, "--priority", priority, "--label", text)
    seen = server.ok("receive", "peeked", "--peek", "--count", "3")
    assert [message["label"] for message in seen] == ["first", "one", "two"]
    done = server.run("receive", "peeked", "--peek", "--count", "4", "--timeout", "0.2", "--json")
    assert done.returncode == Exit.OK
    assert done.stdout.count(b"\n") == 3
    (shown,) = server.ok("queue", "show", "peeked")
    assert shown["messages"] == 3


@pytest.mark.rule("X-73")
def test_poison_handling_is_set(server: Server) -> None:
    (made,) = server.ok("queue", "create", "risky", "--poison-after", "5")
    assert made["poison_after"] == 5
    (changed,) = server.ok("queue", "set", "risky", "--poison-after", "0")
    assert changed["poison_after"] == 0
    assert server.run("queue", "set", "risky", "--poison-after", "70000").returncode == Exit.USAGE


@pytest.mark.rule("X-50", "X-51", "DM-086")
def test_a_subqueue_on_the_command_line(server: Server) -> None:
    server.ok("queue", "create", "split")
    done = server.run("receive", "split;later", "--peek")
    assert done.returncode == Exit.EMPTY
    assert server.run("send", "split;later", "--body", "x").returncode == Exit.REFUSED
    assert server.run("receive", "nowhere;later").returncode == Exit.NOT_FOUND

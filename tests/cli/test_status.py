"""`status` and `top`: whether the server is well, and what its queues do."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes import forking
from tests.support.processes.servers import Server, data_directory, inherited, until

FAR = r"DIRECT=TCP:127.0.0.89\private$\far"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA").start()
        try:
            running.ok("queue", "create", "orders")
            yield running
        finally:
            running.kill()


def status(server: Server) -> dict[str, Any]:
    (shown,) = server.ok("status")
    return dict(shown)


def test_a_server_that_is_well(server: Server) -> None:
    shown = status(server)
    assert (shown["name"], shown["ready"], shown["problems"]) == ("ALPHA", True, [])
    assert shown["queues"] == 1
    lines = server.run("status").stdout.decode().splitlines()
    assert lines[0].startswith("ALPHA  ready  msmq-fast")
    assert "queues:       1, with 0 messages (0 B)" in lines
    assert "connections:  0 queue managers, 1 program" in lines


def test_what_needs_attention_is_named(server: Server) -> None:
    server.ok("send", "orders", "--body", "x", "--recoverable")
    server.ok("send", FAR, "--body", "x", "--recoverable")
    server.ok("send", "orders", "--body", "late", "--recoverable", "--dead-letter", "--ttbr", "1s")
    until(lambda: status(server)["dead_letters"] == 1, what="the dead letter")
    server.ok("outgoing", "pause", FAR)
    shown = status(server)
    assert (shown["messages"], shown["dead_letters"]) == (1, 1)
    assert (shown["outgoing_queues"], shown["outgoing_messages"]) == (1, 1)
    assert any("1 message in ALPHA\\system$;deadletter" in problem for problem in shown["problems"])
    assert any(FAR in problem and "on hold" in problem for problem in shown["problems"])
    lines = server.run("status").stdout.decode().splitlines()
    assert [line for line in lines if line.startswith("! ")] == [f"! {each}" for each in shown["problems"]]


def test_the_stream_of_an_outgoing_queue_is_shown_if_it_has_one(server: Server) -> None:
    server.ok("send", f"{FAR}2", "--body", "x", "--recoverable")
    assert b"next_sequence" not in server.run("outgoing", "show", f"{FAR}2").stdout
    server.ok("send", f"{FAR}3", "--body", "x", "--transaction")
    assert b":2 after 1" in server.run("outgoing", "show", f"{FAR}3").stdout


def test_an_acl_fits_on_the_terminal(server: Server) -> None:
    """In words that `acl grant` accepts."""
    server.ok("acl", "grant", "orders", "--user", "uid:4711", "--right", "send", "--right", "peek")
    shown = server.run("acl", "show", "orders").stdout.decode().splitlines()
    assert max(map(len, shown)) <= 80
    assert shown[-1].split(maxsplit=3)[2:] == ["uid:4711", "peek-message, write-message"]
    assert any(line.endswith("  all") for line in shown)


def test_top_shows_rates(server: Server) -> None:
    environment = {**inherited(), "MSMQ_FAST_ENDPOINT": server.endpoint}
    words = ("top", "--interval", "1s", "--count", "2", "--json")
    with forking.start(*words, environment=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        server.ok("send", "orders", "--body", "x", "--count", "20")
        second = json.loads(process.stdout.readline())
        assert process.wait(30) == Exit.OK
    assert (first["in_rate"], first["out_rate"]) == (0, 0)
    assert second["messages"] == first["messages"] + 20
    assert 0 < second["in_rate"] <= 20


def test_top_in_a_pipe_is_plain_text(server: Server) -> None:
    shown = server.run("top", "--count", "2", "--interval", "100ms").stdout.decode()
    assert "\x1b" not in shown
    assert shown.count("NAME") == 2


@pytest.mark.parametrize("words", [("status",), ("queue", "list"), ("outgoing", "list")])
def test_others_are_watched_too(server: Server, words: tuple[str, ...]) -> None:
    environment = {**inherited(), "MSMQ_FAST_ENDPOINT": server.endpoint}
    watch = (*words, "--watch", "--interval", "100ms")
    with forking.start(*watch, environment=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first in iter(process.stdout.readline, b"")  # the same again
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(30) == Exit.INTERRUPTED
    assert server.run(*words, "--interval", "1s").returncode == Exit.USAGE


def test_top_draws_a_screen_and_leaves_it(server: Server) -> None:
    leader, follower = pty.openpty()
    environment = {**inherited(), "MSMQ_FAST_ENDPOINT": server.endpoint, "TERM": "xterm"}
    words = ("top", "--count", "2", "--interval", "100ms")
    process = forking.start(*words, environment=environment, stdout=follower)
    os.close(follower)
    shown = b""
    try:
        while data := os.read(leader, 65536):
            shown += data
    except OSError:
        pass  # the other end is closed
    os.close(leader)
    assert process.wait(30) == Exit.OK
    assert shown.startswith(b"\x1b[?1049h")
    assert shown.endswith(b"\x1b[?1049l")
    assert shown.count(b"\x1b[H\x1b[J") == 2
    assert b"\x1b[32mready\x1b[0m" in shown

"""Commands that lose messages ask on a terminal, and only there."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes.servers import Server

FAR = r"DIRECT=TCP:127.0.0.90\private$\far"


def typed(server: Server, answer: bytes, *words: str) -> tuple[int, str]:
    """Exit code and screen of a command on a terminal where `answer` is typed."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "msmq_fast", *words],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "MSMQ_FAST_ENDPOINT": server.endpoint, "NO_COLOR": "1"},
    )
    os.close(follower)
    os.write(leader, answer)
    shown = b""
    with contextlib.suppress(OSError):
        while data := os.read(leader, 65536):
            shown += data
    os.close(leader)
    return process.wait(30), shown.decode()


def held(server: Server, queue: str) -> int:
    (shown,) = server.ok("queue", "show", queue)
    return int(shown["messages"])


@pytest.mark.parametrize("action", ["purge", "delete"])
def test_a_terminal_is_asked(server: Server, action: str) -> None:
    server.ok("queue", "create", action)
    server.ok("send", action, "--body", "x", "--count", "3")
    code, shown = typed(server, b"n\n", "queue", action, action)
    assert code == Exit.FAILURE
    assert "with 3 messages? [y/N]" in shown
    assert "nothing was changed" in shown
    assert held(server, action) == 3
    code, shown = typed(server, b"yes\n", "queue", action, action)
    assert (code, "[y/N]" in shown) == (Exit.OK, True)
    found = server.run("queue", "show", action, "-o", "raw").stdout.decode()
    assert "messages\t0\n" in found if action == "purge" else found == ""


def test_there_is_no_question_without_messages_or_with_yes(server: Server) -> None:
    server.ok("queue", "create", "plain")
    assert typed(server, b"", "queue", "purge", "plain")[0] == Exit.OK
    server.ok("send", "plain", "--body", "x")
    code, shown = typed(server, b"", "queue", "delete", "plain", "--yes")
    assert (code, "[y/N]" in shown) == (Exit.OK, False)


def test_an_outgoing_queue_is_asked_for_too(server: Server) -> None:
    server.ok("send", FAR, "--body", "x", "--recoverable")
    code, shown = typed(server, b"\n", "outgoing", "purge", FAR)
    assert (code, "with 1 message? [y/N]" in shown) == (Exit.FAILURE, True)
    assert server.ok("outgoing", "purge", FAR)[0]["purged"] == 1


def test_scripts_are_not_asked(server: Server) -> None:
    server.ok("queue", "create", "script")
    server.ok("send", "script", "--body", "x")
    assert server.run("queue", "delete", "script").returncode == Exit.OK

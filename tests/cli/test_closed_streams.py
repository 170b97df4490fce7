"""Commands whose standard streams are closed: one line, no traceback, nothing removed, a clean stop."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes import forking
from tests.support.processes.servers import Server, inherited, until


def closed(server: Server, streams: str, *arguments: str) -> tuple[int, str]:
    """Exit code and complaint of a verb whose streams a shell closes, such as `>&-`."""
    environment = {**inherited(), "MSMQ_FAST_ENDPOINT": server.endpoint}
    line = ["/bin/sh", "-c", f'exec "$@" {streams}', "sh", *forking.PROGRAM, *arguments]
    done = subprocess.run(line, env=environment, stderr=subprocess.PIPE, timeout=60, check=False)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_message_stays_if_the_output_is_closed(server: Server, flags: tuple[str, ...]) -> None:
    queue = f"closed{len(flags)}"
    server.ok("queue", "create", queue)
    server.ok("send", queue, "--body", "line", "--recoverable")
    complaint = "msmq-fast receive: cannot write the output: Bad file descriptor\n"
    assert closed(server, ">&-", "receive", queue, *flags) == (Exit.FAILURE, complaint)
    assert closed(server, "<&- >&-", "receive", queue, *flags) == (Exit.FAILURE, complaint)
    assert len(server.messages(queue)) == 1


def test_other_verbs_fail_in_one_line(server: Server) -> None:
    code, complaint = closed(server, ">&-", "queue", "list")
    assert (code, complaint) == (
        Exit.FAILURE,
        "msmq-fast queue list: cannot write the output: Bad file descriptor\n",
    )


def test_a_closed_input_is_empty(server: Server) -> None:
    server.ok("queue", "create", "empty")
    assert closed(server, "<&- >/dev/null", "send", "empty", "-") == (Exit.OK, "")
    (message,) = server.messages("empty")
    assert message["body_size"] == 0


@pytest.mark.parametrize("streams", ["<&- >&- 2>&-", ">/dev/full"])
def test_a_server_without_usable_streams_stops_with_0(tmp_path: Path, streams: str) -> None:
    socket = tmp_path / "app.sock"
    flags = ["--data", str(tmp_path), "--host", "127.0.56.11"]
    flags += [word for flag in Server.free_ports for word in (flag, "0")]
    line = ["/bin/sh", "-c", f'exec "$@" {streams}', "sh", *forking.PROGRAM, "serve", *flags]
    with subprocess.Popen(line, env=inherited(), stderr=subprocess.DEVNULL) as process:
        try:
            until(socket.exists, timeout=60, what="the server's socket")
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()

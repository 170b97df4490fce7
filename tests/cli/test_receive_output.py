"""`receive` removes what it has written and nothing else; flags win over the variables of the shell."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes import forking
from tests.support.processes.servers import Server, command, inherited


def depth(server: Server, queue: str) -> int:
    (shown,) = server.ok("queue", "show", queue)
    count: int = shown["messages"]
    return count


def into(server: Server, output: int, *arguments: str) -> tuple[int, str]:
    """Exit code and complaint of a verb whose standard output is a descriptor."""
    environment = {**inherited(), "MSMQ_FAST_ENDPOINT": server.endpoint}
    process = forking.start(*arguments, environment=environment, stdout=output, stderr=subprocess.PIPE)
    with process:
        _, complaint = process.communicate(timeout=60)
    return process.returncode, complaint.decode()


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_nothing_is_removed_when_the_disk_is_full(server: Server, flags: tuple[str, ...]) -> None:
    queue = f"full{len(flags)}"
    server.ok("queue", "create", queue)
    server.ok("send", queue, "--body", "line", "--count", "500", "--recoverable")
    with Path("/dev/full").open("wb") as full:
        code, complaint = into(server, full.fileno(), "receive", queue, "--count", "500", *flags)
    assert code == Exit.FAILURE
    assert complaint == "msmq-fast receive: cannot write the output: No space left on device\n"
    assert depth(server, queue) == 500
    (message,) = server.ok("receive", queue)
    assert server.messages(queue, count=499)[0]["arrival_seq"] > message["arrival_seq"]


def test_nothing_is_lost_when_the_reader_of_a_pipe_goes_away(server: Server) -> None:
    """Like `| head -1`: what the pipe took is gone, what it did not take is in the queue."""
    server.ok("queue", "create", "pipe")
    server.ok("send", "pipe", "--body", "line", "--count", "3000", "--recoverable")
    reading, writing = os.pipe()
    environment = {**inherited(), "MSMQ_FAST_ENDPOINT": server.endpoint}
    process = forking.start(
        "receive",
        "pipe",
        "--count",
        "3000",
        "--json",
        environment=environment,
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    seen = os.read(reading, 1 << 16)
    os.close(reading)
    with process:
        _, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (Exit.FAILURE, b"")
    left = {message["arrival_seq"] for message in server.messages("pipe", count=3000)}
    shown = {json.loads(line)["arrival_seq"] for line in seen.splitlines()[:-1]}
    assert len(left) > 0
    # A pipe holds 64 KiB: what it took beyond what was read here cannot be told from outside.
    in_the_pipe = (1 << 16) // min(len(line) for line in seen.splitlines()[:-1])
    assert len(left | shown) >= 3000 - in_the_pipe
    assert shown <= set(range(min(shown), min(shown) + 3000))


def test_a_lookup_id_stays_when_it_could_not_be_written(server: Server) -> None:
    server.ok("queue", "create", "ids")
    server.ok("send", "ids", "--body", "one", "--recoverable")
    (message,) = server.ok("receive", "ids", "--peek")
    with Path("/dev/full").open("wb") as full:
        code, _ = into(server, full.fileno(), "receive", "ids", "--lookup-id", str(message["lookup_id"]))
    assert code == Exit.FAILURE
    assert depth(server, "ids") == 1
    server.ok("receive", "ids", "--lookup-id", str(message["lookup_id"]))
    assert depth(server, "ids") == 0


def test_fewer_messages_than_asked_for_are_a_success(server: Server) -> None:
    server.ok("queue", "create", "few")
    server.ok("send", "few", "--body", "x", "--count", "3")
    done = server.run("receive", "few", "--count", "10", "--json")
    assert (done.returncode, done.stdout.count(b"\n")) == (Exit.OK, 3)
    assert server.run("receive", "few", "--count", "10").returncode == Exit.EMPTY


def test_messages_that_come_within_the_time_are_waited_for(server: Server) -> None:
    server.ok("queue", "create", "later")
    environment = {**inherited(), "MSMQ_FAST_ENDPOINT": server.endpoint}
    waiting = forking.start(
        "receive", "later", "--count", "2", "--timeout", "60", "--json", environment=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with waiting:
        server.ok("send", "later", "--body", "1")
        assert waiting.stdout is not None
        assert json.loads(waiting.stdout.readline())["body_b64"] == "MQ=="
        server.ok("send", "later", "--body", "2")
        shown, complaint = waiting.communicate(timeout=60)
    assert (waiting.returncode, complaint) == (Exit.OK, b"")
    assert json.loads(shown)["body_b64"] == "Mg=="
    assert depth(server, "later") == 0


def test_a_data_directory_on_the_command_line_wins_over_the_variable(server: Server, tmp_path: Path) -> None:
    server.ok("queue", "create", "precious")
    server.ok("send", "precious", "--body", "x", "--count", "5", "--recoverable")
    elsewhere = command(
        "queue",
        "purge",
        "precious",
        "--data",
        str(tmp_path),
        environment={"MSMQ_FAST_ENDPOINT": server.endpoint},
    )
    assert elsewhere.returncode == Exit.UNREACHABLE
    assert str(tmp_path) in elsewhere.stderr.decode()
    assert depth(server, "precious") == 5
    here = command(
        "queue",
        "purge",
        "precious",
        "--data",
        str(server.data),
        environment={"MSMQ_FAST_ENDPOINT": "unix:/nowhere"},
    )
    assert here.returncode == Exit.OK, here
    assert depth(server, "precious") == 0

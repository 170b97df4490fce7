"""`receive` and `peek`: raw bodies, messages as they come, what people see of an acknowledgment."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from msmq_fast.protocol.exits import Exit
from tests.cli.operators import on_terminal
from tests.support.processes import forking
from tests.support.processes.servers import Server, inherited

BODIES = (b"one", b"\x00\xff two\n", b"")


@pytest.fixture
def queue(server: Server, request: pytest.FixtureRequest) -> str:
    name = request.node.name.split("[")[0]
    server.ok("queue", "create", name)
    for body in BODIES:
        server.ok("send", name, "-", stdin=body)
    return str(name)


def output(server: Server, *arguments: str) -> bytes:
    done = server.run(*arguments)
    assert done.returncode == Exit.OK, done.stderr
    return done.stdout


def test_peek_leaves_the_messages(server: Server, queue: str) -> None:
    seen = server.ok("peek", queue, "--count", "5")
    assert [message["body_size"] for message in seen] == [len(body) for body in BODIES]
    assert server.ok("peek", queue, "--count", "5") == seen
    assert server.ok("peek", queue) == seen[:1]
    middle = str(seen[1]["lookup_id"])
    assert server.ok("peek", queue, "--lookup-id", middle) == seen[1:2]
    assert server.ok("peek", queue, "--lookup-id", middle, "--next") == seen[2:]
    assert server.ok("receive", queue, "--peek", "--count", "5") == seen


def test_peek_of_an_empty_queue(server: Server) -> None:
    server.ok("queue", "create", "void")
    assert server.run("peek", "void").returncode == Exit.EMPTY
    assert server.run("peek", "void", "--lookup-id", "5").returncode == Exit.NOT_FOUND


def test_a_person_is_told_that_there_is_no_message(server: Server) -> None:
    server.ok("queue", "create", "silent")
    for verb in ("receive", "peek"):
        assert on_terminal(server, verb, "silent") == (Exit.EMPTY, "no message\r\n")
        assert server.run(verb, "silent").stderr == b""


def test_raw_is_the_body_byte_for_byte(server: Server, queue: str) -> None:
    for body in BODIES:
        assert output(server, "receive", queue, "--raw") == body


@pytest.mark.parametrize(("flags", "end"), [((), b"\n"), (("--null",), b"\0")])
def test_several_raw_bodies_have_an_end_each(
    server: Server, queue: str, flags: tuple[str, ...], end: bytes
) -> None:
    expected = b"".join(body + end for body in BODIES)
    assert output(server, "peek", queue, "--count", "3", "-o", "raw", *flags) == expected
    assert output(server, "receive", queue, "--count", "3", "--raw", *flags) == expected
    server.ok("queue", "delete", queue)


def test_follow_prints_what_comes_until_it_is_interrupted(server: Server) -> None:
    server.ok("queue", "create", "followed")
    server.ok("send", "followed", "--body", "0")
    environment = {**inherited(), "MSMQ_FAST_ENDPOINT": server.endpoint}
    arguments = ("receive", "followed", "--follow", "--json")
    with forking.start(*arguments, environment=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for number in range(5):
            assert (
                json.loads(process.stdout.readline())["body_b64"]
                == ["MA==", "MQ==", "Mg==", "Mw==", "NA=="][number]
            )
            server.ok("send", "followed", "--body", str(number + 1))
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == Exit.INTERRUPTED
    assert server.run("peek", "followed").returncode == Exit.EMPTY


def test_follow_ends_after_count_messages(server: Server, queue: str) -> None:
    shown = server.ok("peek", queue, "--follow", "--count", "3")
    assert len(shown) == 3


def test_follow_ends_after_a_time_without_a_message(server: Server, queue: str) -> None:
    for verb in ("peek", "receive"):
        assert len(server.ok(verb, queue, "--follow", "--timeout", "200ms")) == len(BODIES)
    assert server.run("receive", queue, "--follow", "--timeout", "200ms").returncode == Exit.EMPTY


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("peek q --follow --lookup-id 3", "--follow cannot be combined with --lookup-id"),
        (
            "receive q --lookup-id 3 --label x",
            "--lookup-id cannot be combined with --label, --correlation-id, --id, --since or --until",
        ),
        ("peek q --lookup-id 3 --since 2026-01-31", "--lookup-id cannot be combined with"),
        ("peek q --since 2026-02-01 --until 2026-01-31", "--since must not be later than --until"),
        ("dlq list --since 2026-02-01 --until 2026-01-31", "--since must not be later than --until"),
        ("receive q --since yesterday", 'invalid time "yesterday": write 2026-01-31'),
        ("receive q --follow --xact", "--follow cannot be combined with --transaction or --reject"),
        ("receive q --null", "--null needs --raw"),
        ("peek q --next", "--next and --prev need --lookup-id"),
    ],
)
def test_options_that_exclude_each_other(server: Server, words: str, complaint: str) -> None:
    done = server.run(*words.split())
    assert done.returncode == Exit.USAGE
    assert complaint in done.stderr.decode()


def test_an_acknowledgment_says_what_it_is(server: Server) -> None:
    server.ok("queue", "create", "acks")
    server.ok("queue", "create", "purged")
    asked = ("--ack", "reach,nack-receive", "--admin-queue", "acks")
    (sent,) = server.ok("send", "purged", "--body", "x", *asked)
    server.ok("receive", "acks", "--timeout", "10s")
    server.ok("queue", "purge", "purged")
    shown = output(server, "peek", "acks", "--timeout", "10s").decode()
    lines = dict(line.split(":", 1) for line in shown.splitlines() if ":" in line)
    assert lines["class"].strip() == "NACK_Q_PURGED (the queue was purged)"
    assert lines["correlation_id"].strip() == sent["message_id"]
    assert lines["arrived_time"].strip().endswith("Z")
    (message,) = server.ok("receive", "acks")
    assert message["class"] == 0xC001
    assert isinstance(message["arrived_time"], int)


@pytest.mark.parametrize(
    ("body", "body_type", "shown"),
    [
        (b"<order/>", 0, "<order/>"),
        ("müßig".encode("utf-16-le"), 8, "müßig"),
        ((5).to_bytes(4, "little"), 3, "5 (number)"),
        (b"\xff\xfe\x00", 0, "0xfffe00"),
        (b"\xff" * 100, 0x2011, "0x" + "ff" * 64 + "…"),
        (b"\x1b[31m", 0, r"\x1b[31m"),
    ],
)
def test_people_see_the_value_of_a_body(server: Server, body: bytes, body_type: int, shown: str) -> None:
    name = f"values{body_type}{len(body)}"
    server.ok("queue", "create", name)
    server.ok("send", name, "-", "--body-type", str(body_type), stdin=body)
    lines = output(server, "receive", name).decode().splitlines()
    assert next(line for line in lines if line.startswith("body:")).split(maxsplit=1)[1] == shown

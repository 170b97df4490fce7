"""What people see of queues: lists with system queues and patterns, one line for a new queue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.http.api import ok
from tests.support.processes.servers import Server, data_directory


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA").start()
        try:
            running.ok("queue", "create", "orders", "--journal")
            running.ok("queue", "create", "order-archive", "--quota", "10 MiB")
            running.ok("queue", "create", "payments", "--transactional")
            running.ok("send", "order-archive", "--body", "x" * 1000)
            running.ok("send", "orders", "--body", "x", "--count", "2")
            yield running
        finally:
            running.kill()


def text(server: Server, *words: str) -> list[str]:
    done = server.run(*words)
    assert done.returncode == Exit.OK, done.stderr
    return done.stdout.decode().splitlines()


def names(server: Server, *words: str) -> list[str]:
    return [str(queue["name"]).rpartition("\\")[2] for queue in server.ok("queue", "list", *words)]


def test_all_has_system_queues_and_journals(server: Server) -> None:
    assert names(server) == ["order-archive", "orders", "payments"]
    every = server.ok("queue", "list", "--all")
    assert {queue["kind"] for queue in every} >= {"queue", "deadletter", "xact_deadletter", "journal"}
    assert {r"ALPHA\system$;deadxact", r"ALPHA\private$\orders;JOURNAL"} < {queue["name"] for queue in every}
    head, *lines = text(server, "queue", "list", "--all")
    assert head.split() == ["NAME", "KIND", "MESSAGES", "BYTES", "TRANSACTIONAL", "JOURNAL", "QUOTA", "LABEL"]
    assert len(lines) == len(every)


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("order*", ["order-archive", "orders"]),
        ("ORDERS", ["orders"]),
        (r"ALPHA\private$\p*", ["payments"]),
        ("nothing*", []),
    ],
)
def test_a_pattern_chooses_queues(server: Server, glob: str, found: list[str]) -> None:
    assert names(server, glob) == found


def test_lists_are_sorted_by_size(server: Server) -> None:
    assert names(server, "--sort", "messages") == ["orders", "order-archive", "payments"]
    assert names(server, "--sort", "bytes")[0] == "order-archive"


def test_raw_lists_have_tabs_and_no_head(server: Server) -> None:
    rows = [line.split("\t") for line in text(server, "queue", "list", "order-*", "-o", "raw")]
    assert rows == [
        [r"ALPHA\private$\order-archive", "1", rows[0][2], "no", "no", "10 MiB", ""],
    ]


def test_a_new_queue_is_one_line(server: Server) -> None:
    assert text(server, "queue", "create", "plain") == [r"created ALPHA\private$\plain"]
    created = text(server, "queue", "create", "full", "--transactional", "--journal", "--quota", "1GiB")
    assert created == [r"created ALPHA\private$\full (transactional, journal, quota 1 GiB)"]
    for name in ("plain", "full"):
        server.ok("queue", "delete", name)


@pytest.mark.parametrize(
    ("given", "kilobytes"), [("100", 100), ("100kB", 98), ("1MiB", 1024), ("unlimited", 2**32 - 1)]
)
def test_quotas_have_units(server: Server, given: str, kilobytes: int) -> None:
    (queue,) = server.ok("queue", "set", "orders", "--quota", given)
    assert queue["quota_kb"] == kilobytes


def test_a_wrong_quota_says_what_would_be_right(server: Server) -> None:
    done = server.run("queue", "set", "orders", "--quota", "64x")
    assert done.returncode == Exit.USAGE
    assert b'invalid size "64x": write a number with a unit, for example 64 MiB' in done.stderr


def test_show_leaves_out_what_is_empty(server: Server) -> None:
    shown = text(server, "queue", "show", "order-archive")
    keys = [line.partition(":")[0] for line in shown]
    assert "quota:            10 MiB" in [line.strip() for line in shown]
    assert "type" not in keys
    assert "label" not in keys
    assert next(line for line in shown if line.startswith("created")).endswith("Z")


def test_pages_filters_and_the_oldest_message_first() -> None:
    with data_directory() as data:
        server = Server(data, "--name", "ALPHA").start()
        try:
            for name in ("page-b", "page-c", "page-a", "other"):
                server.ok("queue", "create", name)
            for name in ("page-c", "page-a"):
                server.ok("send", name, "--body", "x")

            def listing(*words: str) -> list[str]:
                return [one["name"].rpartition("\\")[2] for one in server.ok("queue", "list", *words)]

            assert listing("--filter", "PAGE") == ["page-a", "page-b", "page-c"]
            assert listing("--limit", "2", "--offset", "1") == ["page-a", "page-b"]
            assert listing("--sort", "oldest", "--limit", "2") == ["page-c", "page-a"]
            assert listing("--sort", "in-per-second", "--filter", "other") == ["other"]
            listed = ok(server, "GET", "/queues", sort="oldest", descending="true", limit=2)["items"]
            assert [one["name"].rpartition("\\")[2] for one in listed] == ["page-c", "page-a"]
            assert not any(one["kind"] == "outgoing" for one in server.ok("queue", "list", "--all"))
        finally:
            server.kill()

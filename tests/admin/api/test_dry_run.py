"""A dry run of a batch predicts what the batch then does, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.http.api import call, ok
from tests.support.processes.servers import Server


def filled(server: Server, name: str, count: int, size: int = 1, **properties: Any) -> list[int]:
    """Create a queue with messages; returns their lookup ids in the order of arrival."""
    ok(server, "POST", "/queues", body={"name": name, **properties})
    sent = {"body": "x" * size, "transactional": properties.get("transactional", False)}
    for _ in range(count):
        ok(server, "POST", "/queues/{}/messages", name, body=sent)
    items = ok(server, "GET", "/queues/{}/messages", name, limit=1000)["items"]
    return [one["lookup_id"] for one in items]


def both(server: Server, verb: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Run a batch dry and then for real; returns its result, which both have."""
    held = ok(server, "GET", "/queues/{}", name)["messages"]
    path = f"/queues/{{}}/messages/{verb}"
    planned = ok(server, "POST", path, name, body=body | {"dry_run": True})
    assert ok(server, "GET", "/queues/{}", name)["messages"] == held
    done: dict[str, Any] = ok(server, "POST", path, name, body=body)
    assert planned == done | {"dry_run": True}
    return done


def reasons(done: dict[str, Any]) -> dict[str, int]:
    return {one["code"]: one["count"] for one in done["refused"]}


@pytest.mark.parametrize("verb", ["move", "copy"])
def test_a_full_target(server: Server, verb: str) -> None:
    source, target = f"dry-{verb}", f"dry-{verb}-small"
    ids = filled(server, source, 30, size=500)
    ok(server, "POST", "/queues", body={"name": target, "quota_kb": 8})
    done = both(server, verb, source, {"target": target, "lookup_ids": [*ids, max(ids) + 10_000]})
    assert 0 < done["count"] < 30
    assert reasons(done) == {"INSUFFICIENT_RESOURCES": 30 - done["count"], "MESSAGE_NOT_FOUND": 1}
    assert ok(server, "GET", "/queues/{}", target)["messages"] == done["count"]
    left = 30 - done["count"] if verb == "move" else 30
    assert ok(server, "GET", "/queues/{}", source)["messages"] == left


def test_a_full_target_over_several_batches(server: Server) -> None:
    with_many = "dry-many"
    server.ok("queue", "create", with_many)
    server.ok("send", with_many, "--body", "x" * 200, "--count", "2500")
    ok(server, "POST", "/queues", body={"name": "dry-many-target", "quota_kb": 500})
    done = both(server, "move", with_many, {"target": "dry-many-target"})
    assert 1000 < done["count"] < 2500
    assert sum(reasons(done).values()) == 2500 - done["count"]


def test_a_transactional_target(server: Server) -> None:
    filled(server, "dry-plain", 3)
    ok(server, "POST", "/queues", body={"name": "dry-xact", "transactional": True})
    assert reasons(both(server, "move", "dry-plain", {"target": "dry-xact"})) == {"TRANSACTION_USAGE": 3}
    assert reasons(both(server, "copy", "dry-plain", {"target": "dry-xact"})) == {"TRANSACTION_USAGE": 3}


def test_a_missing_target_and_the_source_itself(server: Server) -> None:
    filled(server, "dry-alone", 1)
    for target, code in (("dry-nowhere", "QUEUE_NOT_FOUND"), ("dry-alone", "INVALID_PARAMETER")):
        for dry_run in (True, False):
            body = {"target": target, "dry_run": dry_run}
            assert call(server, "POST", "/queues/{}/messages/move", "dry-alone", body=body).code == code


def test_dead_letters_whose_queue_is_gone_full_or_there(server: Server) -> None:
    dead = r".\system$;deadletter"
    for name in ("dry-gone", "dry-full", "dry-there"):
        ok(server, "POST", "/queues", body={"name": name})
        server.ok(
            "send", name, "--body", "x" * 900, "--dead-letter", "--label", f"{name} dead", "--count", "2"
        )
        server.ok("queue", "purge", name)
    server.ok("queue", "delete", "dry-gone")
    server.ok("queue", "set", "dry-full", "--quota", "0")
    wanted = {"label": "dry-* dead"}
    done = both(server, "resubmit", dead, wanted)
    assert done["count"] == 2
    assert reasons(done) == {"QUEUE_NOT_FOUND": 2, "INSUFFICIENT_RESOURCES": 2}
    left = ok(server, "GET", "/queues/{}/messages", dead, **wanted)["items"]
    named = {lookup_id for one in done["refused"] for lookup_id in one["lookup_ids"]}
    assert {one["lookup_id"] for one in left} == named
    ok(server, "POST", "/queues/{}/messages/remove", dead, body=wanted)


def test_the_commands_have_it_too(server: Server) -> None:
    filled(server, "dry-command", 3)
    ok(server, "POST", "/queues", body={"name": "dry-command-xact", "transactional": True})
    ok(server, "POST", "/queues", body={"name": "dry-command-to"})
    for verb in ("move", "copy"):
        (line,) = server.ok("queue", verb, "dry-command", "dry-command-to", "--dry-run")
        assert (line["dry_run"], line["refused"]) == (True, 0)
        refused = server.run("queue", verb, "dry-command", "dry-command-xact", "--dry-run")
        assert refused.returncode != 0
        assert b"3 stay: MQ_ERROR_TRANSACTION_USAGE" in refused.stderr
    assert ok(server, "GET", "/queues/{}", "dry-command-to")["messages"] == 0
    (line,) = server.ok("dlq", "resubmit", "--dry-run", "--label", "no such label")
    assert (line["resubmitted"], line["dry_run"]) == (0, True)

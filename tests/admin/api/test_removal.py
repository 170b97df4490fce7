"""Removal of selected messages over the management API, from queues of each kind."""

from __future__ import annotations

from typing import Any

from msmq_fast.client import sync
from msmq_fast.protocol.frames import Access
from tests.support.http.api import call, ok
from tests.support.processes.servers import Server

FAR = r"DIRECT=TCP:127.0.0.93\private$\removed-far"


def rows(server: Server, name: str) -> list[dict[str, Any]]:
    return list(ok(server, "GET", "/queues/{}/messages", name)["items"])


def filled(server: Server, name: str, count: int, **properties: Any) -> list[int]:
    """Create a queue with messages; returns their lookup ids."""
    ok(server, "POST", "/queues", body={"name": name, **properties})
    sent = {"body": "x", "transactional": properties.get("transactional", False)}
    for number in range(count):
        ok(server, "POST", "/queues/{}/messages", name, body=sent | {"label": f"l{number}"})
    return [one["lookup_id"] for one in rows(server, name)]


def test_one_message_is_removed(server: Server) -> None:
    ids = filled(server, "single", 2)
    planned = ok(server, "DELETE", "/queues/{}/messages/{}", "single", ids[0], dry_run="true")
    assert (planned["removed"], planned["dry_run"], len(rows(server, "single"))) == (ids[0], True, 2)
    done = ok(server, "DELETE", "/queues/{}/messages/{}", "single", ids[0])
    assert done == planned | {"dry_run": False}
    assert [one["lookup_id"] for one in rows(server, "single")] == [ids[1]]
    again = call(server, "DELETE", "/queues/{}/messages/{}", "single", ids[0])
    assert (again.status, again.code) == (404, "MESSAGE_NOT_FOUND")
    assert call(server, "DELETE", "/queues/{}/messages/1", "no-such-queue").code == "QUEUE_NOT_FOUND"


def test_a_batch_names_what_it_did_not_remove(server: Server) -> None:
    ids = filled(server, "several", 4)
    gone = max(ids) + 1_000_000
    body = {"lookup_ids": [ids[0], ids[3], gone]}
    planned = ok(server, "POST", "/queues/{}/messages/remove", "several", body=body | {"dry_run": True})
    done = ok(server, "POST", "/queues/{}/messages/remove", "several", body=body)
    assert planned == done | {"dry_run": True}
    assert (done["count"], done["finished"]) == (2, True)
    (refused,) = done["refused"]
    assert (refused["code"], refused["count"], refused["lookup_ids"]) == ("MESSAGE_NOT_FOUND", 1, [gone])
    assert [one["lookup_id"] for one in rows(server, "several")] == ids[1:3]
    labelled = ok(server, "POST", "/queues/{}/messages/remove", "several", body={"label": "l1"})
    assert (labelled["count"], labelled["refused"]) == (1, [])


def test_a_batch_must_select(server: Server) -> None:
    filled(server, "unselected", 1)
    answer = call(server, "POST", "/queues/{}/messages/remove", "unselected", body={})
    assert (answer.status, answer.code) == (400, "BAD_REQUEST")
    many = {"lookup_ids": list(range(10_001))}
    assert call(server, "POST", "/queues/{}/messages/remove", "unselected", body=many).status == 400
    assert len(rows(server, "unselected")) == 1


def test_a_journal_a_subqueue_and_dead_letters(server: Server) -> None:
    filled(server, "journaled", 2, journal=True)
    server.ok("receive", "journaled", "--count", "2")
    filled(server, "parent", 1)
    ids = [one["lookup_id"] for one in rows(server, "journaled;journal")]
    done = ok(server, "POST", "/queues/{}/messages/remove", "journaled;journal", body={"lookup_ids": ids[:1]})
    assert (done["count"], len(rows(server, "journaled;journal"))) == (1, 1)
    server.ok("send", "parent", "--body", "x", "--dead-letter", "--label", "removed-dead")
    server.ok("queue", "purge", "parent", "--label", "removed-dead")
    dead = ok(server, "GET", "/queues/{}/messages", r".\system$;deadletter", label="removed-dead")["items"]
    assert len(dead) == 1
    one = call(server, "DELETE", "/queues/{}/messages/{}", r".\system$;deadletter", dead[0]["lookup_id"])
    assert one.status == 200
    assert (
        ok(server, "GET", "/queues/{}/messages", r".\system$;deadletter", label="removed-dead")["items"] == []
    )


def test_an_outgoing_queue(server: Server) -> None:
    for number in range(3):
        server.ok("send", FAR, "--body", "x", "--label", f"far{number}", "--recoverable")
    body = {"label": "far[01]"}
    planned = ok(server, "POST", "/outgoing/{}/messages/remove", FAR, body=body | {"dry_run": True})
    assert planned["count"] == 2
    assert ok(server, "GET", "/outgoing/{}", FAR)["messages"] == 3
    assert ok(server, "POST", "/outgoing/{}/messages/remove", FAR, body=body)["count"] == 2
    assert ok(server, "GET", "/outgoing/{}", FAR)["messages"] == 1
    filled(server, "not-outgoing", 0)
    local = call(server, "POST", "/outgoing/{}/messages/remove", "not-outgoing", body=body)
    assert local.code == "QUEUE_NOT_FOUND"
    (line,) = server.ok("outgoing", "purge", FAR, "--label", "far2")
    assert (line["purged"], line["refused"]) == (1, 0)


def test_a_held_message_stays(server: Server) -> None:
    filled(server, "held", 2, transactional=True)
    with sync.connect(server.endpoint) as connection:
        with (
            connection.open("held", Access.RECEIVE) as source,
            connection.open("held;later", Access.RECEIVE | Access.MOVE) as later,
        ):
            source.move(rows(server, "held")[0]["lookup_id"], later)
        for name in ("held", "held;later"):
            (row,) = rows(server, name)
            with (
                connection.open(name, Access.RECEIVE) as queue,
                connection.transaction() as transaction,
            ):
                queue.receive(transaction=transaction)
                answer = call(server, "DELETE", "/queues/{}/messages/{}", name, row["lookup_id"])
                assert (answer.status, answer.code) == (409, "MESSAGE_LOCKED_UNDER_TRANSACTION")
                transaction.abort()
            assert call(server, "DELETE", "/queues/{}/messages/{}", name, row["lookup_id"]).status == 200
            assert rows(server, name) == []


def test_the_trace_and_the_audit_have_the_removal(server: Server) -> None:
    ids = filled(server, "traced-removal", 1)
    (row,) = rows(server, "traced-removal")
    ok(server, "DELETE", "/queues/{}/messages/{}", "traced-removal", ids[0])
    found = ok(server, "GET", "/trace/{}", row["message_id"])
    assert "purged" in str(found["events"])
    entries = ok(server, "GET", "/audit", operation="remove messages", object="traced-removal")["items"]
    assert [(one["result"], one["detail"]) for one in entries] == [("done", "messages: 1")]

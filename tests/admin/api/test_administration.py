"""The other operations: batches, sending, outgoing queues, access lists, certificates, keys, transactions."""

from __future__ import annotations

from base64 import b64encode

import pytest

from msmq_fast.client import ConnectionLost, sync
from tests.support.http.api import call, ok
from tests.support.processes.servers import Server


def test_messages_are_sent_downloaded_moved_and_copied(server: Server) -> None:
    for name in ("source", "target"):
        ok(server, "POST", "/queues", body={"name": name})
    for number in range(3):
        sent = ok(server, "POST", "/queues/{}/messages", "source", body={"body": "x", "label": f"l{number}"})
        assert sent["count"] == 1
        assert sent["message_id"].startswith("{")
    chosen = {"target": "target", "label": "l[01]"}
    counted = ok(server, "POST", "/queues/{}/messages/move", "source", body={**chosen, "dry_run": True})
    assert (counted["count"], counted["dry_run"]) == (2, True)
    assert ok(server, "GET", "/queues/{}", "source")["messages"] == 3
    moved = ok(server, "POST", "/queues/{}/messages/move", "source", body=chosen)
    assert (moved["count"], moved["refused"], moved["finished"]) == (2, [], True)
    assert ok(server, "POST", "/queues/{}/messages/copy", "source", body={"target": "target"})["count"] == 1
    assert ok(server, "GET", "/queues/{}", "target")["messages"] == 3
    raw = {"body_b64": b64encode(b"\0\xff").decode(), "recoverable": True}
    ok(server, "POST", "/queues/{}/messages", "source", body=raw)
    (row,) = ok(server, "GET", "/queues/{}/messages", "source", label="")["items"]
    body = call(server, "GET", "/queues/{}/messages/{}/body", "source", row["lookup_id"])
    assert body.content == b"\0\xff"
    assert body.headers["Content-Type"] == "application/octet-stream"
    assert "attachment" in body.headers["Content-Disposition"]
    twice = call(server, "POST", "/queues/{}/messages", "source", body={"body": "a", "body_b64": "YQ=="})
    assert twice.status == 400
    assert call(server, "POST", "/queues/{}/messages/move", "source", body={}).status == 400


def test_lists_agree_with_the_command_line(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "listed"})
    assert ok(server, "GET", "/access", queue="listed") == server.ok("acl", "show", "listed")[0]
    assert ok(server, "GET", "/keys") == server.ok("peer-key", "list")
    assert ok(server, "GET", "/certificates") == server.ok("certificate", "list")
    assert ok(server, "GET", "/transactions")["items"] == server.ok("transaction", "list")
    assert ok(server, "GET", "/outgoing")["items"] == server.ok("outgoing", "list")
    assert ok(server, "GET", "/sessions")["total"] >= 1
    listed = server.ok("queue", "list", "listed")
    assert ok(server, "GET", "/queues", glob="listed")["items"] == listed


def test_rights_are_granted_explained_and_locked(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "rights"})
    first = call(server, "GET", "/access", queue="rights").headers["ETag"]
    grant = {"action": "grant", "account": "everyone", "rights": "receive"}
    ok(server, "PATCH", "/access", queue="rights", body=grant, headers={"If-Match": first})
    late = call(server, "PATCH", "/access", queue="rights", body=grant, headers={"If-Match": first})
    assert late.code == "CHANGED"
    told = ok(server, "GET", "/access/explain", queue="rights", account="everyone", rights="receive")
    assert told["granted"] is True


def test_the_rights_on_parts_of_queues_are_those_of_their_lists(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "parts"})
    whole = ok(server, "GET", "/queues/{}/rights", "parts")
    assert all(whole.values())
    assert ok(server, "GET", "/queues/{}/rights", "parts;later") == whole
    for name in ("parts;journal", ".\\system$;deadletter", ";deadxact", ".\\system$;journal"):
        found = ok(server, "GET", "/queues/{}/rights", name)
        assert [right for right, granted in found.items() if granted] == ["receive", "peek"]
    assert not any(ok(server, "GET", "/queues/{}/rights", ".\\private$\\notify_queue$").values())


def test_sessions_are_listed_and_closed(server: Server) -> None:
    with sync.connect(server.endpoint) as program:
        page = ok(server, "GET", "/sessions", kind="program", limit=1)
        (mine,) = [one.as_map() for one in program.admin.sessions.page("program").sessions]
        assert page == {"items": [mine], "total": 1, "next": 0}
        own = ok(server, "GET", "/sessions", kind="admin")["items"]
        assert {one["direction"] for one in own} == {"incoming"}
        assert {one["state"] for one in own} <= {"busy", "idle"}
        number = mine["number"]
        assert ok(server, "DELETE", "/sessions/{}", number)["user"] == mine["user"]
        with pytest.raises(ConnectionLost):
            program.admin.stats()
    assert ok(server, "GET", "/sessions", kind="program")["items"] == []
    late = call(server, "DELETE", "/sessions/{}", number)
    assert (late.status, late.code) == (400, "INVALID_PARAMETER")
    assert call(server, "GET", "/sessions", kind="ftp").status == 400


def test_a_caller_without_rights_is_refused(server: Server) -> None:
    wrong = call(server, "GET", "/queues", headers={"Authorization": "Bearer nothing"})
    assert (wrong.status, wrong.code) == (401, "UNAUTHORIZED")
    assert wrong.headers["WWW-Authenticate"] == "Bearer"
    for headers in (
        {"Origin": "http://evil.example"},
        {"Host": "evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert call(server, "POST", "/queues", body={"name": "evil"}, headers=headers).status == 403
    assert call(server, "GET", "/queues/{}", "evil").status == 404

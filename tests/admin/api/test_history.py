"""Operations on what happened: the audit, the history of queues, and attempts to send."""

from __future__ import annotations

from tests.support.http.api import call, ok
from tests.support.processes.servers import Server


def test_the_audit_is_listed_and_filtered(server: Server) -> None:
    for name in ("audited", "second"):
        ok(server, "POST", "/queues", body={"name": name})
    ok(server, "DELETE", "/queues/{}", "audited")
    found = ok(server, "GET", "/audit", object="audited", kind="act", newest_first="true")
    entries = found["items"]
    assert len(entries) == 2
    assert all("audited" in entry["object"] for entry in entries)
    assert entries[0]["number"] > entries[1]["number"]
    assert found["finished"] is True
    assert {entry["address"] for entry in entries} == {"127.0.0.1"}  # that of the caller, not of the API
    (one,) = ok(server, "GET", "/audit", object="audited", operation=entries[1]["operation"])["items"]
    assert one == entries[1]
    assert ok(server, "GET", "/audit", caller="no such caller")["items"] == []
    assert call(server, "GET", "/audit", kind="other").status == 400


def test_the_history_has_columns_of_one_length(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "history"})
    for query in ({}, {"queue": "history"}, {"queue": "history", "resolution": 60}):
        found = ok(server, "GET", "/series", **query)
        assert found["resolution"] == query.get("resolution", 5)
        columns = ("time", "messages", "bytes", "in_per_second", "out_per_second")
        assert len({len(found[name]) for name in columns}) == 1
    assert call(server, "GET", "/series", queue="history", resolution=7).status == 400
    assert call(server, "GET", "/series", queue="none").status == 404


def test_a_queue_is_kicked_unless_it_is_paused(server: Server) -> None:
    name = "DIRECT=TCP:127.0.0.9\\private$\\kicked"
    ok(server, "POST", "/queues/{}/messages", name, body={"body": "x"})
    assert ok(server, "POST", "/outgoing/{}/kick", name)["messages"] == 1
    ok(server, "POST", "/outgoing/{}/pause", name)
    assert ok(server, "GET", "/outgoing/{}", name)["stalled"]
    assert call(server, "POST", "/outgoing/{}/kick", name).status == 400
    assert call(server, "POST", "/outgoing/{}/kick", "DIRECT=OS:none\\private$\\q").status == 404

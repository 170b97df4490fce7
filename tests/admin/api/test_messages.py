"""Messages over the management API: browsing in pages, one message."""

from __future__ import annotations

import time

from tests.support.http.api import call, ok
from tests.support.processes.servers import Server


def test_messages_are_browsed_in_pages_and_stay(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "browsed"})
    for number in range(5):
        server.ok("send", "browsed", "--body", f"body {number}", "--label", f"l{number}", "--priority", "5")
    first = ok(server, "GET", "/queues/{}/messages", "browsed", limit=3)
    assert [one["label"] for one in first["items"]] == ["l0", "l1", "l2"]
    assert [one["preview"] for one in first["items"]] == ["body 0", "body 1", "body 2"]
    assert (first["finished"], first["locked"]) == (False, 0)
    rest = ok(
        server, "GET", "/queues/{}/messages", "browsed", after=first["next"], upto=first["upto"], limit=3
    )
    assert [one["label"] for one in rest["items"]] == ["l3", "l4"]
    assert rest["finished"]
    chosen = ok(server, "GET", "/queues/{}/messages", "browsed", label="l[24]")["items"]
    assert [one["label"] for one in chosen] == ["l2", "l4"]
    assert ok(server, "GET", "/queues/{}", "browsed")["messages"] == 5


def test_a_message_is_shown_as_the_command_line_shows_it(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "shown"})
    server.ok("send", "shown", "--body", "hello", "--label", "greeting", "--recoverable")
    (peeked,) = server.ok("peek", "shown")
    shown = ok(server, "GET", "/queues/{}/messages/{}", "shown", peeked["lookup_id"])
    assert shown == peeked
    assert ok(server, "GET", "/queues/{}/messages", "shown", bodies="true")["items"] == [peeked]
    gone = call(server, "GET", "/queues/{}/messages/{}", "shown", 12345)
    assert (gone.status, gone.code) == (404, "MESSAGE_NOT_FOUND")


def test_the_packet_of_a_message_is_a_download(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "packets"})
    for number in range(3):
        server.ok("send", "packets", "--body", f"hello {number}", "--label", f"l{number}")
    row = ok(server, "GET", "/queues/{}/messages", "packets")["items"][1]
    found = call(server, "GET", "/queues/{}/messages/{}/packet", "packets", row["lookup_id"])
    assert found.headers["Content-Type"] == "application/octet-stream"
    name = f"message-{row['lookup_id']}.packet"
    assert found.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    # BaseHeader: signature and size (MS-MQMQ 2.2.19.1)
    assert found.content[4:8] == b"LIOR"
    assert int.from_bytes(found.content[8:12], "little") == len(found.content)
    assert b"hello 1" in found.content
    gone = call(server, "GET", "/queues/{}/messages/{}/packet", "packets", 12345)
    assert (gone.status, gone.code) == (404, "MESSAGE_NOT_FOUND")
    assert ok(server, "GET", "/queues/{}", "packets")["messages"] == 3


def test_messages_are_selected_by_identifier_priority_and_lookup_id(server: Server) -> None:
    for name in ("chosen", "taken"):
        ok(server, "POST", "/queues", body={"name": name})
    answers = "ab" * 20
    for number in range(6):
        body = {"label": f"l{number}", "priority": number, "correlation_id": answers if number < 2 else ""}
        ok(server, "POST", "/queues/{}/messages", "chosen", body=body)
    rows = ok(server, "GET", "/queues/{}/messages", "chosen")["items"]

    def labels(**query: object) -> list[str]:
        found = ok(server, "GET", "/queues/{}/messages", "chosen", **query)
        assert found["finished"]
        return [one["label"] for one in found["items"]]

    assert labels(id=rows[3]["message_id"]) == ["l3"]
    assert labels(correlation_id=answers) == ["l0", "l1"]
    assert labels(priority=4) == ["l4"]
    assert labels(lookup_ids=[rows[2]["lookup_id"], rows[5]["lookup_id"]]) == ["l2", "l5"]
    wrong = call(server, "GET", "/queues/{}/messages", "chosen", id="12")
    assert (wrong.status, wrong.code) == (400, "BAD_REQUEST")
    none = {"target": "taken", "lookup_ids": []}
    assert call(server, "POST", "/queues/{}/messages/move", "chosen", body=none).status == 400
    two = {"target": "taken", "lookup_ids": [rows[0]["lookup_id"], rows[4]["lookup_id"]]}
    assert ok(server, "POST", "/queues/{}/messages/move", "chosen", body=two)["count"] == 2
    one = {"target": "taken", "correlation_id": answers, "limit": 1}
    assert ok(server, "POST", "/queues/{}/messages/move", "chosen", body=one)["count"] == 1
    assert labels() == ["l2", "l3", "l5"]


def test_messages_are_selected_by_their_arrival(server: Server) -> None:
    for name in ("dated", "dated-target"):
        ok(server, "POST", "/queues", body={"name": name})
    before = time.time_ns() // 1000
    for label in ("a", "b"):
        ok(server, "POST", "/queues/{}/messages", "dated", body={"label": label})
    between = time.time_ns() // 1000
    ok(server, "POST", "/queues/{}/messages", "dated", body={"label": "c"})

    def labels(**query: int) -> list[str]:
        return [one["label"] for one in ok(server, "GET", "/queues/{}/messages", "dated", **query)["items"]]

    assert labels(since=before) == ["a", "b", "c"]
    assert labels(since=before, until=between) == ["a", "b"]
    assert labels(since=between) == ["c"]
    assert labels(until=before - 1_000_000) == []
    wrong = call(server, "GET", "/queues/{}/messages", "dated", since=between, until=before)
    assert (wrong.status, wrong.code, wrong.value["error"]["message"]) == (
        400, "BAD_REQUEST", "since must not be later than until",
    )  # fmt: skip
    for text in ("2026-01-31", "-1", str(2**64)):
        wrong = call(server, "GET", "/queues/{}/messages", "dated", since=text)
        assert (wrong.status, wrong.code) == (400, "BAD_REQUEST")
        assert wrong.value["error"]["message"].startswith("since must be ")
    body = {"target": "dated-target", "since": between}
    assert ok(server, "POST", "/queues/{}/messages/move", "dated", body=body)["count"] == 1
    assert labels() == ["a", "b"]
    body = {"target": "dated-target", "since": between, "until": before}
    assert call(server, "POST", "/queues/{}/messages/move", "dated", body=body).status == 400

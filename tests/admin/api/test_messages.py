"""Messages over the management API: browsing in pages, one message."""

from __future__ import annotations

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

"""Queues over the management API: a page, one queue, creating, changing with an ETag, deleting, purging."""

from __future__ import annotations

from tests.support.http.api import call, ok
from tests.support.processes.servers import Server


def test_the_server_tells_who_it_is_and_who_calls(server: Server) -> None:
    shown = ok(server, "GET", "/server")
    assert shown["name"] == "ORDERS01"
    assert shown["not_ready"] == ""
    assert shown["caller"]["administrator"] is True
    assert ok(server, "GET", "/server/stats")["name"] == "ORDERS01"


def test_a_queue_is_created_shown_changed_and_deleted(server: Server) -> None:
    made = call(server, "POST", "/queues", body={"name": "life", "label": "Life", "quota_kb": 64})
    assert made.status == 201
    assert (made.value["name"], made.value["label"]) == ("ORDERS01\\private$\\life", "Life")
    assert call(server, "POST", "/queues", body={"name": "life"}).code == "QUEUE_EXISTS"
    assert ok(server, "GET", "/queues/{}", r".\private$\life")["quota_kb"] == 64
    assert ok(server, "PATCH", "/queues/{}", "life", body={"label": "Death"})["label"] == "Death"
    assert ok(server, "DELETE", "/queues/{}", "life") == {"deleted": "life"}
    gone = call(server, "GET", "/queues/{}", "life")
    assert (gone.status, gone.code) == (404, "QUEUE_NOT_FOUND")


def test_a_change_with_an_old_etag_is_refused(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "locked"})
    first = call(server, "GET", "/queues/{}", "locked").headers["ETag"]
    ok(server, "PATCH", "/queues/{}", "locked", body={"label": "one"}, headers={"If-Match": first})
    for method, path, body in (
        ("PATCH", "/queues/{}", {"label": "two"}),
        ("DELETE", "/queues/{}", None),
        ("POST", "/queues/{}/purge", None),
    ):
        late = call(server, method, path, "locked", body=body, headers={"If-Match": first})
        assert (late.status, late.code) == (412, "CHANGED")
    now = call(server, "GET", "/queues/{}", "locked").headers["ETag"]
    assert now != first
    ok(server, "POST", "/queues/{}/purge", "locked", headers={"If-Match": "*"})
    ok(server, "DELETE", "/queues/{}", "locked", headers={"If-Match": f'"other", {now}'})


def test_a_page_of_queues_is_filtered_sorted_and_counted(server: Server) -> None:
    for number in range(5):
        ok(server, "POST", "/queues", body={"name": f"page{number}"})
        for _ in range(number):
            server.ok("send", f"page{number}", "--body", "x")
    page = ok(server, "GET", "/queues", filter="PAGE", sort="messages", descending="true", limit=2)
    assert [one["messages"] for one in page["items"]] == [4, 3]
    assert (page["total"], page["messages"], page["offset"], page["limit"]) == (5, 10, 0, 2)
    rest = ok(server, "GET", "/queues", glob="page[0-9]", sort="messages", descending="true", offset=4)
    assert [one["name"] for one in rest["items"]] == ["ORDERS01\\private$\\page0"]
    some = ok(server, "GET", "/queues", glob="page[34]", fields=["messages", "name"])
    assert some["items"] == [
        {"messages": number, "name": f"ORDERS01\\private$\\page{number}"} for number in (3, 4)
    ]
    whole = ok(server, "GET", "/queues", glob="page3")["items"][0]
    assert whole == ok(server, "GET", "/queues/{}", "page3")
    assert ok(server, "POST", "/queues/{}/purge", "page4") == {"purged": 4, "name": "page4"}


def test_mistakes_get_one_line(server: Server) -> None:
    for refused, words in (
        (call(server, "GET", "/queues", limit=0), "limit must be at least 1"),
        (call(server, "GET", "/queues", limit="many"), 'limit must be a whole number, not "many"'),
        (call(server, "GET", "/queues", sort="colour"), "sort must be one of name"),
        (call(server, "GET", "/queues", colour="red"), 'unknown parameter "colour"'),
        (call(server, "POST", "/queues", body={}), "the body needs the property name"),
        (call(server, "POST", "/queues", body={"name": 1}), "the body.name must be text"),
        (call(server, "POST", "/queues", body=[]), "the body must be an object"),
        (call(server, "POST", "/queues", body={"name": "a", "colour": 1}), 'has no property "colour"'),
        (call(server, "POST", "/queues", body={"name": "\ud800"}), "half of a surrogate pair"),
        (call(server, "POST", "/queues", body=b"{"), "the body is not valid JSON"),
        (call(server, "DELETE", "/queues/{}", "x", body={}), "takes no body"),
    ):
        assert refused.status == 400
        assert words in refused.value["error"]["message"], refused.content
        assert "\n" not in refused.value["error"]["message"]
    assert call(server, "PUT", "/queues").status == 405
    assert call(server, "GET", "/nothing").code == "NOT_FOUND"
    form = call(server, "POST", "/queues", body=b"a=b", headers={"Content-Type": "text/plain"})
    assert (form.status, form.code) == (415, "MEDIA_TYPE")


def test_numbers_that_no_frame_can_carry_are_refused(server: Server) -> None:
    for number in (2**64, -(2**63) - 1, 10**30):
        refused = call(server, "POST", "/queues", body={"name": "large", "base_priority": number})
        assert (refused.status, refused.code) == (400, "BAD_REQUEST")
    assert call(server, "GET", "/queues/{}", "large").status == 404


def test_a_list_tells_which_queues_the_caller_may_browse(server: Server) -> None:
    for name in ("browsable", "closed"):
        ok(server, "POST", "/queues", body={"name": name})
    server.ok("acl", "deny", "closed", "--user", "administrators", "--right", "peek")

    def told(kind: str, **query: object) -> dict[str, object]:
        items = ok(server, "GET", "/queues", kind=kind, filter="", **query)["items"]
        return {one["name"].partition("\\")[2]: one.get("may_peek") for one in items}

    found = told("user", rights="true", fields="name")
    assert (found["private$\\browsable"], found["private$\\closed"]) == (True, False)
    system = told("system", rights="true")
    assert system["system$;deadletter"] is True
    assert system["private$\\order_queue$"] is False  # only the queue manager opens it
    assert set(told("user").values()) == {None}

"""Directory objects over the API: the same JSON as the commands, audit, mistakes."""

from __future__ import annotations

from functools import partial

from tests.support.http.api import call, ok
from tests.support.processes.servers import Server, until


def test_an_object_from_create_to_delete(server: Server) -> None:
    made = call(server, "POST", "/directory/Site", body={"Name": "north", "ForeignSite": False})
    assert (made.status, made.value) == (201, {"created": "north"})
    shown = ok(server, "GET", "/directory/Site/{}", "north")
    assert server.ok("directory", "show", "Site", "north") == [shown]
    changed = ok(server, "PATCH", "/directory/Site/{}", "north", body={"ForeignSite": True})
    assert changed == shown | {"ForeignSite": True}
    assert ok(server, "GET", "/directory/Site/{}", shown["Identifier"]) == changed
    assert ok(server, "DELETE", "/directory/Site/{}", "north") == {"deleted": "north"}
    gone = call(server, "GET", "/directory/Site/{}", "north")
    assert (gone.status, gone.code) == (400, "DS_ERROR")
    for name, details in (("north", ["created", "deleted"]), (shown["Identifier"], ["changed"])):
        until(partial(audited, server, name, details), what="the entries of the audit")


def audited(server: Server, name: str, details: list[str]) -> bool:
    """Whether the audit has these entries of a site, the oldest first."""
    found = ok(server, "GET", "/audit", operation="change directory", object=f"site {name}")["items"]
    return [one["detail"] for one in found] == details


def test_a_queue_object_of_this_computer_is_the_queue(server: Server) -> None:
    path = r"ORDERS01\published"
    ok(server, "POST", "/directory/Queue", body={"Pathname": path, "Label": "one"})
    ok(server, "PATCH", "/directory/Queue/{}", path, body={"Label": "two"})
    assert ok(server, "GET", "/queues/{}", r".\published")["label"] == "two"
    ok(server, "DELETE", "/directory/Queue/{}", path)
    assert call(server, "GET", "/queues/{}", r".\published").status == 404


def test_a_document_is_imported_as_by_the_command(server: Server) -> None:
    objects = [{"object": "Site", "Name": "west"}, {"object": "ConnectedNetwork", "Name": "lan"}]
    document = {"msmq_fast_directory": 1, "objects": objects}
    preview = ok(server, "POST", "/directory", body=document, dry_run="true")
    assert (preview["created"], preview["dry_run"]) == (2, True)
    assert call(server, "GET", "/directory/Site/{}", "west").status == 400
    some = ok(server, "POST", "/directory", body=document, type="Site")
    assert some["items"] == [{"object": "Site", "name": "west", "outcome": "created", "detail": ""}]
    done = ok(server, "POST", "/directory", body=document)
    assert (done["created"], done["unchanged"]) == (1, 1)


def test_queues_are_found_by_what_programs_know_of_them(server: Server) -> None:
    """The same as by `queue find`."""
    orders = "00112233-4455-6677-8899-aabbccddeeff"
    for number in range(3):
        label = f"Orders = {number}"
        ok(server, "POST", "/directory/Queue", body={"Pathname": rf"FAR\found{number}", "Label": label})
    body = {"Pathname": r"NEAR\found", "Type": orders, "Transactional": True}
    ok(server, "POST", "/directory/Queue", body=body)

    def found(*conditions: str) -> list[str]:
        items = ok(server, "GET", "/directory/Queue", where=list(conditions))["items"]
        return sorted(one["Pathname"] for one in items)

    assert found("Label=orders = 1") == [r"FAR\found1"]
    assert found(f"Type={orders.upper()}") == [r"NEAR\found"]
    assert found("Transactional=true", "Pathname>=NEAR\\", "Pathname<NEAR]") == [r"NEAR\found"]
    assert found("Pathname>=FAR\\", "Pathname<FAR]", "Label!=Orders = 1") == [r"FAR\found0", r"FAR\found2"]
    assert found("BasePriority>0", "Pathname<=NEAR]") == []
    assert found("Label=') or 1=1 --\0\n") == []
    page = ok(server, "GET", "/directory/Queue", where=["Pathname>=FAR\\"], limit=1)["items"]
    rest = ok(server, "GET", "/directory/Queue", where=["Pathname>=FAR\\"], after=page[0]["Identifier"])
    assert len(page) == 1
    assert page[0] not in rest["items"]
    rows = server.ok("queue", "find", "--label", "Orders = 2")
    assert [row["name"] for row in rows] == found("Label=Orders = 2")
    for condition, words in (
        ("Label", "is not a condition"),
        ("=Orders", "is not a condition"),
        ("Colour=red", "has no attribute 'Colour'"),
        ("Quota>many", "Quota: expected a whole number"),
        (f"Quota={'9' * 900}", "Quota: expected a whole number"),
        ("Type=x", "Type: expected a GUID"),
        (f"Label={'x' * 1024}", "at most 1024"),
    ):
        refused = call(server, "GET", "/directory/Queue", where=condition)
        assert (refused.status, refused.code) == (400, "BAD_REQUEST"), refused.content
        assert words in refused.value["error"]["message"], refused.content
    many = call(server, "GET", "/directory/Queue", where=["Quota>1"] * 9)
    assert "at most 8" in many.value["error"]["message"]


def test_mistakes_get_one_line(server: Server) -> None:
    for refused, words in (
        (call(server, "POST", "/directory/Site", body={}), "Name: required"),
        (call(server, "POST", "/directory/Site", body={"Name": "x", "Colour": 1}), "Colour"),
        (call(server, "POST", "/directory/Site", body={"object": "Site", "Name": "x"}), "leave out object"),
        (call(server, "POST", "/directory/Planet", body={"Name": "x"}), "type must be one of"),
        (call(server, "PATCH", "/directory/Site/{}", "x", body={"Name": "y"}), "cannot be set"),
        (call(server, "PATCH", "/directory/Site/{}", "x", body={}), "must name an attribute"),
        (
            call(server, "POST", "/directory", body={"msmq_fast_directory": 1, "objects": [{}, {}]}),
            "(and 1 more)",
        ),
        (call(server, "POST", "/directory", body={"objects": []}), "needs the property"),
    ):
        assert refused.status == 400, refused.content
        assert words in refused.value["error"]["message"], refused.content
    deep: object = 1
    for _ in range(600):
        deep = {"a": deep}
    for value in (2**64, [-(2**63) - 1], {"a": 10**30}, "\ud800", {"\ud800": 1}, deep):
        for refused in (
            call(server, "POST", "/directory/Site", body={"Name": value}),
            call(server, "POST", "/directory", body={"msmq_fast_directory": 1, "objects": [{"Name": value}]}),
            call(
                server, "POST", "/definitions", body={"msmq_fast_definitions": 1, "directory": [{"x": value}]}
            ),
        ):
            assert (refused.status, refused.code) == (400, "BAD_REQUEST"), refused.content
    ok(server, "POST", "/directory/Site", body={"Name": "twice"})
    again = call(server, "POST", "/directory/Site", body={"Name": "twice"})
    assert "already has the Name twice" in again.value["error"]["message"]

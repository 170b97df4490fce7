"""Traces, dead letters, the directory, and what is registered: certificates and keys."""

from __future__ import annotations

from base64 import b64encode

from tests.support.http.api import call, ok
from tests.support.processes.servers import Server, until


def test_a_trace_agrees_with_the_command_line(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "traced"})
    sent = ok(server, "POST", "/queues/{}/messages", "traced", body={"body": "x", "recoverable": True})
    traced = ok(server, "GET", "/trace/{}", sent["message_id"])
    assert traced["verdict"]["cause"] == "waiting"
    assert [place["queue"].rpartition("\\")[2] for place in traced["places"]] == ["traced"]
    (told,) = server.ok("trace", sent["message_id"])
    assert {name: told[name] for name in traced} == traced
    assert call(server, "GET", "/trace/{}", "12").status == 400
    unknown = ok(server, "GET", "/trace/{}", "ab" * 20)
    assert (unknown["events"], unknown["places"], unknown["verdict"]["cause"]) == ([], [], "unknown")


def test_dead_letters_are_selected_by_reason(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "short"})
    server.ok("send", "short", "--body", "x", "--label", "late", "--dead-letter", "--ttbr", "1")

    def found(**query: str) -> list[str]:
        items = ok(server, "GET", "/dead-letters", **query)["items"]
        return [one["label"] for one in items if one["label"] == "late"]  # other tests have dead letters, too

    until(lambda: found() == ["late"], what="a dead letter")
    assert found(reason="RECEIVE_TIMEOUT") == ["late"]
    assert found(reason="NACK_Q_PURGED") == []
    assert call(server, "GET", "/dead-letters", reason="no such").status == 400


def test_objects_of_the_directory_are_listed_and_shown(server: Server) -> None:
    server.ok("directory", "create", "Site", "Name=Berlin")
    items = ok(server, "GET", "/directory/{}", "Site")["items"]
    assert items == server.ok("directory", "list", "Site")
    assert ok(server, "GET", "/directory/{}/{}", "Site", "Berlin") in items
    after = ok(server, "GET", "/directory/{}", "Site", after=items[-1]["Identifier"])
    assert after["items"] == []
    assert call(server, "GET", "/directory/{}", "Nothing").status == 400


def test_keys_and_certificates_are_registered_and_removed(server: Server) -> None:
    (own,) = [one for one in ok(server, "GET", "/keys") if one["own"]]
    other = "43cd8907-394c-8f11-4445-9078909ea0fc"
    ok(server, "POST", "/keys", body={"guid": other, "blob_b64": own["blob_b64"]})
    assert other in [one["guid"] for one in ok(server, "GET", "/keys")]
    assert ok(server, "DELETE", "/keys/{}", other) == {"forgotten": other}
    assert other not in [one["guid"] for one in ok(server, "GET", "/keys")]
    made = ok(server, "POST", "/certificates")
    external = {"certificate_b64": made["certificate_b64"]}
    assert ok(server, "POST", "/certificates/external", body=external)["digest"] == made["digest"]
    wrong = {"certificate_b64": b64encode(b"no certificate").decode()}
    assert call(server, "POST", "/certificates/external", body=wrong).status == 400
    assert call(server, "POST", "/certificates/external", body={"certificate_b64": "?"}).status == 400

"""The OpenAPI document, and requests that are repeated with an Idempotency-Key."""

from __future__ import annotations

import json

from tests.support.http.api import call, ok
from tests.support.processes.servers import Server
from tools.openapi import FILE


def test_the_document_describes_every_operation_once(server: Server) -> None:
    document = ok(server, "GET", "/openapi.json")
    assert document["openapi"] == "3.1.0"
    assert document == json.loads(FILE.read_text(encoding="utf-8"))
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(names) == len(set(names))
    assert {"queues.list", "messages.move", "access.explain"} <= set(names)
    for path, methods in document["paths"].items():
        for one in methods.values():
            given = {parameter["name"] for parameter in one["parameters"] if parameter["in"] == "path"}
            assert all(f"{{{name}}}" in path for name in given)
            assert path.count("{") == len(given)


def test_a_repeated_request_with_a_key_sends_once(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "once"})
    path, key = "/queues/{}/messages", {"Idempotency-Key": "k1"}
    first = ok(server, "POST", path, "once", body={"body": "x"}, headers=key)
    assert ok(server, "POST", path, "once", body={"body": "x"}, headers=key) == first
    assert ok(server, "GET", "/queues/{}", "once")["messages"] == 1
    other = call(server, "POST", path, "once", body={"body": "y"}, headers=key)
    assert (other.status, other.code) == (422, "KEY_REUSED")

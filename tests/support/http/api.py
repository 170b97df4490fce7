"""Requests to the management API of a server."""

from __future__ import annotations

import contextlib
import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from tests.support.processes.servers import Server


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.content)

    @property
    def code(self) -> str:
        """The code of an error answer."""
        return str(self.value["error"]["code"])


def call(
    server: Server,
    method: str,
    path: str,
    *names: object,
    body: Any = None,
    headers: dict[str, str] | None = None,
    **query: Any,
) -> Answer:
    """Make one request; each `{}` of `path` is replaced with a name, percent-encoded."""
    target = "/api/v1" + path.format(*(quote(str(name), safe="") for name in names))
    if query:
        target += "?" + urlencode(query, doseq=True)
    given = dict(headers or {})
    data: bytes | None = None
    if body is not None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection(server.host, server.port("admin"), timeout=30)
    with contextlib.closing(connection):
        connection.request(method, target, body=data, headers=given)
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read())


def ok(server: Server, method: str, path: str, *names: object, **more: Any) -> Any:
    """Make one request, which must succeed; returns its JSON."""
    answer = call(server, method, path, *names, **more)
    assert answer.status in (200, 201), (method, path, answer.status, answer.content)
    return answer.value

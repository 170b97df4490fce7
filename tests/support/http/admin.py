"""Requests to the admin port of a server."""

from __future__ import annotations

import urllib.error
import urllib.request

from tests.support.processes.servers import Server


def http(server: Server, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port('admin')}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def refusals(server: Server) -> dict[str, int]:
    return dict(server.ok("stats")[0]["refusals"])

"""Reads /metrics of a server as a collector does."""

from __future__ import annotations

import re
from http.client import HTTPConnection

from tests.support.processes.servers import Server


def scraped(server: Server) -> str:
    """The text of /metrics."""
    connection = HTTPConnection(server.host, server.port("admin"), timeout=10)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def value(text: str, series: str) -> float | None:
    """The value of one series; None if the text does not have it."""
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    return None if found is None else float(found[1])

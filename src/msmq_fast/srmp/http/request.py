"""The request that the HTTP server passes to SRMP once it has arrived completely ([MC-MQSRM] 2.1.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msmq_fast.store.completion import Completion

__all__ = ["Handler", "HttpRequest"]


@dataclass(slots=True)
class HttpRequest:
    """One request without its framing: the chunks of a chunked body are joined.

    `target` is as on the request line. `headers` keep their order and repetitions; names are in lower case,
    folded lines are joined by one blank, white space around values is removed. `raw_head` holds the head as
    received, from the request line to the empty line, both included. `peer` is the address of the client,
    without its port.
    """

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes | memoryview
    peer: str = ""
    tls: bool = False
    raw_head: bytes = b""

    def header(self, name: bytes) -> bytes | None:
        """Return the value of the first header called `name` (lower case), None if there is none."""
        for each, value in self.headers:
            if each == name:
                return value
        return None


Handler = Callable[[HttpRequest], Completion[int]]
"""Handles a request. The completion returns the status of the answer; if it fails, the status is 500."""

"""The request that the HTTP server passes to SRMP when it has arrived in full ([MC-MQSRM] 2.1.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msmq_fast.store.completion import Completion

__all__ = ["Handler", "HttpRequest"]


@dataclass(slots=True)
class HttpRequest:
    """One request, its framing taken off: a chunked body is one piece again.

    `target` is as on the request line. `headers` keep their order and repetitions; names are in lower case,
    folded lines are joined by one blank, white space around values is gone. `raw_head` is the head as it
    came, from the request line to the empty line, both included. `peer` is the address of the other side,
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
        """The value of the first header called `name` (lower case), None without one."""
        for each, value in self.headers:
            if each == name:
                return value
        return None


Handler = Callable[[HttpRequest], Completion[int]]
"""Takes a request; the value is the status of its answer, an error of the completion becomes 500."""

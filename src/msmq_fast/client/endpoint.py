"""The endpoint of a queue manager: a Unix socket, or a host and port with or without TLS."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

ENVIRONMENT = "MSMQ_FAST_ENDPOINT"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A parsed endpoint: `path` for a Unix socket, else `host` and `port`."""

    path: str = ""
    host: str = ""
    port: int = 0
    tls: bool = False

    def __str__(self) -> str:
        if self.path:
            return self.path
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tls' if self.tls else 'tcp'}://{host}:{self.port}"

    @property
    def other_scheme(self) -> str:
        """The text of an endpoint with the same host and port and the other scheme: `tls` instead of `tcp`,
        or `tcp` instead of `tls`.
        """
        return str(replace(self, tls=not self.tls))


def parse_endpoint(text: str | None) -> Endpoint:
    """Parse `/path/app.sock`, `unix:/path/app.sock`, `tcp://host:port` or `tls://host:port`.

    None: the value of the variable MSMQ_FAST_ENDPOINT. Raises ValueError with one line that says what is
    wrong.
    """
    if text is None:
        text = os.environ.get(ENVIRONMENT, "")
        if not text:
            raise ValueError(f"no endpoint given, and {ENVIRONMENT} is not set")
    if text.startswith("unix:"):
        text = text.removeprefix("unix:")
        return Endpoint(path=text.removeprefix("//"))
    if "://" not in text:
        return Endpoint(path=text)
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("tcp", "tls") or not parts.hostname or not port or parts.path:
        raise ValueError(
            f"{text!r} is not an endpoint: use a path, unix:/path, tcp://host:port or tls://host:port"
        )
    return Endpoint(host=parts.hostname, port=port, tls=parts.scheme == "tls")

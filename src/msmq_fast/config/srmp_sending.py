"""The half of section [srmp] of the configuration that is about sending."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key

__all__ = ["SrmpSendingConfig"]


@dataclass(slots=True)
class SrmpSendingConfig:
    """How messages leave by HTTP and HTTPS."""

    sending: str = key(
        kinds.choice("auto", "on", "off"),
        "auto",
        "messages may be sent to DIRECT=HTTP:// and HTTPS:// names; auto: unless the HTTP ports are off",
    )
    retry_interval: float = key(
        kinds.duration(0.1, 86_400), 20.0, "until a queue tries again whose message was not taken"
    )
    idle_timeout: float = key(
        kinds.duration(1, 86_400), 300.0, "a connection is closed on which nothing was sent for so long"
    )
    response_timeout: float = key(kinds.duration(1, 3_600), 60.0, "for the answer to a message")
    connect_timeout: float = key(kinds.duration(0.1, 600), 10.0, "for one connection")
    connections_per_host: int = key(kinds.integer(1, 1024), 8, "to one server at a time")
    ca_file: Path | None = key(  # noqa: RUF009
        kinds.PATH, None, "certificates (PEM) that servers are verified with, instead of those of the system"
    )
    proxy: str = key(name_kinds.PROXY, "", "host:port of a proxy for messages that leave; empty: none")
    proxy_bypass: tuple[str, ...] = key(
        kinds.TEXTS, (), "hosts that are reached without the proxy; *.example.org stands for all below it"
    )

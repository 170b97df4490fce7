"""Endpoints to which outgoing queues connect by HTTP, and the progress of a connection."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Endpoint", "Progress"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a server: `scheme` is http or https, `host` a name or an address without brackets.

    `only` is for receipts: the address of the peer that asked for them, to which they may be sent
    (`returnpath`). None: any address of the host is allowed, for messages of programs on this computer.
    """

    scheme: str
    host: str
    port: int
    only: str | None = None


class Progress(Enum):
    """The progress of an outgoing queue's connection."""

    IN_PROCESS = "in process"
    ESTABLISHED = "established"
    DNS_FAILURE = "name not resolved"
    CONNECT_FAILURE = "connection failed"
    REFUSED = "connection refused"
    CERTIFICATE_FAILURE = "the certificate of the server is not valid"
    CREATE_FAILURE = "no socket"
    SEND_FAILURE = "connection lost while sending"
    NO_ANSWER = "no answer in time"
    ANSWERED_BADLY = "the server asks to try again"
    CLEANED_UP = "closed because it was idle"

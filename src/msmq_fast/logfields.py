"""The fields of log lines about peers and messages, for every package of the server; it imports none of them.

A line about a refusal or a failure names its `peer` (an address), and if it is about one message the
`message_id` and the `queue`. Logs in JSON have them as keys of the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol
from uuid import UUID

__all__ = ["Fields", "Refuse", "about_packet", "logged"]

Fields = Mapping[str, str]
"""Fields of a log line by name; those with an empty value are left out."""

_SOURCE: Final = slice(16, 32)  # UserHeader.SourceQueueManager
_NUMBER: Final = slice(56, 60)  # UserHeader.MessageID


class Refuse(Protocol):
    """Counts and logs a refusal: what was refused, the reason, details in words, and the address of the
    peer.
    """

    def __call__(self, what: str, reason: str, detail: str = "", *, peer: str = "") -> None: ...


def logged(**fields: str) -> dict[str, dict[str, str]]:
    """Return the argument `extra` of a log call whose line has these fields."""
    return {"fields": fields}


def about_packet(packet: bytes, queue: str, peer: str = "") -> Fields:
    """Return the fields of a line about a UserMessage packet, which may be malformed."""
    fields = {"queue": queue, "peer": peer}
    if len(packet) >= _NUMBER.stop:
        source, number = UUID(bytes_le=bytes(packet[_SOURCE])), int.from_bytes(packet[_NUMBER], "little")
        fields["message_id"] = f"{{{source}}}\\{number}"
    return fields

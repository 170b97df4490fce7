"""Queue names of application frames to what stands in a packet."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.packet.fields import Hosts, QueueField, reply_field
from msmq_fast.packet.names import (
    FormatName,
    direct_format_name,
    is_format_name,
    parse_format_name,
    parse_path,
)

_CACHED = 256  # distinct response and admin queues that one handle remembers


def format_name(text: str, computer: str) -> FormatName:
    """The format name that a path or format name of an application means; `computer` is the local name.

    Raises IllegalFormatName, IllegalQueuePathName.
    """
    if is_format_name(text):
        return parse_format_name(text)
    return direct_format_name(parse_path(text, computer))


class ReplyNames:
    """Response and admin queues of the messages to one destination, as packet fields."""

    def __init__(self, computer: str, source: UUID, destination: UUID) -> None:
        self._computer = computer
        self._hosts = Hosts(source, destination)
        self._known: dict[str, tuple[int, bytes]] = {}

    def __call__(self, text: str) -> tuple[int, bytes]:
        """(AQ or RQ value, field). Raises IllegalFormatName, UnsupportedFormatNameOperation."""
        known = self._known.get(text)
        if known is None:
            field: QueueField = reply_field(format_name(text, self._computer), self._hosts)
            if len(self._known) >= _CACHED:
                self._known.clear()
            known = self._known[text] = (field.kind, field.wire)
        return known

"""Converts queue names as programs write them to the fields of packets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from msmq_fast.packet.fields import Hosts, QueueField, reply_field
from msmq_fast.packet.names import (
    FormatName,
    direct_format_name,
    is_format_name,
    parse_format_name,
    parse_path,
)
from msmq_fast.packet.text import is_address
from msmq_fast.protocol.errors import UnsupportedFormatNameOperation

_CACHED = 256  # distinct response and admin queues that one handle remembers


def format_name(text: str, computer: str) -> FormatName:
    """Returns the format name for a path or format name of an application; `computer` is the local name.

    Raises IllegalFormatName, IllegalQueuePathName.
    """
    if is_format_name(text):
        return parse_format_name(text)
    path = parse_path(text, computer)
    return direct_format_name(path, "TCP" if is_address(path.computer) else "OS")


class ReplyNames:
    """Response and admin queues of the messages to one destination, as packet fields.

    A text with several names is accepted only inside `lists()`: the field is then that of the first name, and
    `listed` says that the others need another place in the packet.
    """

    def __init__(self, computer: str, source: UUID, destination: UUID) -> None:
        self._computer = computer
        self._hosts = Hosts(source, destination)
        self._known: dict[str, tuple[int, bytes]] = {}
        self._lists = False
        self.listed = False

    def __call__(self, text: str) -> tuple[int, bytes]:
        """Returns (AQ or RQ value, field). Raises IllegalFormatName, UnsupportedFormatNameOperation."""
        known = self._known.get(text)
        if known is None:
            if "," in text:
                return self._first(text)
            known = self._field(format_name(text, self._computer))
            if len(self._known) >= _CACHED:
                self._known.clear()
            self._known[text] = known
        return known

    def _field(self, name: FormatName) -> tuple[int, bytes]:
        field: QueueField = reply_field(name, self._hosts)
        return field.kind, field.wire

    def _first(self, text: str) -> tuple[int, bytes]:
        if not self._lists:
            raise UnsupportedFormatNameOperation("a message can name only one response or admin queue here")
        self.listed = True
        return self._field(self.all_of(text)[0])

    @contextmanager
    def lists(self) -> Iterator[None]:
        """Accept texts with several names; `listed` is False until there is one."""
        self._lists, self.listed = True, False
        try:
            yield
        finally:
            self._lists = False

    def all_of(self, text: str) -> tuple[FormatName, ...]:
        """Returns the names in a text with several names; empty for any other text. Raises what a call
        raises.
        """
        if "," not in text:
            return ()
        return tuple(format_name(name, self._computer) for name in text.split(","))

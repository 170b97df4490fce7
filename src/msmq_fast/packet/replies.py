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
    """Returns the format name for a path name or format name that an application has passed.

    `computer` is the name of the local computer. Raises IllegalFormatName, IllegalQueuePathName.
    """
    if is_format_name(text):
        return parse_format_name(text)
    path = parse_path(text, computer)
    return direct_format_name(path, "TCP" if is_address(path.computer) else "OS")


class ReplyNames:
    """Converts the names of response and admin queues to packet fields, for the messages to one destination.

    A text with several names, separated by commas, is accepted only inside `lists()`. Then the field holds
    the first name, and `listed` becomes True: the caller must put the other names into another header of the
    packet.
    """

    def __init__(self, computer: str, source: UUID, destination: UUID) -> None:
        self._computer = computer
        self._hosts = Hosts(source, destination)
        self._known: dict[str, tuple[int, bytes]] = {}
        self._lists = False
        self.listed = False

    def __call__(self, text: str) -> tuple[int, bytes]:
        """Returns (kind, field) for a queue name: the value of the AQ or RQ flags of the UserHeader, and the
        bytes of the field with the name.

        Raises IllegalFormatName, IllegalQueuePathName, UnsupportedFormatNameOperation.
        """
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
            raise UnsupportedFormatNameOperation("this message can have only one response or admin queue")
        self.listed = True
        return self._field(self.all_of(text)[0])

    @contextmanager
    def lists(self) -> Iterator[None]:
        """Accept texts with several names inside this context; `listed` is False until one is converted."""
        self._lists, self.listed = True, False
        try:
            yield
        finally:
            self._lists = False

    def all_of(self, text: str) -> tuple[FormatName, ...]:
        """Returns the format names in a text with several names; empty for a text with one name.

        Raises IllegalFormatName, IllegalQueuePathName.
        """
        if "," not in text:
            return ()
        return tuple(format_name(name, self._computer) for name in text.split(","))

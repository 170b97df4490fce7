"""Forwards messages for other computers: TransparentStoreAndForward and redirection (3.1.5.1.3, 4.10).

A message is forwarded unchanged: with the same envelope and body, so with the same identifier, stream and
signature. This server sends no receipt for it, assigns no number, and does not add it to the duplicate
history.

SRMP has no hop count, so computers that redirect a URL to each other would forward a message for ever (A-54).
Two rules prevent that:

- Each computer adds itself to the Via field of HTTP, which is kept with the message. The number of names in
  this field is limited.
- A message that was forwarded to a URL is remembered, in memory only, and is not forwarded to this URL again.
  A message of a stream is remembered only as long as it waits in its outgoing queue.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from uuid import UUID

from msmq_fast._native.queue import QueueCore
from msmq_fast.packet.names import FormatName, parse_format_name
from msmq_fast.srmp.intake import identifier_of
from msmq_fast.srmp.model import Envelope
from msmq_fast.srmp.urls import Url

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.queues.outgoing import OutgoingQueue

__all__ = ["Forwarder", "Pass"]

_MOST = 65_536  # messages that are remembered

Pass = tuple[str, bytes, int, int]
"""The key of a forwarded message: (URL, identifier of the message, its stream, its number in the stream)."""


class Forwarder:
    """Finds the outgoing queue of a message, and remembers which messages were forwarded."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._names: dict[str, FormatName] = {}
        self._passed: OrderedDict[Pass, tuple[QueueCore, int] | None] = OrderedDict()

    def way_out(self, url: Url) -> OutgoingQueue:
        """Return the outgoing queue for messages to a URL. Raises MSMQError if no queue can have this URL, or
        if the limit of outgoing queues is reached.
        """
        name = self._names.get(url.text)
        if name is None:
            if len(self._names) >= _MOST:
                self._names.clear()
            name = self._names[url.text] = parse_format_name(f"DIRECT={url.text}")
        return self._manager.outgoing_for(name, UUID(int=0))

    @staticmethod
    def passage(url: Url, envelope: Envelope) -> Pass | None:
        """Return the key under which `passed` remembers that a message was forwarded to a URL; None if the
        message has no identifier, so that it always counts as new.
        """
        identifier = identifier_of(envelope)
        part = envelope.stream
        if identifier is None:
            return None
        return url.text, identifier, *((0, 0) if part is None else (part.sequence, part.current))

    def is_known(self, passage: Pass) -> bool:
        """Return whether a message was forwarded before: it is a retransmission or came back in a loop.

        A message of a stream counts as forwarded only as long as it waits in its outgoing queue: the sender
        repeats it until the receiver has it.
        """
        if passage not in self._passed:
            return False
        place = self._passed[passage]
        return place is None or bool(place[0].positions.state(place[1]))

    def passed(self, passage: Pass, core: QueueCore, key: int) -> None:
        """Remember a forwarded message, which is in the outgoing queue `core` with the lookup id `key`."""
        in_stream = passage[-1] > 0
        self._passed[passage] = (core, key) if in_stream else None
        self._passed.move_to_end(passage)
        if len(self._passed) > _MOST:
            self._passed.popitem(last=False)

    def lost(self, passage: Pass) -> None:
        """Forget a message that was remembered as forwarded, because it could not be stored."""
        self._passed.pop(passage, None)

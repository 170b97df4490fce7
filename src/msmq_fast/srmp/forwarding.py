"""Messages for other computers that pass through: TransparentStoreAndForward and redirection (3.1.5.1.3,
4.10).

They leave as they came: same envelope, same body, so same identifier, stream and signature. No receipt is
made here, no number given, nothing remembered in the duplicate history.

SRMP has no hop count, so that computers that lead a URL to each other would hand a message on for ever
(A-54). Two things end that: each of them adds itself to the Via of HTTP, which is kept with the message, and
whose names are counted; and what was passed on to a URL is not passed on to it again, as long as this is
remembered, in memory, or in a stream as long as it waits.
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
"""A URL, the identifier of a message, and its place in its stream."""


class Forwarder:
    """Finds the way out, and knows what has taken it."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._names: dict[str, FormatName] = {}
        self._passed: OrderedDict[Pass, tuple[QueueCore, int] | None] = OrderedDict()

    def way_out(self, url: Url) -> OutgoingQueue:
        """The outgoing queue to a URL. MSMQError: there can be none, or none more."""
        name = self._names.get(url.text)
        if name is None:
            if len(self._names) >= _MOST:
                self._names.clear()
            name = self._names[url.text] = parse_format_name(f"DIRECT={url.text}")
        return self._manager.outgoing_for(name, UUID(int=0))

    @staticmethod
    def passage(url: Url, envelope: Envelope) -> Pass | None:
        """Returns the key of a message; None: it has no identifier, so each one is new."""
        identifier = identifier_of(envelope)
        part = envelope.stream
        if identifier is None:
            return None
        return url.text, identifier, *((0, 0) if part is None else (part.sequence, part.current))

    def is_known(self, passage: Pass) -> bool:
        """Whether a message is a repetition, or went round in a circle.

        One of a stream is only as long as it waits: its sender repeats it until its receiver has it.
        """
        if passage not in self._passed:
            return False
        place = self._passed[passage]
        return place is None or bool(place[0].positions.state(place[1]))

    def passed(self, passage: Pass, core: QueueCore, key: int) -> None:
        """A message was put into its outgoing queue under a lookup id."""
        in_stream = passage[-1] > 0
        self._passed[passage] = (core, key) if in_stream else None
        self._passed.move_to_end(passage)
        if len(self._passed) > _MOST:
            self._passed.popitem(last=False)

    def lost(self, passage: Pass) -> None:
        """It could not be stored."""
        self._passed.pop(passage, None)

"""Messages for other computers that pass through: TransparentStoreAndForward and redirection (3.1.5.1.3,
4.10).

They leave as they came: same envelope, same body, so same identifier, stream and signature. No receipt is
made here, no number given, nothing remembered in the duplicate history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from msmq_fast._native.queue import QueueCore
from msmq_fast.packet.names import FormatName, parse_format_name
from msmq_fast.srmp.urls import Url

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.outgoing import OutgoingQueue

__all__ = ["Forwarder"]

_MOST = 65_536  # messages that are remembered as being on their way


class Forwarder:
    """Finds the way out, and knows what is on it."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._names: dict[str, FormatName] = {}
        self._passing: dict[tuple[QueueCore, bytes], int] = {}

    def way_out(self, url: Url) -> OutgoingQueue:
        """The outgoing queue to a URL. MSMQError: there can be none, or none more."""
        name = self._names.get(url.text)
        if name is None:
            if len(self._names) >= _MOST:
                self._names.clear()
            name = self._names[url.text] = parse_format_name(f"DIRECT={url.text}")
        return self._manager.outgoing_for(name, UUID(int=0))

    def passes(self, core: QueueCore, identifier: bytes) -> bool:
        """Whether a message waits there already: a repetition, or one that went round in a circle."""
        key = self._passing.get((core, identifier))
        return key is not None and bool(core.positions.state(key))

    def passed(self, core: QueueCore, identifier: bytes, key: int) -> None:
        """A message was put into its outgoing queue under a lookup id."""
        if len(self._passing) >= _MOST:
            still = {place: key for place, key in self._passing.items() if place[0].positions.state(key)}
            self._passing = still if len(still) < _MOST // 2 else {}
        self._passing[core, identifier] = key

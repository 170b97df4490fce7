"""Reads messages of a queue without changing it; each call reads one batch of bounded size.

A batch is a range of arrival sequences: greater than `after`, up to and including `upto`. So a reader that
stops can continue later, and a reader of a queue to which messages are still sent ends at `upto`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from msmq_fast._native.framing import BadPacket, parse
from msmq_fast._native.operations import survey
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.queuebase import Received
from msmq_fast.store.completion import Completion

__all__ = ["Page", "Selection", "Stretch", "browse"]

BATCH: Final = 1000  # messages
BATCH_BYTES: Final = 1 << 20  # of their packets; one message may be larger
EXAMINED: Final = 2048  # messages looked at for one batch
SEQUENCE_MASK: Final = (1 << 56) - 1
EVER: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects messages by label (a pattern with * ? []), by message class, and by time of arrival; None
    selects all.

    `since_us` and `until_us` are Unix microseconds, both included.
    """

    label: str | None = None
    message_class: int | None = None
    since_us: int = 0
    until_us: int = EVER

    def admits(self, arrived_us: int, message_class: int) -> bool:
        """Whether the arrival time and the class of a message match the filter. Only if they do is its packet
        read, to check the label.
        """
        return self.since_us <= arrived_us <= self.until_us and self.message_class in (None, message_class)

    def matches(self, packet: bytes) -> bool:
        """Whether the label in the packet matches; the label of a damaged packet never does."""
        if self.label is None:
            return True
        try:
            return fnmatchcase(parse(packet).label, self.label)
        except BadPacket:
            return False


@dataclass(frozen=True, slots=True)
class Stretch:
    """The range that one batch examines: messages with arrival sequences greater than `after`, up to and
    including `upto`. The batch has at most `limit` messages.
    """

    selection: Selection
    after: int = 0
    upto: int = SEQUENCE_MASK
    limit: int = BATCH


@dataclass(slots=True)
class Page:
    """The messages of one batch. The next batch begins after the arrival sequence `next`; if `finished` is
    True, there is no next batch.
    """

    next: int
    finished: bool
    messages: list[Received] = field(default_factory=list)


def browse(core: QueueCore, stretch: Stretch) -> Completion[Page]:
    """Read the next batch of a queue, without changing it. Skips locked and unreadable messages."""
    keys: list[int] = []
    size = 0
    page = Page(stretch.after, False)
    examined = survey(core, stretch.after, stretch.upto, EXAMINED)
    limit = max(1, min(stretch.limit, BATCH))
    for key, packet_bytes, arrived_us, message_class in examined:
        if stretch.selection.admits(arrived_us, message_class):
            if keys and (len(keys) >= limit or size + packet_bytes > BATCH_BYTES):
                break
            keys.append(key)
            size += packet_bytes
        page.next = key & SEQUENCE_MASK
    else:
        page.finished = len(examined) < EXAMINED

    def fill(messages: list[Received]) -> Completion[Page]:
        page.messages = [message for message in messages if stretch.selection.matches(message.packet)]
        return Completion.of(page)

    return _read(core, keys).then(fill)


def _read(core: QueueCore, keys: list[int]) -> Completion[list[Received]]:
    """Read the messages with these lookup ids, in this order; skips messages that no longer exist or cannot
    be read.
    """
    completion: Completion[list[Received]] = Completion()
    found: dict[int, Received] = {}
    left = len(keys) + 1

    def one_less() -> None:
        nonlocal left
        left -= 1
        if not left:
            completion.resolve([found[key] for key in keys if key in found])

    def read(message: Received | None, status: int) -> None:
        if message is not None and not status:
            found[message.lookup_id] = message
        one_less()

    for key in keys:
        if not core.peek(key, read):
            one_less()
    one_less()
    return completion

"""Reads messages of a queue without changing it; each call reads one batch of bounded size.

A batch is a range of arrival sequences: greater than `after`, up to and including `upto`. So a reader that
stops can continue later, and a reader of a queue to which messages are still sent ends at `upto`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from msmq_fast._native.framing import BadPacket, parse
from msmq_fast._native.operations import survey
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.queuebase import Received
from msmq_fast.store.completion import Completion

__all__ = ["Page", "Selection", "Stretch", "browse", "lookup_order"]

BATCH: Final = 1000  # messages
BATCH_BYTES: Final = 1 << 20  # of their packets; one message may be larger
MAX_LOOKUP_IDS: Final = 10_000
SEQUENCE_MASK: Final = (1 << 56) - 1
EVER: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects messages by their properties; None selects all. A message must match all that are given.

    `label` is a pattern with * ? []. `message_class` is the MessageClass; that of a dead letter is the reason
    why it became one. `since_us` and `until_us` are Unix microseconds, both included. `id` and
    `correlation_id` have 20 bytes. `lookup_ids` are sorted by arrival: see `lookup_order`.

    The native scan of the queue checks all but the label and the correlation identifier. To check these, it
    reads the packets of the messages that match otherwise.

    To add a field that a slot of the position list holds: 1. here and in `browse`, 2. in `survey` of
    operations.pyx, 3. in `_FILTER_FIELDS` of the application protocol and its reference page, 4. in `Filter`
    of the client.
    """

    label: str | None = None
    message_class: int | None = None
    since_us: int = 0
    until_us: int = EVER
    id: bytes | None = None
    correlation_id: bytes | None = None
    priority: int | None = None
    lookup_ids: tuple[int, ...] | None = None

    @property
    def needs_packets(self) -> bool:
        """Whether a message matches can only be known from its packet."""
        return self.label is not None or self.correlation_id is not None

    def matches(self, packet: bytes) -> bool:
        """Whether the label and the correlation identifier in a packet match; those of a damaged packet never
        do.
        """
        if not self.needs_packets:
            return True
        try:
            message = parse(packet)
            return (self.label is None or fnmatchcase(message.label, self.label)) and self.correlation_id in (
                None,
                message.correlation_id,
            )
        except BadPacket:
            return False


def lookup_order(lookup_ids: Iterable[int]) -> tuple[int, ...]:
    """Return lookup ids in the order of arrival, each once."""
    return tuple(sorted(set(lookup_ids), key=SEQUENCE_MASK.__and__))


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
    wanted = stretch.selection
    limit = max(1, min(stretch.limit, BATCH))
    found, reached, finished = survey(
        core,
        stretch.after,
        stretch.upto,
        BATCH if wanted.needs_packets else limit,
        priority=-1 if wanted.priority is None else wanted.priority,
        message_class=-1 if wanted.message_class is None else wanted.message_class,
        since=wanted.since_us,
        until=wanted.until_us,
        identifier=wanted.id,
        keys=None if wanted.lookup_ids is None else list(wanted.lookup_ids),
    )
    keys: list[int] = []
    size = 0
    page = Page(reached, finished)
    for key, packet_bytes in found:
        size += packet_bytes
        if keys and size > BATCH_BYTES:
            page.next, page.finished = keys[-1] & SEQUENCE_MASK, False
            break
        keys.append(key)

    def fill(messages: list[Received]) -> Completion[Page]:
        matching = [message for message in messages if wanted.matches(message.packet)]
        page.messages = matching[:limit]
        if len(matching) > limit:
            page.next, page.finished = page.messages[-1].lookup_id & SEQUENCE_MASK, False
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

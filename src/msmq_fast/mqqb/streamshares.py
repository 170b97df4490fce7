"""Limits the transactional streams that the peers of one address may begin (MS-MQQB 3.1.1.3.1).

A stream is kept for months, and it costs a sender one small message with an invented source. Without a share
for each address, one stranger could use up the room for all: no new peer could send transactional messages.
"""

from __future__ import annotations

from collections import Counter

from msmq_fast._native.instream import InStreams
from msmq_fast.security.addresses import address_group

__all__ = ["StreamShares"]

_ANEW = 60.0
"""Seconds between two counts of all streams: between them, those that are forgotten still count."""


class StreamShares:
    """At most `most` streams whose latest message came from one address group. Times in monotonic seconds."""

    def __init__(self, streams: InStreams, most: int) -> None:
        self._streams = streams
        self.most = most
        self._held: Counter[str] = Counter()
        self._counted_at: float | None = None
        self._generation = 0

    def admits(self, source: bytes, dest_type: int, name: bytes, address: str, now: float) -> bool:
        """Whether a peer at `address` may go on with the stream of a source and destination, or begin it."""
        if len(self._streams) < self.most:  # nothing needs to be counted as long as all together are fewer
            return True
        if self._streams.get(source, dest_type, name) is not None:
            return True
        self._count(now)
        group = address_group(address)
        if self._held[group] >= self.most:
            return False
        self._held[group] += 1
        return True

    def _count(self, now: float) -> None:
        """Count by address, at first and now and then when streams were forgotten."""
        known = self._counted_at is not None and self._generation == self._streams.generation
        if known or (self._counted_at is not None and now - self._counted_at < _ANEW):
            return
        self._counted_at = now
        self._generation = self._streams.generation
        self._held = Counter(address_group(stream.address) for stream in self._streams)

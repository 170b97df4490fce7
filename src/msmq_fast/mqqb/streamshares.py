"""Limits the transactional streams that the peers of one address may begin (MS-MQQB 3.1.1.3.1).

A stream is kept for months, and costs its sender one small message with an invented source. Without a limit
for each address, one unauthenticated peer could use up all streams, and no new peer could send transactional
messages.
"""

from __future__ import annotations

from collections import Counter

from msmq_fast._native.instream import InStreams
from msmq_fast.security.addresses import address_group

__all__ = ["StreamShares"]

_ANEW = 60.0
"""Seconds between two counts of all streams; streams that are forgotten in between still count."""


class StreamShares:
    """Limits the number of streams that belong to one address group to `most`.

    A stream belongs to the group from which its latest message came. Times are monotonic seconds.
    """

    def __init__(self, streams: InStreams, most: int) -> None:
        self._streams = streams
        self.most = most
        self._held: Counter[str] = Counter()
        self._counted_at: float | None = None
        self._generation = 0

    def admits(self, source: bytes, dest_type: int, name: bytes, address: str, now: float) -> bool:
        """Whether a peer at `address` may continue or begin the stream from a source to a destination.

        `source` is the GUID on the wire; `dest_type` and `name` are as in UserHeader.Flags.DQ and
        DestinationQueue.
        """
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
        """Count the streams by address group: at first, and again from time to time if streams were
        forgotten.
        """
        known = self._counted_at is not None and self._generation == self._streams.generation
        if known or (self._counted_at is not None and now - self._counted_at < _ANEW):
            return
        self._counted_at = now
        self._generation = self._streams.generation
        self._held = Counter(address_group(stream.address) for stream in self._streams)

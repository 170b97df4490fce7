"""The callers in the event feed: which account, program and address received, removed or moved a message.

1. An event holds only the number of its caller, so that it costs the path of a message nothing.
2. A caller gets its number when it opens a queue. Sessions of the same account, program and address share one
   number: a program that connects a thousand times leaves one record.
3. The record is written in the batch of the open, so that it is durable before any event with its number.
4. At most `MOST` callers are kept. The one that has not opened a queue for the longest time is forgotten; its
   number is not given again.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from msmq_fast._native.tables import StoreError
from msmq_fast.qm.services import Services
from msmq_fast.security.token import Token
from msmq_fast.store.schema import ORDINAL_KEY, MetaName

__all__ = ["MOST", "FeedCaller", "FeedCallers"]

MOST: Final = 4096
"""Callers that are kept: about 1 MB of memory, 600 KB of the store."""

_LAST_NUMBER: Final = (1 << 32) - 1  # events have 32 bits for it


class FeedCaller(NamedTuple):
    """A caller as events describe it. `sid` is the SID of its account, `user` a name for people; `address` is
    `local` for a Unix socket, and empty if it is not known.
    """

    sid: str
    user: str
    address: str
    program: str


class FeedCallers:
    """The numbered callers. If `enabled` is False, nothing is recorded."""

    def __init__(self, services: Services, *, enabled: bool) -> None:
        self._services = services
        self._enabled = enabled
        self._numbers: dict[FeedCaller, int] = {}  # the least recently used first
        self._callers: dict[int, FeedCaller] = {}
        self._last = 0

    def number(self, token: Token | None) -> int:
        """Return the number of a caller. 0 for the queue manager itself (None), without a feed, and if the
        record cannot be written.
        """
        if token is None or not self._enabled:
            return 0
        caller = FeedCaller(str(token.user), token.name, token.address, token.program)
        number = self._numbers.pop(caller, 0)
        if number:
            self._numbers[caller] = number
            return number
        return self._add(caller)

    def _add(self, caller: FeedCaller) -> int:
        if self._last == _LAST_NUMBER:
            return 0
        number = self._last + 1
        oldest = next(iter(self._numbers.values())) if len(self._numbers) >= MOST else 0
        records = self._services.records

        def write() -> None:
            records.set_meta(_key(number), caller._asdict())
            if oldest:
                records.delete_meta(_key(oldest))

        try:
            records.unit(write)
        except StoreError:
            return 0  # the caller may read all the same; its next open tries again
        if oldest:
            del self._numbers[self._callers.pop(oldest)]
        self._last = number
        self._numbers[caller] = number
        self._callers[number] = caller
        return number

    def find(self, number: int) -> FeedCaller | None:
        """Return the caller with this number; None if it was forgotten, or not recorded."""
        return self._callers.get(number)

    def load(self) -> None:
        """Read the stored callers at start."""
        for key, value in self._services.records.metas(MetaName.FEED_CALLER):
            try:
                (number,) = ORDINAL_KEY.unpack(key)
                caller = _decoded(value)
            except (ValueError, TypeError, KeyError, struct.error) as error:
                self._services.report_corrupt("name", f"the record of a caller is damaged: {error!r}")
                continue
            self._last = max(self._last, number)
            self._numbers[caller] = number
            self._callers[number] = caller


def _key(number: int) -> bytes:
    return MetaName.FEED_CALLER + ORDINAL_KEY.pack(number)


def _decoded(record: dict[str, Any]) -> FeedCaller:
    return FeedCaller(*(str(record[name]) for name in FeedCaller._fields))

"""Answers of requests with an Idempotency-Key: a repeated request gets the first answer, and does nothing."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from msmq_fast.admin.api.errors import Refusal, bad_request

__all__ = ["Repeats"]

MOST: Final = 1000  # answers that are kept; then the oldest is forgotten
MOST_BYTES: Final = 16 << 20  # of all kept answers
_LIFETIME: Final = 86_400.0  # seconds
_LONGEST: Final = 128  # characters of a key


@dataclass(frozen=True, slots=True)
class _Kept:
    began: float
    request: bytes  # a digest: the request itself may have megabytes
    answer: bytes | None = None  # JSON; None while the first request runs

    @property
    def size(self) -> int:
        return len(self.answer or b"")


class Repeats:
    """Keeps answers by caller and key, for a day: `MOST` answers with `MOST_BYTES` at most."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._bytes = 0

    async def run(self, caller: str, key: str, request: Any, perform: Callable[[], Awaitable[Any]]) -> Any:
        """Return the kept answer, or else that of `perform`, which is kept unless it raises. `request` and
        the answer consist of JSON values; `request` must equal that of the first request. Raises Refusal:
        IN_PROGRESS, KEY_REUSED, BAD_REQUEST.
        """
        if not 0 < len(key) <= _LONGEST:
            raise bad_request(f"an Idempotency-Key must have 1 to {_LONGEST} characters")
        place = (caller, key)
        digest = hashlib.blake2b(json.dumps(request, sort_keys=True).encode(), digest_size=16).digest()
        self._forget_old()
        known = self._kept.get(place)
        if known is not None:
            if known.request != digest:
                raise Refusal("KEY_REUSED", "this Idempotency-Key was used for another request")
            if known.answer is None:
                raise Refusal("IN_PROGRESS", "the first request with this Idempotency-Key is still running")
            return json.loads(known.answer)
        kept = self._kept[place] = _Kept(self._monotonic(), digest)
        try:
            answer = await perform()
        except BaseException:
            del self._kept[place]
            raise
        done = self._kept[place] = replace(kept, answer=json.dumps(answer).encode())
        self._bytes += done.size
        return answer

    def _forget_old(self) -> None:
        ends = self._monotonic() - _LIFETIME
        # A request under way is not forgotten: there are few, and each ends within a minute.
        for place, oldest in [(place, kept) for place, kept in self._kept.items() if kept.answer is not None]:
            if oldest.began >= ends and len(self._kept) < MOST and self._bytes <= MOST_BYTES:
                return
            del self._kept[place]
            self._bytes -= oldest.size

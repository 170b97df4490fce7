"""Answers of requests with an Idempotency-Key: a repeated request gets the first answer, and does nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msmq_fast.admin.api.errors import Refusal, bad_request

__all__ = ["Repeats"]

MOST: Final = 1000  # answers that are kept; then the oldest is forgotten
_LIFETIME: Final = 86_400.0  # seconds
_LONGEST: Final = 128  # characters of a key
_RUNNING: Final = object()


class Repeats:
    """Keeps answers by caller and key, for a day, 1,000 at most."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._kept: OrderedDict[tuple[str, str], tuple[float, Any, Any]] = OrderedDict()

    async def run(self, caller: str, key: str, request: Any, perform: Callable[[], Awaitable[Any]]) -> Any:
        """Return the kept answer, or else that of `perform`, which is kept unless it raises. `request` must
        equal that of the first request. Raises Refusal: IN_PROGRESS, KEY_REUSED, BAD_REQUEST.
        """
        if not 0 < len(key) <= _LONGEST:
            raise bad_request(f"an Idempotency-Key must have 1 to {_LONGEST} characters")
        now, place = self._monotonic(), (caller, key)
        while self._kept and next(iter(self._kept.values()))[0] < now - _LIFETIME:
            self._kept.popitem(last=False)
        known = self._kept.get(place)
        if known is not None:
            _, first, answer = known
            if first != request:
                raise Refusal("KEY_REUSED", "this Idempotency-Key was used for another request")
            if answer is _RUNNING:
                raise Refusal("IN_PROGRESS", "the first request with this Idempotency-Key is still running")
            return answer
        self._kept[place] = (now, request, _RUNNING)
        if len(self._kept) > MOST:
            self._kept.popitem(last=False)
        try:
            answer = await perform()
        except BaseException:
            self._kept.pop(place, None)
            raise
        self._kept[place] = (now, request, answer)
        return answer

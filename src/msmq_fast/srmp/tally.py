"""What became of messages that came by SRMP, for metrics and logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msmq_fast.srmp.classify import Kind
from msmq_fast.srmp.reasons import Reason
from msmq_fast.store.completion import Completion

__all__ = ["Tally"]


class Tally:
    """`on_refusal(reason, description)` hears of every message that was not taken, duplicates excepted."""

    __slots__ = ("forwarded", "not_taken", "on_refusal", "receipts", "stored")

    def __init__(self, on_refusal: Callable[[Reason, str], None] | None = None) -> None:
        self.on_refusal = on_refusal
        self.stored = 0
        self.forwarded = 0
        self.receipts: Counter[Kind] = Counter()
        """Receipts that came."""
        self.not_taken: Counter[Reason] = Counter()

    def count(self, reason: Reason, description: str) -> None:
        """A message was not taken; `description` is for people."""
        self.not_taken[reason] += 1
        if self.on_refusal is not None and reason is not Reason.DUPLICATE:
            self.on_refusal(reason, description)

    def refuse(self, reason: Reason, description: str) -> Completion[int]:
        """The same; the answer."""
        self.count(reason, description)
        return Completion.of(int(reason.status))

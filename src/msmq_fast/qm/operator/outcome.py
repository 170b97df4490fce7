"""The outcome of one batch of an operator's operation on messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from msmq_fast.protocol.errors import MSMQError

__all__ = ["Outcome"]


@dataclass(slots=True)
class Outcome:
    """The outcome of one batch: how many messages were moved, copied, sent or removed, and which were
    refused.

    The next batch begins after the arrival sequence `next`; if `finished` is True, there is none. `refused`
    has for each reason, by code and detail of the error, the lookup ids of the messages that stay.
    """

    next: int
    finished: bool
    count: int = 0
    size: int = 0  # bytes of their packets
    refused: dict[tuple[int, str], list[int]] = field(default_factory=dict)

    def refuse(self, error: MSMQError, lookup_id: int) -> None:
        """Note a message that stays in its queue, with the reason."""
        self.refused.setdefault((error.code, error.detail), []).append(lookup_id)

    @property
    def refusals(self) -> dict[str, int]:
        """The number of messages that stay, by the text of the reason."""
        return {
            str(MSMQError(detail, code=code)): len(lookup_ids)
            for (code, detail), lookup_ids in self.refused.items()
        }

"""What the client raises: the classes of the server, and two of its own."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.protocol.errors import MSMQError, ServiceNotAvailable, error


class ConnectionLost(ServiceNotAvailable, ConnectionError):
    """The connection to the queue manager ended; every pending call raises this one error."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One message of a batch that was not taken; `index` is its place in the batch."""

    index: int
    error: MSMQError


class BatchRefused(MSMQError):
    """Some messages of a batch were refused; the others are kept. The code is that of the first refusal."""

    def __init__(self, taken: int, refusals: list[Refusal]) -> None:
        first = refusals[0].error
        text = f"{len(refusals)} of {taken + len(refusals)} messages refused, the first because: {first}"
        super().__init__(text, code=first.code)
        self.taken = taken
        self.refusals = refusals


def from_wire(code: int, detail: str) -> MSMQError:
    """The exception for what an ERROR frame says."""
    return error(code, detail)

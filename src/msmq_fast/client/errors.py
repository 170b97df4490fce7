"""Exceptions of the client: the classes of the errors that the server reports, and classes of errors that the
client detects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msmq_fast.protocol.errors import BufferTooSmall, MSMQError, ServiceNotAvailable, error
from msmq_fast.protocol.text import counted

if TYPE_CHECKING:
    from msmq_fast.client.message import Message


class ConnectionLost(ServiceNotAvailable, ConnectionError):
    """The connection to the queue manager ended; every pending call raises this same error."""


class SendInDoubt(ConnectionLost):
    """The connection ended before the queue manager confirmed or refused `messages`: each of them is either
    stored or lost.

    The queue manager has answered for the other messages of the same call or sender: `taken` of them are
    stored.
    """

    def __init__(self, messages: Sequence[Message], taken: int, reason: str) -> None:
        what = counted(len(messages), "message is", "messages are")
        super().__init__(f"{what} in doubt, kept or not: {reason}")
        self.messages = list(messages)
        self.taken = taken


class CommitInDoubt(ConnectionLost):
    """The connection ended before the answer to a commit: the transaction was either committed or aborted as
    a whole.

    `identifier` is the GUID of the transaction. If the transaction is prepared, commit or abort it with
    `connection.admin.transactions`.
    """

    def __init__(self, identifier: str, reason: str) -> None:
        super().__init__(f"the commit of transaction {identifier} is in doubt: {reason}")
        self.identifier = identifier


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error of one message of a batch that the server refused; `index` is its position in the batch."""

    index: int
    error: MSMQError


class BatchRefused(MSMQError):
    """The server refused some messages of a batch and stored the others. `code` is the HRESULT of the first
    refusal.
    """

    def __init__(self, taken: int, refusals: list[Refusal]) -> None:
        first = refusals[0].error
        every = counted(taken + len(refusals), "message")
        text = f"{len(refusals)} of {every} refused, the first because: {first}"
        super().__init__(text, code=first.code)
        self.taken = taken
        self.refusals = refusals


def from_wire(code: int, detail: str, needed: Sequence[int] | None = None, *_: object) -> MSMQError:
    """Return the exception for the contents of an ERROR frame; positions of later versions are ignored."""
    if needed is not None:
        return BufferTooSmall(detail, code=code, needed=needed)
    return error(code, detail)

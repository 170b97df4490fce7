"""SEND frames for several queues: each queue gets a copy of each message."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msmq_fast._native.applane import LaneTarget
from msmq_fast.app.building import MessageBuilder
from msmq_fast.app.sending import SendResult, SendTarget
from msmq_fast.packet.base import NULL_GUID
from msmq_fast.packet.fields import sent_field
from msmq_fast.packet.message import Message
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.identity.signing import Signing
from msmq_fast.qm.transactions.multiple import MultipleQueue
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.transactions.transaction import Transaction
    from msmq_fast.security.token import Token

__all__ = ["FanOut", "open_sending"]

T = TypeVar("T")


def open_sending(
    manager: QueueManager, name: str, share: Share, token: Token | None, signing: Signing | None
) -> SendTarget | FanOut:
    """Open one queue, or several, for sending. Raises MSMQError if a queue cannot be opened."""
    opened = manager.open_destinations(name, Access.SEND, share, token=token)
    if isinstance(opened, MultipleQueue):
        return FanOut(manager, opened, token, signing)
    return SendTarget(manager, opened, token, signing)


class FanOut:
    """Several queues that are open for sending as one. SendTarget is the same for a single queue.

    The SENT frame holds, for each message, only the ordinal of its first copy. If each copy has a message id
    of its own, the other copies have the next higher ordinals, in the order of the queue names.
    """

    def __init__(
        self,
        manager: QueueManager,
        opened: MultipleQueue,
        token: Token | None = None,
        signing: Signing | None = None,
    ) -> None:
        self._opened = opened
        self._builder = MessageBuilder(manager, NULL_GUID, sent_field(opened.names[0]), token, signing)

    def lane(self) -> LaneTarget | None:
        """Return None: several queues cannot use the fast path of SEND frames."""
        return None

    def close(self) -> None:
        """Close all queues; messages that were sent before still get their reply."""
        self._opened.close()

    def send(
        self,
        payload: memoryview,
        count: int,
        done: Callable[[SendResult], None],
        *,
        transaction: Transaction | None = None,
        single: bool = False,
    ) -> None:
        """Send a copy of each message of a SEND payload to every queue; the arguments are those of
        SendTarget.send. If one queue refuses its copy, the client gets the error of that queue for the
        message; in a transaction, or with `single`, no queue then gets a copy.
        """
        built = self._builder.packets(payload, count)
        dead_letters = iter(self._builder.dead_letters(built) or [0] * count)
        outcome = _Outcome(count, done)
        for index, item in enumerate(built):
            try:
                if isinstance(item, int):
                    raise self._builder.refusal(item)
                message, dead_letter = Message.from_packet(item), next(dead_letters)
                finish = partial(self._builder.prepared, index)
                if transaction is not None:
                    ordinals = self._opened.send_in(transaction, message, dead_letter, finish)
                    outcome.sent(index, ordinals[0])
                elif single:
                    alone = self._opened.send_alone(message, dead_letter, finish)
                    outcome.wait(index, alone, lambda ids: ids[0])
                else:
                    sending = self._opened.send(message, dead_letter, finish)
                    outcome.wait(index, sending, lambda copies: copies[0].message_id)
            except MSMQError as error:
                outcome.refused(index, error)


class _Outcome:
    """The outcomes of the messages of one SEND frame; `done` is called when all outcomes are known."""

    def __init__(self, count: int, done: Callable[[SendResult], None]) -> None:
        self._left = count
        self._done = done
        self._ordinals = [0] * count
        self._refusals: dict[int, MSMQError] = {}

    def sent(self, index: int, ordinal: int) -> None:
        """Record that every queue has its copy of message `index`."""
        self._ordinals[index] = ordinal
        self._end()

    def refused(self, index: int, error: MSMQError) -> None:
        """Record that a queue refused its copy of message `index`."""
        self._refusals[index] = error
        self._end()

    def wait(self, index: int, sending: Completion[T], ordinal: Callable[[T], int]) -> None:
        """Record the outcome of message `index` in one queue when `sending` is done; `ordinal` returns the
        ordinal of the message from the result of `sending`.
        """

        def ended(sending: Completion[T]) -> None:
            failure = sending.exception()
            if failure is None:
                self.sent(index, ordinal(sending.result()))
            else:
                self.refused(index, failure if isinstance(failure, MSMQError) else MSMQError())

        sending.add_done_callback(ended)

    def _end(self) -> None:
        self._left -= 1
        if not self._left:
            self._done(SendResult(self._ordinals, self._refusals))

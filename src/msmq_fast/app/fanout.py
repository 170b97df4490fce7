"""SEND frames for several queues: a copy of each message for each of them."""

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
    """Open a queue, or several, for sending. Raises what they are refused with."""
    opened = manager.open_destinations(name, Access.SEND, share, token=token)
    if isinstance(opened, MultipleQueue):
        return FanOut(manager, opened, token, signing)
    return SendTarget(manager, opened, token, signing)


class FanOut:
    """Several queues that are open for sending as one; the counterpart of SendTarget.

    The ordinal that is answered for a message is that of its first copy; the others follow it, in the
    order of the names, where copies have identifiers of their own.
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
        """A name of several queues has no plain path."""
        return None

    def close(self) -> None:
        """Close all queues; what was sent is answered all the same."""
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
        """As SendTarget.send. A message of which a queue takes no copy is refused with what that queue says;
        in a transaction, and alone in one, no queue has a copy then.
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
    """The outcomes of the messages of a frame; `done` is called when that of the last is known."""

    def __init__(self, count: int, done: Callable[[SendResult], None]) -> None:
        self._left = count
        self._done = done
        self._ordinals = [0] * count
        self._refusals: dict[int, MSMQError] = {}

    def sent(self, index: int, ordinal: int) -> None:
        """A message has all its copies."""
        self._ordinals[index] = ordinal
        self._end()

    def refused(self, index: int, error: MSMQError) -> None:
        """A message lacks a copy."""
        self._refusals[index] = error
        self._end()

    def wait(self, index: int, sending: Completion[T], ordinal: Callable[[T], int]) -> None:
        """A message is on its way."""

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

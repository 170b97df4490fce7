"""Subscriptions: deliver messages to the client as fast as its credit and its reading allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msmq_fast._native.appencode import Encoder
from msmq_fast.app.connection import Connection
from msmq_fast.app.read_budget import ReadAhead
from msmq_fast.protocol.errors import InvalidParameter, MSMQError
from msmq_fast.protocol.frames import DELIVERY_TARGET, Frame
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast._native.appencode import Stored
    from msmq_fast.qm.reading.readers import Subscription
    from msmq_fast.qm.reading.remote import RemoteQueue, RemoteSubscription
    from msmq_fast.qm.transactions.transacted import TransactedQueue


class ClientDelivery:
    """One subscription of one connection.

    The client's credit is passed on to the queue in portions, so that the messages under way are bounded in
    bytes too.
    """

    def __init__(
        self,
        connection: Connection,
        number: int,
        opened: OpenQueue | RemoteQueue,
        handle: int,
        credit: int,
        *,
        acknowledge: bool,
        inside: TransactedQueue | None = None,
        ended: Callable[[], object] = bool,
    ) -> None:
        """`inside`: the queue as seen by the transaction in which the messages are received; None without a
        transaction. `ended` is called once, before the ENDED frame is written.
        """
        self.number = number
        self.handle = handle
        self._connection = connection
        self._opened = opened
        self._acknowledge = acknowledge
        self._inside = inside
        self._encoder = Encoder()
        self._credit = credit  # given by the client, not passed on yet
        self._granted = 0  # passed on, not delivered yet
        self._read_ahead = ReadAhead()
        self._next_tag = 1
        self._tags: dict[int, int] = {}  # tag -> lookup id of messages that are not acknowledged
        self._subscription: Subscription | RemoteSubscription | None = None
        self._leave: Callable[[], object] = bool
        self._ended = ended
        self._closed = False

    def open(self) -> None:
        """Register as a reader of the queue; `resume` starts the delivery.

        Raises MSMQError if the queue refuses the reader.
        """
        opened = self._opened
        if isinstance(opened, OpenQueue):
            if self._inside is not None:
                own = self._inside.subscribe(self._deliver, 0, on_end=self.end)
            else:
                own = opened.subscribe(self._deliver, 0, acknowledge=self._acknowledge, on_end=self.end)
            self._subscription = own
            self._leave = lambda: opened.unsubscribe(own)
        else:
            self._subscription = opened.subscribe(
                self._deliver, 0, acknowledge=self._acknowledge, on_end=self.end
            )
            self._leave = self._subscription.close

    def add_credit(self, count: int) -> None:
        """Add credit for `count` more messages. Raises InvalidParameter if the credit and the unacknowledged
        messages together would exceed the limit `max_credit`.
        """
        if (
            self._credit + self._granted + len(self._tags) + count
            > self._connection.service.limits.max_credit
        ):
            raise InvalidParameter("the credit of the subscription exceeds the limit max_credit")
        self._credit += count
        self.resume()

    def resume(self) -> None:
        """Pass the client's credit on to the queue, as much of it as the connection has room for."""
        if self._closed or self._subscription is None or not self._credit or self._connection.congested:
            return
        ahead = self._read_ahead.ahead
        # Small refills cost a pass through the queue each, so they wait until half is used up.
        if self._granted * 2 > ahead:
            return
        count = min(self._credit, ahead - self._granted)
        self._credit -= count
        self._granted += count
        self._subscription.grant(count)

    def acknowledge(self, first: int, last: int) -> Completion[int]:
        """Remove the messages with the tags `first` to `last`. Raises InvalidParameter if one of them was not
        delivered, or is already acknowledged or released.
        """
        return self._outstanding().ack(self._take(first, last))

    def release(self, first: int, last: int) -> None:
        """Put back the messages with the tags `first` to `last`. Raises InvalidParameter if one of them was
        not delivered, or is already acknowledged or released.
        """
        self._outstanding().release(self._take(first, last))

    def end(self, error: MSMQError | None = None) -> None:
        """Stop the delivery, put back messages that are not acknowledged, and write an ENDED frame."""
        if self._closed:
            return
        self.close()
        self._ended()
        if error is None:
            self._connection.reply(Frame.ENDED, self.number, [0, "MQ_OK", ""])
        else:
            self._connection.reply(Frame.ENDED, self.number, [error.code, error.name, error.detail])

    def close(self) -> None:
        """Stop the delivery and put back messages that are not acknowledged, without an ENDED frame."""
        self._closed = True
        self._tags.clear()
        self._leave()

    def _outstanding(self) -> Subscription | RemoteSubscription:
        if self._subscription is None or not self._acknowledge:
            raise InvalidParameter("a subscription without acknowledgment cannot acknowledge or release")
        return self._subscription

    def _take(self, first: int, last: int) -> list[int]:
        tags = self._tags
        # Compared by numbers first, so that a huge range costs nothing.
        if not 0 < first <= last < self._next_tag or last - first >= len(tags):
            raise InvalidParameter(f"the tags {first} to {last} are not those of unacknowledged messages")
        try:
            keys = [tags[tag] for tag in range(first, last + 1)]
        except KeyError as missing:
            raise InvalidParameter(f"the tag {missing} is not that of an unacknowledged message") from None
        for tag in range(first, last + 1):
            del tags[tag]
        return keys

    def _deliver(self, messages: Sequence[Stored]) -> None:
        first = self._next_tag
        count = len(messages)
        self._next_tag += count
        self._granted -= count
        if self._acknowledge:
            self._tags.update(zip(range(first, first + count), [m.lookup_id for m in messages], strict=True))
        buffers = self._encoder.delivery(self.number, first, messages, DELIVERY_TARGET)
        self._read_ahead.observe(sum(map(len, buffers)), count)
        self._connection.service.counters.delivered += count
        self._connection.write(buffers)
        self.resume()

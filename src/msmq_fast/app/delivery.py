"""Subscriptions: messages to the client as fast as its credit and its reading allow."""

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

    The client's credit is passed on to the queue in portions, so that what is under way is bounded in bytes
    too.
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
        """`inside`: the queue in the transaction that receives what is delivered. `ended` is called
        once, before the client is told of the end.
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
        self._tags: dict[int, int] = {}  # tag -> lookup id of what is not acknowledged
        self._subscription: Subscription | RemoteSubscription | None = None
        self._leave: Callable[[], object] = bool
        self._ended = ended
        self._closed = False

    def open(self) -> None:
        """Enter the queue's readers; `resume` begins to deliver.

        Raises what the queue refuses a reader with.
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
        """The client takes `count` more messages. Raises InvalidParameter above the limit."""
        if (
            self._credit + self._granted + len(self._tags) + count
            > self._connection.service.limits.max_credit
        ):
            raise InvalidParameter("the credit exceeds max_credit")
        self._credit += count
        self.resume()

    def resume(self) -> None:
        """Pass on credit as far as the connection has room."""
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
        """Remove the messages of these tags. Raises InvalidParameter if one is not outstanding."""
        return self._outstanding().ack(self._take(first, last))

    def release(self, first: int, last: int) -> None:
        """Put the messages of these tags back. Raises InvalidParameter if one is not outstanding."""
        self._outstanding().release(self._take(first, last))

    def end(self, error: MSMQError | None = None) -> None:
        """Stops deliveries, requeues unacknowledged messages, and tells the client."""
        if self._closed:
            return
        self.close()
        self._ended()
        if error is None:
            self._connection.reply(Frame.ENDED, self.number, [0, "MQ_OK", ""])
        else:
            self._connection.reply(Frame.ENDED, self.number, [error.code, error.name, error.detail])

    def close(self) -> None:
        """As `end`, without a word."""
        self._closed = True
        self._tags.clear()
        self._leave()

    def _outstanding(self) -> Subscription | RemoteSubscription:
        if self._subscription is None or not self._acknowledge:
            raise InvalidParameter("this subscription does not take acknowledgments")
        return self._subscription

    def _take(self, first: int, last: int) -> list[int]:
        tags = self._tags
        # Compared by numbers first, so that a huge range costs nothing.
        if not 0 < first <= last < self._next_tag or last - first >= len(tags):
            raise InvalidParameter(f"the tags {first} to {last} are not outstanding")
        try:
            keys = [tags[tag] for tag in range(first, last + 1)]
        except KeyError as missing:
            raise InvalidParameter(f"the tag {missing} is not outstanding") from None
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

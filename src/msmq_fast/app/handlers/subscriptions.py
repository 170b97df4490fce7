"""Requests that start, control and end a subscription."""

from __future__ import annotations

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.delivery import ClientDelivery
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.protocol.frames import Frame

_U64 = 0xFFFF_FFFF_FFFF_FFFF
_SUBSCRIPTION = Field("subscription", int)
_FIRST = Field("first tag", int, maximum=_U64)
_LAST = Field("last tag", int, maximum=_U64)
_SUBSCRIBE = (
    Field("handle", int),
    Field("credit", int),
    Field("acknowledge", bool),
    Field("transaction", int, type(None), default=None),
)


def _subscribe(session: Session, request_id: int, payload: memoryview) -> None:
    number, credit, acknowledge, transaction = arguments(payload, *_SUBSCRIBE)
    inside = None
    if transaction is not None:
        if acknowledge:
            raise InvalidParameter(
                "a subscription in a transaction takes no acknowledgments: the commit acknowledges"
            )
        inside = session.handle(number).inside(session.transaction(transaction))
    if credit > session.service.limits.max_credit:
        raise InvalidParameter("the credit of the subscription exceeds the limit max_credit")
    opened = session.handle(number).source()
    delivery = ClientDelivery(
        session.connection,
        request_id,
        opened,
        number,
        credit,
        acknowledge=acknowledge,
        inside=inside,
        ended=lambda: session.deliveries.pop(request_id, None),
    )
    delivery.open()
    session.deliveries[request_id] = delivery
    session.reply(request_id)
    delivery.resume()


def _credit(session: Session, request_id: int, payload: memoryview) -> None:
    number, count = arguments(payload, _SUBSCRIPTION, Field("credit", int))
    session.delivery(number).add_credit(count)
    session.reply(request_id)


def _acknowledge(session: Session, request_id: int, payload: memoryview) -> None:
    number, first, last = arguments(payload, _SUBSCRIPTION, _FIRST, _LAST)
    done = session.delivery(number).acknowledge(first, last)
    if request_id:
        session.when(request_id, done)


def _release(session: Session, request_id: int, payload: memoryview) -> None:
    number, first, last = arguments(payload, _SUBSCRIPTION, _FIRST, _LAST)
    session.delivery(number).release(first, last)
    session.reply(request_id)


def _unsubscribe(session: Session, request_id: int, payload: memoryview) -> None:
    (number,) = arguments(payload, _SUBSCRIPTION)
    session.delivery(number).end()
    session.reply(request_id)


HANDLERS: dict[int, Handler] = {
    Frame.SUBSCRIBE: _subscribe,
    Frame.CREDIT: _credit,
    Frame.ACKNOWLEDGE: _acknowledge,
    Frame.RELEASE: _release,
    Frame.UNSUBSCRIBE: _unsubscribe,
}

"""Requests that receive or look at one message."""

from __future__ import annotations

from typing import Any

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.protocol.frames import INFINITE, Frame, Lookup
from msmq_fast.qm.reading.lookup import Lookup as QmLookup
from msmq_fast.store.completion import Completion

_HANDLE = Field("handle", int)
_PEEK = Field("peek", bool, default=False)
_TRANSACTION = Field("transaction", int, type(None), default=None)
_RECEIVE = (_HANDLE, Field("timeout", int, type(None)), _PEEK, _TRANSACTION)
_LOOKUP = (
    _HANDLE,
    Field("lookup id", int, maximum=0xFFFF_FFFF_FFFF_FFFF),
    Field("operation", int),
    _PEEK,
    _TRANSACTION,
)
_SEEK = {
    Lookup.CURRENT: QmLookup.CURRENT,
    Lookup.NEXT: QmLookup.NEXT,
    Lookup.PREV: QmLookup.PREVIOUS,
    Lookup.FIRST: QmLookup.FIRST,
    Lookup.LAST: QmLookup.LAST,
}


def _receive(session: Session, request_id: int, payload: memoryview) -> None:
    number, timeout, peek, transaction = arguments(payload, *_RECEIVE)
    handle = session.handle(number)
    session.may_wait()
    wait = None if timeout == INFINITE else timeout
    if transaction is not None:
        if peek:
            raise InvalidParameter(
                "a transaction cannot peek; receive the message, or peek without the transaction"
            )
        inside = handle.inside(session.transaction(transaction))
        session.read(request_id, handle, inside.receive(wait, gate=session.gate))
        return
    session.read(request_id, handle, handle.source().receive(wait, peek=peek, gate=session.gate))


def _lookup(session: Session, request_id: int, payload: memoryview) -> None:
    number, lookup_id, operation, peek, transaction = arguments(payload, *_LOOKUP)
    seek = _SEEK.get(operation)
    if seek is None:
        raise InvalidParameter("operation is 0, 1, 2, 4 or 8")
    handle = session.handle(number)
    done: Completion[Any]
    if transaction is not None:
        done = handle.inside(session.transaction(transaction)).lookup(lookup_id, seek, peek=peek)
    else:
        done = handle.source().lookup(lookup_id, seek, peek=peek)

    def ended(completion: Completion[Any]) -> None:
        session.message(request_id, completion)
        session.gate.leave(0 if completion.exception() is not None else len(completion.result().packet))

    session.pending.add(request_id)
    session.gate.begin()
    done.add_done_callback(ended)


def _cancel(session: Session, request_id: int, payload: memoryview) -> None:
    (target,) = arguments(payload, Field("request id", int))
    handle = session.reads.get(target)
    session.reply(request_id, handle.reads[target].cancel() if handle is not None else False)


HANDLERS: dict[int, Handler] = {Frame.RECEIVE: _receive, Frame.LOOKUP: _lookup, Frame.CANCEL: _cancel}

"""Requests that receive or peek one message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.session import Handle, Handler, Session
from msmq_fast.app.sizelimits import LimitedRead, checked, limits_of
from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.protocol.frames import INFINITE, Frame, Lookup, MessageSizes
from msmq_fast.qm.reading.lookup import Lookup as QmLookup
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast._native.queuebase import Received
    from msmq_fast.qm.transactions.transaction import Transaction

_HANDLE = Field("handle", int)
_PEEK = Field("peek", bool, default=False)
_TRANSACTION = Field("transaction", int, type(None), default=None)
_LIMITS = Field("limits", list, type(None), default=None)
_RECEIVE = (_HANDLE, Field("timeout", int, type(None)), _PEEK, _TRANSACTION, _LIMITS)
_LOOKUP = (
    _HANDLE,
    Field("lookup id", int, maximum=0xFFFF_FFFF_FFFF_FFFF),
    Field("operation", int),
    _PEEK,
    _TRANSACTION,
    _LIMITS,
)
_SEEK = {
    Lookup.CURRENT: QmLookup.CURRENT,
    Lookup.NEXT: QmLookup.NEXT,
    Lookup.PREV: QmLookup.PREVIOUS,
    Lookup.FIRST: QmLookup.FIRST,
    Lookup.LAST: QmLookup.LAST,
}


def _receive(session: Session, request_id: int, payload: memoryview) -> None:
    number, timeout, peek, transaction, given = arguments(payload, *_RECEIVE)
    limits = limits_of(given)
    handle = session.handle(number)
    session.may_wait()
    wait = None if timeout == INFINITE else timeout
    if transaction is not None and peek:
        raise InvalidParameter(
            "a transaction cannot peek; receive the message, or peek without the transaction"
        )
    if limits is not None:
        session.read(request_id, handle, _limited(session, handle, wait, peek, transaction, limits))
    elif transaction is not None:
        inside = handle.inside(session.transaction(transaction))
        session.read(request_id, handle, inside.receive(wait, gate=session.gate))
    else:
        session.read(request_id, handle, handle.source().receive(wait, peek=peek, gate=session.gate))


def _limited(
    session: Session,
    handle: Handle,
    wait: int | None,
    peek: bool,
    transaction: int | None,
    limits: MessageSizes,
) -> LimitedRead:
    opened, owner = handle.reader(), None
    if transaction is not None:
        owner = session.transaction(transaction)
        request = handle.inside(owner).receive(wait, gate=session.gate)
    elif peek:
        request = opened.receive(wait, peek=True, gate=session.gate)
    else:
        request = opened.begin(wait, gate=session.gate)
    done = checked(request.completion, limits, opened, peek=peek, transaction=owner)
    return LimitedRead(request, done)


def _lookup(session: Session, request_id: int, payload: memoryview) -> None:
    number, lookup_id, operation, peek, transaction, given = arguments(payload, *_LOOKUP)
    limits = limits_of(given)
    seek = _SEEK.get(operation)
    if seek is None:
        raise InvalidParameter("operation must be 0, 1, 2, 4 or 8")
    handle = session.handle(number)
    owner = None if transaction is None else session.transaction(transaction)
    done: Completion[Any]
    if limits is not None:
        done = _limited_lookup(handle, lookup_id, seek, peek, owner, limits)
    elif owner is not None:
        done = handle.inside(owner).lookup(lookup_id, seek, peek=peek)
    else:
        done = handle.source().lookup(lookup_id, seek, peek=peek)

    def ended(completion: Completion[Any]) -> None:
        session.message(request_id, completion)
        session.gate.leave(0 if completion.exception() is not None else len(completion.result().packet))

    session.pending.add(request_id)
    session.gate.begin()
    done.add_done_callback(ended)


def _limited_lookup(
    handle: Handle,
    lookup_id: int,
    seek: QmLookup,
    peek: bool,
    owner: Transaction | None,
    limits: MessageSizes,
) -> Completion[Received]:
    opened = handle.reader()
    if owner is not None:
        done = handle.inside(owner).lookup(lookup_id, seek, peek=peek)
    else:
        done = opened.lookup(lookup_id, seek, peek=peek, hold=None if peek else opened.two_phase.begin())
    return checked(done, limits, opened, peek=peek, transaction=owner)


def _cancel(session: Session, request_id: int, payload: memoryview) -> None:
    (target,) = arguments(payload, Field("request id", int))
    handle = session.reads.get(target)
    session.reply(request_id, handle.reads[target].cancel() if handle is not None else False)


HANDLERS: dict[int, Handler] = {Frame.RECEIVE: _receive, Frame.LOOKUP: _lookup, Frame.CANCEL: _cancel}

"""Requests about cursors and moves (section 5 of the protocol)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.session import Handle, Handler, Session
from msmq_fast.app.sizelimits import LimitedRead, checked, limits_of
from msmq_fast.protocol.errors import InsufficientResources, InvalidHandle, InvalidParameter
from msmq_fast.protocol.frames import INFINITE, CursorRead, Frame, MessageSizes
from msmq_fast.qm.reading.cursor import Cursor

if TYPE_CHECKING:
    from msmq_fast.qm.reading.readers import ReadRequest
    from msmq_fast.qm.reading.remote import RemoteCursor, RemoteRead
    from msmq_fast.qm.transactions.transaction import Transaction

_HANDLE = Field("handle", int)
_CURSOR = Field("cursor", int)
_OPEN = (
    _HANDLE,
    Field("lookup id", int, maximum=0xFFFF_FFFF_FFFF_FFFF, default=0),
    Field("current", bool, default=False),
)
_TRANSACTION = Field("transaction", int, type(None), default=None)
_READ = (
    _CURSOR,
    Field("timeout", int, type(None)),
    Field("action", int, maximum=2),
    _TRANSACTION,
    Field("limits", list, type(None), default=None),
)
_MOVE = (
    _HANDLE,
    Field("target handle", int),
    Field("lookup id", int, maximum=0xFFFF_FFFF_FFFF_FFFF),
    _TRANSACTION,
)


def _open(session: Session, request_id: int, payload: memoryview) -> None:
    number, lookup_id, current = arguments(payload, *_OPEN)
    handle = session.handle(number)
    opened = handle.source()
    if len(opened.cursors) >= session.service.limits.max_handles:
        raise InsufficientResources("this handle has reached max_handles, the limit of open cursors")
    if lookup_id:
        cursor: Cursor | RemoteCursor = handle.reader().open_cursor(lookup_id, current=current)
    else:
        cursor = opened.open_cursor()
    session.cursors[cursor.number] = number
    session.reply(request_id, [cursor.number])


def _close(session: Session, request_id: int, payload: memoryview) -> None:
    (number,) = arguments(payload, _CURSOR)
    _, cursor = _find(session, number)
    del session.cursors[number]
    cursor.close()
    session.reply(request_id)


def _read(session: Session, request_id: int, payload: memoryview) -> None:
    number, timeout, action, transaction, given = arguments(payload, *_READ)
    limits = limits_of(given)
    handle, cursor = _find(session, number)
    session.may_wait()
    wait = None if timeout == INFINITE else timeout
    peek = action != CursorRead.RECEIVE
    if transaction is not None and peek:
        raise InvalidParameter(
            "a transaction cannot peek; receive the message, or peek without the transaction"
        )
    owner = None if transaction is None else session.transaction(transaction)
    if limits is not None:
        session.read(request_id, handle, _limited(session, handle, cursor, wait, action, owner, limits))
    elif owner is not None:
        session.read(request_id, handle, _receive_inside(session, handle, cursor, wait, owner))
    elif peek:
        session.read(request_id, handle, _peek(session, cursor, wait, action))
    else:
        session.read(request_id, handle, cursor.receive(wait, gate=session.gate))


def _peek(
    session: Session, cursor: Cursor | RemoteCursor, wait: int | None, action: int
) -> ReadRequest | RemoteRead:
    if action == CursorRead.PEEK:
        return cursor.peek(wait, gate=session.gate)
    return cursor.peek_next(wait, gate=session.gate)


def _limited(
    session: Session,
    handle: Handle,
    cursor: Cursor | RemoteCursor,
    wait: int | None,
    action: int,
    owner: Transaction | None,
    limits: MessageSizes,
) -> LimitedRead:
    """Begin a read with size limits. If the message does not fit, a receive leaves the cursor where it was; a
    peek has moved it to the message.
    """
    opened = handle.reader()
    assert isinstance(cursor, Cursor)  # noqa: S101 - of a queue of this computer, as `opened` is
    place = cursor.place
    if action == CursorRead.PEEK:
        request = cursor.peek(wait, gate=session.gate)
    elif action == CursorRead.PEEK_NEXT:
        request = cursor.peek_next(wait, gate=session.gate)
    elif owner is not None:
        request = _receive_inside(session, handle, cursor, wait, owner)
    else:
        request = opened.begin(wait, gate=session.gate, cursor=cursor)
    done = checked(
        request.completion,
        limits,
        opened,
        peek=action != CursorRead.RECEIVE,
        transaction=owner,
        back=lambda: cursor.put_back(place),
    )
    return LimitedRead(request, done)


def _receive_inside(
    session: Session, handle: Handle, cursor: Cursor | RemoteCursor, wait: int | None, owner: Transaction
) -> ReadRequest:
    inside = handle.inside(owner)
    assert isinstance(cursor, Cursor)  # noqa: S101 - of a queue of this computer, as `inside` is
    return inside.receive(wait, gate=session.gate, cursor=cursor)


def _find(session: Session, number: int) -> tuple[Handle, Cursor | RemoteCursor]:
    owner = session.cursors.get(number)
    if owner is None:
        raise InvalidHandle(f"there is no cursor {number}")
    handle = session.handle(owner)
    cursors: Mapping[int, Cursor | RemoteCursor] = handle.source().cursors
    cursor = cursors.get(number)
    if cursor is None:
        raise InvalidHandle(f"there is no cursor {number}")
    return handle, cursor


def _move(session: Session, request_id: int, payload: memoryview) -> None:
    number, target, lookup_id, transaction = arguments(payload, *_MOVE)
    moving = session.handle(target).moving
    if moving is None:
        raise InvalidParameter("the target queue is not open with MOVE access")
    source = session.handle(number).reader()
    if transaction is None:
        session.when(request_id, source.move(lookup_id, moving))
        return
    session.handle(number).inside(session.transaction(transaction)).move(lookup_id, moving)
    session.reply(request_id)


HANDLERS: dict[int, Handler] = {
    Frame.CURSOR_OPEN: _open,
    Frame.CURSOR_CLOSE: _close,
    Frame.CURSOR_READ: _read,
    Frame.MOVE: _move,
}

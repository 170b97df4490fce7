"""Requests that open, close and purge a queue."""

from __future__ import annotations

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.fanout import open_sending
from msmq_fast.app.handlers.administration import check_queue
from msmq_fast.app.session import Handle, Handler, Session
from msmq_fast.app.versions import EXPECTED
from msmq_fast.protocol.errors import (
    InsufficientResources,
    MSMQError,
    RemoteMachineNotAvailable,
    UnsupportedAccessMode,
    UnsupportedOperation,
)
from msmq_fast.protocol.frames import Access, Frame
from msmq_fast.qm import access as qm_access
from msmq_fast.qm.reading.remote import RemoteQueue
from msmq_fast.store.completion import Completion

_HANDLE = Field("handle", int)
_OPEN = (Field("name", str), Field("access", int), Field("share", int, maximum=1, default=0))

_READER = {
    Access.RECEIVE: qm_access.Access.RECEIVE,
    Access.RECEIVE | Access.PEEK: qm_access.Access.RECEIVE,
    Access.PEEK: qm_access.Access.PEEK,
}


def _open(session: Session, request_id: int, payload: memoryview) -> None:
    name, access, share = arguments(payload, *_OPEN)
    manager, token = session.manager, session.token
    if len(session.handles) + session.opening >= session.service.limits.max_handles:
        raise InsufficientResources("this connection has reached max_handles, the limit of open queues")
    reading = _READER.get(access & ~(Access.SEND | Access.MOVE))
    if access & ~(Access.RECEIVE | Access.SEND | Access.MOVE | Access.PEEK) or not access:
        raise UnsupportedAccessMode("access must be a sum of 1 (receive), 2 (send), 4 (move) and 0x20 (peek)")
    elsewhere = manager.elsewhere(name) if reading is not None else None
    remote = manager.remote if elsewhere is not None else None
    handle = Handle(name=name)
    try:
        if access & Access.SEND:
            alone = qm_access.Share(share) if reading is None else qm_access.Share.DENY_NONE
            handle.sending = open_sending(manager, name, alone, token, session.service.signing)
        if access & Access.MOVE:
            alone = qm_access.Share(share) if access == Access.MOVE else qm_access.Share.DENY_NONE
            handle.moving = manager.open(name, qm_access.Access.MOVE, alone, token=token)
        if remote is not None and reading is not None and elsewhere is not None:
            done = remote.open(elsewhere, reading, qm_access.Share(share), token)
            session.pending.add(request_id)
            session.opening += 1
            done.add_done_callback(lambda opened: _opened_remote(session, request_id, handle, opened))
            return
        if reading is not None:
            handle.reading = manager.open(name, reading, qm_access.Share(share), token=token)
    except MSMQError:
        handle.close()
        raise
    _opened(session, request_id, handle)


def _opened_remote(
    session: Session, request_id: int, handle: Handle, opened: Completion[RemoteQueue]
) -> None:
    session.opening -= 1
    session.pending.discard(request_id)
    refusal = opened.exception()
    if refusal is None:
        handle.remote = opened.result()
    if session.closed or refusal is not None:
        handle.close()
    if session.closed:
        return
    if refusal is None:
        _opened(session, request_id, handle)
    else:
        if handle.sending is not None and isinstance(refusal, RemoteMachineNotAvailable):
            refusal = RemoteMachineNotAvailable(
                f"{refusal.detail}; to send only, open the queue with the access SEND alone"
            )
        session.connection.fail(
            request_id, refusal if isinstance(refusal, MSMQError) else MSMQError(str(refusal))
        )
    session.connection.unblocked()


def _opened(session: Session, request_id: int, handle: Handle) -> None:
    session.add(handle)
    session.reply(request_id, [handle.number])


def _close(session: Session, request_id: int, payload: memoryview) -> None:
    (number,) = arguments(payload, _HANDLE)
    handle = session.handle(number)
    for delivery in [d for d in session.deliveries.values() if d.handle == number]:
        delivery.end()
    del session.handles[number]
    session.cursors = {cursor: owner for cursor, owner in session.cursors.items() if owner != number}
    session.lane.close(number)
    handle.close()
    session.reply(request_id)


def _purge(session: Session, request_id: int, payload: memoryview) -> None:
    number, expected = arguments(payload, _HANDLE, EXPECTED)
    handle = session.handle(number)
    if handle.remote is not None:
        if expected is not None:
            raise UnsupportedOperation("the version of a queue of another computer is not known")
        done = handle.remote.purge()
        session.manager.audit.recorded(done, session.token, "purge", handle.name, lambda _: "")
        session.when(request_id, done)
        return
    reader = handle.reader()
    check_queue(session, reader.queue, expected)
    session.when(request_id, reader.purge(), int)


HANDLERS: dict[int, Handler] = {Frame.OPEN: _open, Frame.CLOSE: _close, Frame.PURGE: _purge}

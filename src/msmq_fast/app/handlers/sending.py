"""SEND requests that the native fast path does not handle."""

from __future__ import annotations

from msmq_fast._native.appread import FrameFault, send_head
from msmq_fast.app.sending import SendResult
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import UnsupportedAccessMode
from msmq_fast.protocol.frames import Frame, SendFlag


def _send(session: Session, request_id: int, payload: memoryview) -> None:
    number, flags, count, transaction = send_head(payload)
    if not 0 < count <= session.service.limits.max_batch:
        raise FrameFault("a SEND frame must hold 1 to max_batch messages")
    target = session.handle(number).sending
    if target is None:
        raise UnsupportedAccessMode("the queue is not open for sending")

    def sent(result: SendResult) -> None:
        session.pending.discard(request_id)
        session.sent(request_id, flags, result)

    session.pending.add(request_id)
    try:
        target.send(
            payload,
            count,
            sent,
            transaction=session.transaction(transaction) if transaction else None,
            single=bool(flags & SendFlag.SINGLE),
        )
    except BaseException:
        session.pending.discard(request_id)
        raise


HANDLERS: dict[int, Handler] = {Frame.SEND: _send}

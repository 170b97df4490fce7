"""Finds the handler of a request.

To add a request:

1. Give it a number in frames.Frame and a section in docs/reference/application-protocol.md.
2. Write its handler in the module of app/handlers for its group, and add it to the HANDLERS of that module.
3. Add the HANDLERS of a new module to the table below.
"""

from __future__ import annotations

from msmq_fast.app.handlers import (
    accounts,
    administration,
    audit,
    certificates,
    configuration,
    cursors,
    definitions,
    directory,
    message_batches,
    permissions,
    queues,
    reading,
    sending,
    sessions,
    snapshot,
    subscriptions,
    tracing,
    transactions,
)
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.protocol.frames import Frame, WireError

__all__ = ["dispatch"]

_WITHOUT_REPLY = frozenset((Frame.CREDIT, Frame.ACKNOWLEDGE))

_HANDLERS: dict[int, Handler] = {
    **accounts.HANDLERS,
    **administration.HANDLERS,
    **audit.HANDLERS,
    **certificates.HANDLERS,
    **configuration.HANDLERS,
    **cursors.HANDLERS,
    **definitions.HANDLERS,
    **directory.HANDLERS,
    **message_batches.HANDLERS,
    **permissions.HANDLERS,
    **queues.HANDLERS,
    **reading.HANDLERS,
    **sending.HANDLERS,
    **sessions.HANDLERS,
    **snapshot.HANDLERS,
    **subscriptions.HANDLERS,
    **tracing.HANDLERS,
    **transactions.HANDLERS,
}


def dispatch(session: Session, kind: int, request_id: int, payload: memoryview) -> None:
    """Call the handler of one request.

    Raises MSMQError or FrameFault if the request fails at once, WireError if its id is invalid.
    """
    if request_id in session.pending or request_id in session.deliveries:
        raise WireError(f"request id {request_id} is in use")
    if request_id == 0 and kind not in _WITHOUT_REPLY:
        raise WireError("a request that gets a reply needs a request id from 1")
    handler = _HANDLERS.get(kind)
    if handler is None:
        raise InvalidParameter(f"0x{kind:02X} is not a type of request")
    handler(session, request_id, payload)

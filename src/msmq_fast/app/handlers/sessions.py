"""The requests that list and close the connections of the server, and that list the queues that other
computers have open (section 8.6 of the protocol).
"""

from __future__ import annotations

from typing import Final

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.service import OpenSessions
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import InvalidParameter, UnsupportedOperation
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.resources import SESSION_KINDS, SessionInfo

_MAX_PAGE: Final = 1000
_MOST: Final = (1 << 63) - 1


def _open_sessions(session: Session) -> OpenSessions:
    sessions = session.service.sessions
    if sessions is None:
        raise UnsupportedOperation("this server has no table of connections")
    return sessions


def _list(session: Session, request_id: int, payload: memoryview) -> None:
    kind, after, limit = arguments(
        payload,
        Field("kind", str, default=""),
        Field("after", int, maximum=_MOST, default=0),
        Field("limit", int, maximum=_MAX_PAGE, default=100),
    )
    session.manager.guard.read_everything(session.token, "list the sessions")
    if kind and kind not in SESSION_KINDS:
        raise InvalidParameter(f"kind must be one of {', '.join(SESSION_KINDS)}")
    if limit == 0:
        raise InvalidParameter(f"limit must be from 1 to {_MAX_PAGE}")
    session.reply(request_id, _open_sessions(session).page(kind, after, limit).as_map())


def _end(session: Session, request_id: int, payload: memoryview) -> None:
    (number,) = arguments(payload, Field("number", int, maximum=_MOST))
    session.manager.guard.administer(session.token, "close a session")
    sessions = _open_sessions(session)
    found = sessions.find(number)
    if found is None:
        raise InvalidParameter(f"no session has the number {number}: list the sessions for their numbers")
    sessions.end(number)
    session.manager.audit.act(session.token, "close session", f"session {number}", _detail(found))
    session.reply(request_id, found.as_map())


def _readers(session: Session, request_id: int, payload: memoryview) -> None:
    arguments(payload)
    session.manager.guard.read_everything(session.token, "list the remote readers")
    session.reply(request_id, [reader.as_map() for reader in session.service.readers()])


def _detail(session: SessionInfo) -> str:
    parts = (session.direction, session.kind, session.address, session.manager, session.user)
    return " ".join(part for part in parts if part)


HANDLERS: dict[int, Handler] = {
    Frame.LIST_SESSIONS: _list,
    Frame.END_SESSION: _end,
    Frame.LIST_READERS: _readers,
}

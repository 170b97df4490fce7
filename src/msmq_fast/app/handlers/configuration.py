"""The requests that show and check the configuration of the server (section 8.2 of the protocol)."""

from __future__ import annotations

from typing import Final

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.service import Configuration
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import InvalidParameter, UnsupportedOperation
from msmq_fast.protocol.frames import MAX_CONFIG, Frame

_MAX_PAGE: Final = 1000


def _configuration(session: Session) -> Configuration:
    configuration = session.service.configuration
    if configuration is None:
        raise UnsupportedOperation("this server has no configuration to show")
    return configuration


def _show(session: Session, request_id: int, payload: memoryview) -> None:
    offset, limit = arguments(
        payload,
        Field("offset", int, default=0),
        Field("limit", int, maximum=_MAX_PAGE, default=_MAX_PAGE),
    )
    session.manager.guard.read_everything(session.token, "show the configuration")
    if limit == 0:
        raise InvalidParameter(f"limit must be from 1 to {_MAX_PAGE}")
    session.reply(request_id, _configuration(session).page(offset, limit).as_map())


def _check(session: Session, request_id: int, payload: memoryview) -> None:
    (text,) = arguments(payload, Field("text", str))
    session.manager.guard.read_everything(session.token, "check a configuration")
    if len(text) > MAX_CONFIG:
        raise InvalidParameter(
            f"the text has {len(text)} characters, the limit is {MAX_CONFIG}: check the file with "
            "msmq-fast config check"
        )
    session.reply(request_id, _configuration(session).check(text).as_map())


HANDLERS: dict[int, Handler] = {Frame.SHOW_CONFIG: _show, Frame.CHECK_CONFIG: _check}

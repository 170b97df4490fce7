"""The request that lists the entries of the audit (section 8.4 of the protocol)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.resources import AuditEntry
from msmq_fast.qm.audit.ring import KINDS

_LOOK: Final = 500  # entries that one request looks at: a few milliseconds
_MOST: Final = (1 << 63) - 1
_LONGEST: Final = 300  # characters of a text in a filter
_FILTER: Final = {
    "kind": Field("kind", str),
    "caller": Field("caller", str),
    "operation": Field("operation", str),
    "object": Field("object", str),
    "since": Field("since", int, maximum=_MOST),
    "until": Field("until", int, maximum=_MOST),
}


def _matcher(given: dict[Any, Any]) -> Callable[[AuditEntry], bool]:
    for name in given:
        if name not in _FILTER:
            raise InvalidParameter(f"unknown filter field {name!r}: use {', '.join(_FILTER)}")
    wanted = {name: _FILTER[name].check(value) for name, value in given.items()}
    kind = wanted.get("kind", "")
    if kind and kind not in KINDS:
        raise InvalidParameter(f"kind must be one of {', '.join(KINDS)}")
    texts = {name: wanted.get(name, "").casefold() for name in ("caller", "operation", "object")}
    if any(len(text) > _LONGEST for text in texts.values()):
        raise InvalidParameter(f"a text of a filter may have at most {_LONGEST} characters")
    since, until = wanted.get("since", 0), wanted.get("until", _MOST)

    def matches(entry: AuditEntry) -> bool:
        return (
            (not kind or entry.kind == kind)
            and since <= entry.time <= until
            and (texts["caller"] in entry.caller.casefold() or texts["caller"] == entry.sid.casefold())
            and texts["operation"] in entry.operation.casefold()
            and texts["object"] in entry.object.casefold()
        )

    return matches


def _list(session: Session, request_id: int, payload: memoryview) -> None:
    given, newest_first, start = arguments(
        payload,
        Field("filter", dict, default={}),
        Field("newest first", bool, default=False),
        Field("from", int, maximum=_MOST, default=0),
    )
    session.manager.guard.read_everything(session.token, "list the audit")
    matches = _matcher(given)
    page = session.manager.audit.page(start, _LOOK, newest_first=newest_first)
    session.reply(
        request_id,
        {
            "next": page.following,
            "finished": page.finished,
            "entries": [entry.as_map() for entry in page.entries if matches(entry)],
        },
    )


HANDLERS: dict[int, Handler] = {Frame.LIST_AUDIT: _list}

"""Operations on the open connections of the server, and on the queues that other computers have open."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import Call, Operation, Parameter
from msmq_fast.admin.api.queues import LIMIT
from msmq_fast.admin.api.schema import array, choice, number, of, record
from msmq_fast.protocol.resources import SESSION_KINDS, ReaderInfo, SessionInfo

__all__ = ["OPERATIONS"]

_NUMBERS: Final = (1 << 63) - 1
_NUMBER: Final = Parameter("number", number("number of the session", least=1, most=_NUMBERS))
_PAGE: Final = record(
    "SessionPage",
    {
        "items": array(of(SessionInfo)),
        "total": number("sessions on all pages"),
        "next": number("the `after` of the next page; 0 if there is none", most=_NUMBERS),
    },
)


async def _list(call: Call) -> dict[str, Any]:
    page = await call.client.admin.sessions.page(
        call.query["kind"], after=call.query["after"], limit=call.query["limit"]
    )
    return {"items": [one.as_map() for one in page.sessions], "total": page.total, "next": page.next}


async def _close(call: Call) -> dict[str, Any]:
    return (await call.client.admin.sessions.close(call.path["number"])).as_map()


async def _readers(call: Call) -> list[dict[str, Any]]:
    return [one.as_map() for one in await call.client.admin.sessions.readers()]


OPERATIONS: Final = [
    Operation(
        "sessions.list",
        "GET",
        "/sessions",
        "List open connections",
        _list,
        _PAGE,
        verb="session list",
        about="The connections that the API and the console use inside the server are not listed.",
        parameters=(
            Parameter(
                "kind", choice(("", *SESSION_KINDS), "only sessions of this kind; empty: of all", default="")
            ),
            Parameter("after", number("number after which to begin", most=_NUMBERS, default=0)),
            LIMIT,
        ),
    ),
    Operation(
        "sessions.close",
        "DELETE",
        "/sessions/{number}",
        "Close a connection at once",
        _close,
        of(SessionInfo),
        verb="session close",
        about="The other end may connect again. A caller that closes its own connection gets no answer.",
        path_parameters=(_NUMBER,),
    ),
    Operation(
        "readers.list",
        "GET",
        "/readers",
        "List the queues that programs on other computers have open over RPC",
        _readers,
        array(of(ReaderInfo)),
        verb="session readers",
    ),
]

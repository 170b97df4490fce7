"""Operation on the audit: administrative acts, denials and log-ons."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import Call, Operation, Parameter
from msmq_fast.admin.api.schema import array, choice, flag, number, of, record, text
from msmq_fast.protocol.resources import AuditEntry

__all__ = ["KINDS", "OPERATIONS"]

KINDS: Final = ("act", "denial", "login")
"""The kinds of entries."""
_U64: Final = 2**64 - 1
_NUMBER: Final = 2**63 - 1  # of an entry
_PART: Final = 256  # characters of a filter


async def _list(call: Call) -> dict[str, Any]:
    query = call.query
    page = await call.client.admin.audit.page(
        query["start"],
        newest_first=query["newest_first"],
        kind=query["kind"],
        caller=query["caller"],
        operation=query["operation"],
        object=query["object"],
        since=query["since"],
        until=query["until"],
    )
    items = [entry.as_map() for entry in page.entries]
    return {"items": items, "next": page.next, "finished": page.finished}


OPERATIONS: Final = [
    Operation(
        "audit.list",
        "GET",
        "/audit",
        "List the entries of the audit, one page at a time",
        _list,
        record(
            "AuditPage",
            {
                "items": array(of(AuditEntry)),
                "next": number("pass this as `start` for the next page", most=_NUMBER),
                "finished": flag("there is no further page"),
            },
        ),
        verb="audit list",
        about="A page can be empty although more pages follow: see `finished`.",
        parameters=(
            Parameter(
                "start", number("number of the first entry; 0: begin at the end", most=_NUMBER, default=0)
            ),
            Parameter("newest_first", flag("begin with the newest entry", default=False)),
            Parameter("kind", choice(("", *KINDS), "only entries of this kind", default="")),
            Parameter("caller", text("part of the name of the caller, or a SID", most=_PART, default="")),
            Parameter("operation", text("part of the name of the operation", most=_PART, default="")),
            Parameter("object", text("part of the name of the object", most=_PART, default="")),
            Parameter("since", number("earliest time, in seconds since 1970", most=_U64, default=0)),
            Parameter("until", number("latest time, in seconds since 1970", most=_U64, default=0)),
        ),
    ),
]

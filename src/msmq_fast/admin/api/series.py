"""Operation on the recent history of queues: depth, size and rates."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import QUEUE, Call, Operation, Parameter
from msmq_fast.admin.api.schema import number, of
from msmq_fast.protocol.resources import SeriesInfo

__all__ = ["OPERATIONS"]

_RESOLUTION: Final = number("seconds between two samples: 5 or 60", least=5, most=60, default=5)
_NAME: Final = QUEUE.schema | {
    "minLength": 0,
    "default": "",
    "description": "path or format name of a queue; empty: the sum of all user queues and their subqueues",
}


async def _show(call: Call) -> dict[str, Any]:
    query = call.query
    found = await call.client.admin.series(query["queue"], query["resolution"], query["since"])
    return found.as_map()


OPERATIONS: Final = [
    Operation(
        "series.show",
        "GET",
        "/series",
        "Show the recent history of a queue, or of all queues together",
        _show,
        of(SeriesInfo),
        verb="top",
        about="One sample every 5 s for the last hour, or every 60 s for the last day.",
        parameters=(
            Parameter("queue", _NAME),
            Parameter("resolution", _RESOLUTION),
            Parameter(
                "since", number("leave out the samples up to this time, in seconds since 1970", default=0)
            ),
        ),
    ),
]

"""The recent history of queues, for the charts and the tables of pages."""

from __future__ import annotations

import time
from typing import Any, Final

from msmq_fast.console.visit import Visit

__all__ = ["SPANS", "history"]

SPANS: Final = {"minutes": ("The last 10 minutes", 5, 600), "day": ("The last day", 60, 86400)}
"""The spans of a chart: title, seconds between two samples, length in seconds."""


async def history(visit: Visit, queue: str = "") -> dict[str, Any]:
    """Return what `history.html` needs for one queue, or without a name for all queues: the samples, newest
    first, of the span that the query string names; only those that are new if the browser has the others.
    Raises as Api.perform.
    """
    span = visit.get("span", "minutes")
    span = span if span in SPANS else "minutes"
    _, resolution, length = SPANS[span]
    begin = int(time.time()) - length
    query = {"queue": queue, "resolution": resolution, "since": max(begin, visit.live.since or 0)}
    found = await visit.perform("series.show", query=query)
    columns = (found[name] for name in ("time", "messages", "in_per_second", "out_per_second"))
    samples = list(zip(*columns, strict=True))
    if samples:
        visit.live.since = samples[-1][0]
    return {
        "span": span,
        "spans": SPANS,
        "tracked": found["tracked"],
        "samples": samples[::-1],
        "most": length // resolution,
    }

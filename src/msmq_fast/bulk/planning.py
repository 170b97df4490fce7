"""The calls /bounds and /plan. /bounds returns the arrival numbers that can be read from queues; /plan splits
a range of them into parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from aiohttp import web

from msmq_fast.bulk.application import answer
from msmq_fast.bulk.context import Context, caller
from msmq_fast.bulk.errors import bad_request, events_gone
from msmq_fast.bulk.fields import MAX_NUMBER, body_fields, query_fields, stretch
from msmq_fast.bulk.patterns import NamePattern
from msmq_fast.bulk.queues import CONTENTS, DEADLETTERS, EVENTS, MESSAGES, dead_letters, matching, named
from msmq_fast.bulk.reader import BulkReader
from msmq_fast.qm.bulk.bounds import Planned, Range, bounds_of
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.security.token import Token
from msmq_fast.store.decode import FEED_ENTRY
from msmq_fast.store.feed import Feed

__all__ = ["routes"]

MOST_QUEUES: Final = 10_000
MOST_PARTS: Final = 10_000


def routes(context: Context, reader: BulkReader, feed: Feed) -> list[web.RouteDef]:
    """Return the routes GET and POST /bounds and POST /plan."""
    planning = _Planning(context, reader, feed)
    return [
        web.get("/bounds", planning.bounds, allow_head=False),
        web.post("/bounds", planning.bounds),
        web.post("/plan", planning.plan),
    ]


class _Planning:
    def __init__(self, context: Context, reader: BulkReader, feed: Feed) -> None:
        self._context = context
        self._reader = reader
        self._feed = feed

    async def bounds(self, request: web.Request) -> web.Response:
        posted = request.method == "POST"
        fields = await body_fields(request) if posted else query_fields(request, ("queue",))
        names = fields.texts("queue", MOST_QUEUES) if "queue" in fields else []
        pattern = NamePattern(fields.text("pattern")) if "pattern" in fields else None
        content = fields.choice("content", CONTENTS, MESSAGES)
        fields.done()
        if names and pattern is not None:
            raise bad_request("pass either queue or pattern, not both")
        manager, token = self._context.manager, caller(request)
        following = await self._context.settled(manager.bounds.settled())
        queues = await self._queues(names, pattern, content, token)
        first, next_event = self._feed.bounds()
        return answer(
            {
                "qm": str(manager.guid),
                "name": manager.name,
                "incarnation": self._context.incarnation,
                "start": self._context.start,
                "release": self._context.release,
                "next": following,
                "feed": {"first": first, "next": next_event},
                "queues": [asdict(bounds_of(manager.ledger, queue)) for queue in queues],
            }
        )

    async def _queues(
        self, names: Iterable[str], pattern: NamePattern | None, content: str, token: Token
    ) -> list[Queue]:
        manager = self._context.manager
        if content == EVENTS:
            if names or pattern is not None:
                raise bad_request("events belong to the queue manager: pass neither queue nor pattern")
            manager.guard.read_everything(token, "read the event feed")
            return []
        if pattern is not None:
            if content == DEADLETTERS:
                raise bad_request("a pattern does not match dead-letter queues: pass their names")
            return await matching(manager, pattern, content, token)
        found = [named(manager, name, content) for name in names]
        if content == DEADLETTERS and not found:
            found = dead_letters(manager)
        for queue in found:
            manager.guard.read(token, queue)
        return found

    async def plan(self, request: web.Request) -> web.Response:
        fields = await body_fields(request)
        content = fields.choice("content", CONTENTS, MESSAGES)
        start, stop = stretch(fields)
        max_rows = fields.optional_number("max_rows", low=1)
        max_bytes = fields.optional_number("max_bytes", low=1)
        parts = fields.number("parts", 1, low=1, high=MOST_PARTS)
        name = fields.text("queue") if content != EVENTS else ""
        fields.done()
        manager = self._context.manager
        if content == EVENTS:
            manager.guard.read_everything(caller(request), "read the event feed")
            first, following = self._feed.bounds()
            if start < first:
                raise events_gone(first)
            return answer(_plan_events(start, min(stop, following), max_rows, max_bytes, parts))
        queue = named(manager, name, content)
        manager.guard.read(caller(request), queue)
        planned = await self._reader.plan(queue, start, stop, max_rows, max_bytes, parts)
        return answer(_shown(planned))


def _plan_events(
    start: int, stop: int, max_rows: int | None, max_bytes: int | None, parts: int
) -> dict[str, Any]:
    """Split a range of events into parts. Events are numbered without gaps and all have the same size, so
    nothing needs to be counted.
    """
    size = FEED_ENTRY.size
    most = min(max_rows or MAX_NUMBER, max((max_bytes or MAX_NUMBER) // size, 1))
    rows = min(max(stop - start, 0), most)
    share = -(-rows // parts) or 1
    ranges = [
        Range(
            at,
            min(at + share, start + rows),
            min(share, start + rows - at),
            min(share, start + rows - at) * size,
        )
        for at in range(start, start + rows, share)
    ]
    return _shown(Planned(tuple(ranges), start + rows, rows, rows * size))


def _shown(planned: Planned) -> dict[str, Any]:
    ranges = [
        {"from": part.start, "to": part.stop, "rows": part.rows, "bytes": part.bytes}
        for part in planned.ranges
    ]
    return {"ranges": ranges, "to": planned.stop, "rows": planned.rows, "bytes": planned.bytes}

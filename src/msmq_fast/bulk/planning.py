"""The calls /bounds and /plan. /bounds returns the arrival numbers that can be read from queues; /plan splits
ranges of them into parts.

A reader of many queues pays only for those with something new: `since` limits /bounds to queues with messages
from that arrival number on, `seen` and `removals` tell whether queues that the reader knows are gone, and one
/plan takes many queues.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from aiohttp import web

from msmq_fast._native.columnrows import changed, span
from msmq_fast.bulk.application import answer
from msmq_fast.bulk.context import Context, caller
from msmq_fast.bulk.errors import bad_request, events_gone
from msmq_fast.bulk.fields import MAX_NUMBER, Fields, body_fields, query_fields, stretch
from msmq_fast.bulk.queues import (
    CONTENTS,
    DEADLETTERS,
    EVENTS,
    JOURNAL,
    MESSAGES,
    Patterns,
    Selected,
    Turns,
    dead_letters,
    named,
)
from msmq_fast.bulk.reader import BulkReader
from msmq_fast.bulk.several import MOST_AT_ONCE, each
from msmq_fast.protocol.errors import QueueNotFound
from msmq_fast.qm.bulk.bounds import Planned, QueueBounds, Range, bounds_of
from msmq_fast.qm.queues.queue import Queue, QueueKind
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
        self._patterns = Patterns(context.manager)

    async def bounds(self, request: web.Request) -> web.Response:
        posted = request.method == "POST"
        fields = await body_fields(request) if posted else query_fields(request, ("queue",))
        asked = _Asked.read(fields)
        fields.done()
        manager, token = self._context.manager, caller(request)
        following = await self._context.settled(manager.bounds.settled())
        selected = await self._selected(asked, token)
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
                "ordinal": manager.registry.last_ordinal,
                **self._counted(asked, selected, token),
                "removals": manager.registry.removals,
                "removed": self._removed(asked, token),
                "queues": await self._listed(asked, selected, token),
            }
        )

    async def _selected(self, asked: _Asked, token: Token) -> Selected:
        """Return the queues that a request names. Those that match a pattern are not yet limited to the ones
        that the caller may read.
        """
        manager = self._context.manager
        if asked.content == EVENTS:
            if asked.names or asked.pattern is not None:
                raise bad_request("events belong to the queue manager: pass neither queue nor pattern")
            manager.guard.read_everything(token, "read the event feed")
            return Selected.of([])
        if asked.pattern is not None:
            if asked.content == DEADLETTERS:
                raise bad_request("a pattern does not match dead-letter queues: pass their names")
            return await self._patterns.matching(asked.pattern, asked.content)
        found, turns = [], Turns()
        for name in asked.names:
            await turns.yielded()
            try:
                found.append(named(manager, name, asked.content))
            except QueueNotFound:
                if not asked.skip_missing:
                    raise
        if asked.content == DEADLETTERS and not asked.names:
            found = dead_letters(manager)
        for queue in found:
            manager.guard.read(token, queue)
        return Selected.of(found)

    def _readable(self, asked: _Asked, queues: Sequence[Queue], token: Token) -> Sequence[Queue]:
        """Return the queues that the caller may read. The right to read named queues was checked before."""
        return queues if asked.pattern is None else self._context.manager.guard.readable(token, queues)

    def _counted(self, asked: _Asked, selected: Selected, token: Token) -> dict[str, int]:
        """Return how many of the selected queues the caller may read: `selected` in all, `known` with
        ordinals up to `seen`.
        """
        readable = self._readable(asked, selected.queues, token)
        if readable is selected.queues:
            return {"selected": len(selected.queues), "known": bisect_right(selected.ordinals, asked.newest)}
        known = sum(queue.ordinal <= asked.newest for queue in readable)
        return {"selected": len(readable), "known": known}

    async def _listed(self, asked: _Asked, selected: Selected, token: Token) -> list[dict[str, Any]]:
        """Return the bounds of the selected queues; with `since`, only of those with something new."""
        manager, turns = self._context.manager, Turns()
        queues: Sequence[Queue] = selected.queues
        if asked.since is not None:
            queues = [queues[index] for index in changed(selected.cores, asked.since, asked.newest)]
        listed = []
        for queue in self._readable(asked, queues, token):
            await turns.yielded()
            if not queue.core.gone:
                listed.append(_shown_bounds(bounds_of(manager.ledger, queue)))
        return listed

    def _removed(self, asked: _Asked, token: Token) -> list[dict[str, Any]]:
        """Return the queues that were deleted since the counter `removals` had the value of the request, the
        latest last. `again`: whether there is a queue of that name now.
        """
        registry, guard = self._context.manager.registry, self._context.manager.guard
        if asked.removals is None or asked.content not in (MESSAGES, JOURNAL):
            return []
        gone = [
            queue
            for queue in registry.removed_since(asked.removals)
            if (queue.kind is QueueKind.JOURNAL) == (asked.content == JOURNAL)
        ]
        return [
            {
                "name": queue.name,
                "guid": str(queue.guid),
                "ordinal": queue.ordinal,
                "again": registry.by_key(queue.key) is not None,
            }
            for queue in guard.readable(token, gone)
        ]

    async def plan(self, request: web.Request) -> web.Response:
        fields = await body_fields(request)
        content = fields.choice("content", CONTENTS, MESSAGES)
        token = caller(request)
        if "queues" in fields:
            items = [_Wanted.read(item) for item in fields.objects("queues", MOST_AT_ONCE)]
            fields.done()
            if content == EVENTS:
                raise bad_request("events belong to the queue manager: pass no queues")
            if sum(item.parts for item in items) > MOST_PARTS:
                raise bad_request(f"the queues of one call must have at most {MOST_PARTS} parts in all")
            return answer({"answers": await each(items, lambda item: self._planned(item, content, token))})
        if content != EVENTS:
            return answer(await self._planned(_Wanted.read(fields), content, token))
        start, stop = stretch(fields)
        max_rows, max_bytes, parts = _limits(fields)
        fields.done()
        self._context.manager.guard.read_everything(token, "read the event feed")
        first, following = self._feed.bounds()
        if start < first:
            raise events_gone(first)
        return answer(_plan_events(start, min(stop, following), max_rows, max_bytes, parts))

    async def _planned(self, wanted: _Wanted, content: str, token: Token) -> dict[str, Any]:
        queue = named(self._context.manager, wanted.queue, content)
        self._context.manager.guard.read(token, queue)
        planned = await self._reader.plan(queue, *wanted[1:])
        stop = min(wanted.stop, self._context.manager.bounds.watermark)
        waiting = span(queue.core, wanted.start, stop)
        return {**_shown(planned), "waiting": max(waiting, planned.rows)}


class _Asked(NamedTuple):
    """The parameters of /bounds. Without `since`, all selected queues are listed."""

    names: list[str]
    pattern: str | None
    content: str
    skip_missing: bool
    since: int | None
    seen: int | None
    removals: int | None

    @property
    def newest(self) -> int:
        """The highest ordinal of the queues that the reader knows."""
        return MAX_NUMBER if self.seen is None else self.seen

    @classmethod
    def read(cls, fields: Fields) -> _Asked:
        """Return the parameters of a request. Raises Refusal."""
        names = fields.texts("queue", MOST_QUEUES) if "queue" in fields else []
        pattern = fields.text("pattern") if "pattern" in fields else None
        if names and pattern is not None:
            raise bad_request("pass either queue or pattern, not both")
        return cls(
            names,
            pattern,
            fields.choice("content", CONTENTS, MESSAGES),
            fields.choice("missing", ("error", "skip"), "error") == "skip",
            fields.optional_number("since"),
            fields.optional_number("seen"),
            fields.optional_number("removals"),
        )


class _Wanted(NamedTuple):
    """The parameters of /plan for one queue."""

    queue: str
    start: int
    stop: int
    max_rows: int | None
    max_bytes: int | None
    parts: int

    @classmethod
    def read(cls, fields: Fields) -> _Wanted:
        """Return the parameters. Raises Refusal, also for parameters that are left over."""
        start, stop = stretch(fields)
        wanted = cls(fields.text("queue"), start, stop, *_limits(fields))
        fields.done()
        return wanted


def _shown_bounds(bounds: QueueBounds) -> dict[str, Any]:
    """Return the bounds of a queue as they are sent."""
    return {
        "name": bounds.name,
        "guid": bounds.guid,
        "ordinal": bounds.ordinal,
        "kind": bounds.kind,
        "transactional": bounds.transactional,
        "first": bounds.first,
        "messages": bounds.messages,
        "bytes": bounds.bytes,
        "late": bounds.late,
    }


def _limits(fields: Fields) -> tuple[int | None, int | None, int]:
    return (
        fields.optional_number("max_rows", low=1),
        fields.optional_number("max_bytes", low=1),
        fields.number("parts", 1, low=1, high=MOST_PARTS),
    )


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

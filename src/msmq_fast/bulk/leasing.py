"""The calls /lease, /ack and /release: a subscription leases messages of a queue for itself until it
acknowledges or releases them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from aiohttp import web

from msmq_fast.bulk.application import answer
from msmq_fast.bulk.context import Context, caller
from msmq_fast.bulk.errors import Refusal
from msmq_fast.bulk.fields import Fields, body_fields
from msmq_fast.bulk.queues import MESSAGES, named
from msmq_fast.bulk.several import MOST_AT_ONCE, each
from msmq_fast.protocol.errors import QueueDeleted
from msmq_fast.qm.access import Access
from msmq_fast.qm.bulk.leases import LONGEST_SECONDS, MOST_HELD, LeaseLost, Leases
from msmq_fast.qm.queues.queue import Queue

__all__ = ["lease_refusals", "leased_queue", "routes"]

_ROWS: Final = 10_000
_BYTES: Final = 64 << 20


def routes(context: Context, leases: Leases, seconds: float) -> list[web.RouteDef]:
    """Return the POST routes. `seconds` is the duration of a lease for which the request states none."""
    calls = _Leasing(context, leases, seconds)
    return [
        web.post("/lease", calls.lease),
        web.post("/ack", calls.ack),
        web.post("/release", calls.release),
    ]


class _Leasing:
    """The three calls. Each takes one `queue`, or `queues`: a list of objects with the parameters of one
    queue each.
    """

    def __init__(self, context: Context, leases: Leases, seconds: float) -> None:
        self._context = context
        self._leases = leases
        self._seconds = seconds

    async def lease(self, request: web.Request) -> web.Response:
        fields = await body_fields(request)
        subscription = fields.text("subscription")
        milliseconds = fields.optional_number("lease_ms", low=1000, high=int(LONGEST_SECONDS * 1000))
        seconds = self._seconds if milliseconds is None else milliseconds / 1000

        async def leased(item: Fields) -> dict[str, Any]:
            name = item.text("queue")
            rows = item.optional_number("max_rows", low=1, high=MOST_HELD) or _ROWS
            size = item.optional_number("max_bytes", low=1) or _BYTES
            item.done()
            queue = leased_queue(self._context, request, name)
            with lease_refusals():
                given = await self._context.settled(
                    self._leases.lease(subscription, queue, rows, size, seconds)
                )
            return {"from": given.start, "to": given.stop, "rows": given.stop - given.start}

        return await self._answered(fields, leased)

    async def ack(self, request: web.Request) -> web.Response:
        fields = await body_fields(request)
        subscription = fields.text("subscription")
        reader = replace(caller(request), program=f"bulk subscription {subscription}")

        async def acked(item: Fields) -> dict[str, Any]:
            queue, upto = self._upto(item, request)
            with lease_refusals():
                settled = await self._context.settled(self._leases.ack(subscription, queue, upto, reader))
            return settled._asdict()

        return await self._answered(fields, acked)

    async def release(self, request: web.Request) -> web.Response:
        fields = await body_fields(request)
        subscription = fields.text("subscription")

        async def released(item: Fields) -> dict[str, Any]:
            queue, upto = self._upto(item, request)
            with lease_refusals():
                settled = await self._context.settled(self._leases.release(subscription, queue, upto))
            return settled._asdict()

        return await self._answered(fields, released)

    def _upto(self, item: Fields, request: web.Request) -> tuple[Queue, int]:
        name, upto = item.text("queue"), item.number("upto")
        item.done()
        return leased_queue(self._context, request, name), upto

    @staticmethod
    async def _answered(fields: Fields, call: Callable[[Fields], Awaitable[dict[str, Any]]]) -> web.Response:
        if "queues" not in fields:
            return answer(await call(fields))
        items = fields.objects("queues", MOST_AT_ONCE)
        fields.done()
        return answer({"answers": await each(items, call)})


def leased_queue(context: Context, request: web.Request, name: str) -> Queue:
    """Return the queue `name`. Raises QUEUE_NOT_FOUND; ACCESS_DENIED if the caller may not receive from
    it.
    """
    queue = named(context.manager, name, MESSAGES)
    context.manager.guard.open(caller(request), queue, Access.RECEIVE)
    return queue


@contextmanager
def lease_refusals() -> Iterator[None]:
    """Turn the exceptions of leases into refusals."""
    try:
        yield
    except LeaseLost as error:
        raise Refusal("LEASE_LOST", str(error)) from None
    except QueueDeleted as error:
        raise Refusal("QUEUE_NOT_FOUND", error.detail or str(error)) from None

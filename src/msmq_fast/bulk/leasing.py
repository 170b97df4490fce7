"""The calls /lease, /ack and /release: a subscription leases messages of a queue for itself until it
acknowledges or releases them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from aiohttp import web

from msmq_fast.bulk.application import answer
from msmq_fast.bulk.context import Context, caller
from msmq_fast.bulk.errors import Refusal
from msmq_fast.bulk.fields import Fields, body_fields
from msmq_fast.bulk.queues import MESSAGES, named
from msmq_fast.protocol.errors import QueueDeleted
from msmq_fast.qm.access import Access
from msmq_fast.qm.bulk.leases import LONGEST_SECONDS, MOST_HELD, LeaseLost, Leases
from msmq_fast.qm.queues.queue import Queue

__all__ = ["lease_refusals", "leased_queue", "routes"]

_ROWS: Final = 10_000
_BYTES: Final = 64 << 20


def routes(context: Context, leases: Leases, seconds: float) -> list[web.RouteDef]:
    """Return the POST routes. `seconds` is the duration of a lease for which the request states none."""

    async def lease(request: web.Request) -> web.Response:
        fields = await body_fields(request)
        subscription, name = fields.text("subscription"), fields.text("queue")
        rows = fields.optional_number("max_rows", low=1, high=MOST_HELD)
        size = fields.optional_number("max_bytes", low=1)
        milliseconds = fields.optional_number("lease_ms", low=1000, high=int(LONGEST_SECONDS * 1000))
        fields.done()
        queue = leased_queue(context, request, name)
        with lease_refusals():
            leased = await context.settled(
                leases.lease(
                    subscription,
                    queue,
                    rows or _ROWS,
                    size or _BYTES,
                    seconds if milliseconds is None else milliseconds / 1000,
                )
            )
        return answer({"from": leased.start, "to": leased.stop, "rows": leased.stop - leased.start})

    def settling(fields: Fields, request: web.Request) -> tuple[str, Queue, int]:
        subscription, name, upto = fields.text("subscription"), fields.text("queue"), fields.number("upto")
        fields.done()
        return subscription, leased_queue(context, request, name), upto

    async def ack(request: web.Request) -> web.Response:
        subscription, queue, upto = settling(await body_fields(request), request)
        with lease_refusals():
            reader = replace(caller(request), program=f"bulk subscription {subscription}")
            settled = await context.settled(leases.ack(subscription, queue, upto, reader))
        return answer(settled._asdict())

    async def release(request: web.Request) -> web.Response:
        subscription, queue, upto = settling(await body_fields(request), request)
        with lease_refusals():
            settled = await context.settled(leases.release(subscription, queue, upto))
        return answer(settled._asdict())

    return [web.post("/lease", lease), web.post("/ack", ack), web.post("/release", release)]


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

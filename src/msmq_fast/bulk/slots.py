"""The calls under /subscriptions: named positions in the event feed. The feed keeps all events after the
lowest position.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from msmq_fast.bulk.application import answer
from msmq_fast.bulk.context import Context, caller
from msmq_fast.bulk.errors import Refusal
from msmq_fast.bulk.fields import body_fields, query_fields
from msmq_fast.qm.feed.subscriptions import SlotDropped, Subscription, SubscriptionNotFound, Subscriptions

__all__ = ["routes"]


def routes(context: Context, subscriptions: Subscriptions) -> list[web.RouteDef]:
    """Return the routes: GET for all subscriptions; GET, PUT and DELETE for one; POST to commit its
    position.
    """

    def admit(request: web.Request, operation: str) -> str:
        context.manager.guard.read_everything(caller(request), operation)
        return request.match_info.get("name", "")

    async def show_all(request: web.Request) -> web.Response:
        query_fields(request).done()
        admit(request, "look at subscriptions")
        return answer({"subscriptions": [_shown(found) for found in subscriptions.listed()]})

    async def show(request: web.Request) -> web.Response:
        query_fields(request).done()
        name = admit(request, "look at a subscription")
        with _refusals():
            return answer(_shown(subscriptions.alive(name)))

    async def put(request: web.Request) -> web.Response:
        fields = await body_fields(request)
        position = fields.optional_number("position")
        max_lag_bytes = fields.optional_number("max_lag_bytes", low=1)
        fields.done()
        name = admit(request, "set up a subscription")
        with _refusals():
            made = await context.settled(subscriptions.create(name, position, max_lag_bytes))
        return answer(_shown(made))

    async def drop(request: web.Request) -> web.Response:
        query_fields(request).done()
        name = admit(request, "drop a subscription")
        with _refusals():
            return answer({"dropped": await context.settled(subscriptions.drop(name))})

    async def commit(request: web.Request) -> web.Response:
        fields = await body_fields(request)
        position = fields.number("position")
        fields.done()
        name = admit(request, "move a subscription")
        with _refusals():
            return answer(_shown(await context.settled(subscriptions.commit(name, position))))

    return [
        web.get("/subscriptions", show_all, allow_head=False),
        web.get("/subscriptions/{name}", show, allow_head=False),
        web.put("/subscriptions/{name}", put),
        web.delete("/subscriptions/{name}", drop),
        web.post("/subscriptions/{name}/commit", commit),
    ]


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except SubscriptionNotFound as error:
        raise Refusal("SUBSCRIPTION_NOT_FOUND", str(error)) from None
    except SlotDropped as error:
        raise Refusal("SLOT_DROPPED", str(error)) from None


def _shown(found: Subscription) -> dict[str, Any]:
    return {
        "name": found.name,
        "position": found.position,
        "max_lag_bytes": found.max_lag_bytes,
        "lag_events": found.lag_events,
        "lag_bytes": found.lag_bytes,
        "dropped": found.dropped,
        "created": found.created,
        "changed": found.changed,
    }

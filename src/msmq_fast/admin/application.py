"""The HTTP application of the admin port. Read only; nothing here can change a queue."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from msmq_fast.admin.metrics import Metrics
from msmq_fast.admin.view import View

__all__ = ["build"]

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def build(view: View, queue_limit: int) -> web.Application:
    """The application; `queue_limit` bounds the number of queues with metrics of their own."""
    metrics = Metrics(view, queue_limit)

    async def livez(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        reason = view.ready()
        if reason is None:
            return web.Response(text="ok\n")
        return web.Response(status=503, text=f"{reason}\n")

    async def metrics_text(_: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def queues(_: web.Request) -> web.Response:
        return _json([_flat(queue) for queue in view.queues()])

    async def outgoing(_: web.Request) -> web.Response:
        return _json([_flat(queue) for queue in view.outgoing()])

    async def readers(_: web.Request) -> web.Response:
        return _json([dataclasses.asdict(reader) for reader in view.readers()])

    async def stats(_: web.Request) -> web.Response:
        return _json(dict(view.stats()))

    application = web.Application(middlewares=[_harden])
    application.router.add_get("/livez", livez)
    application.router.add_get("/readyz", readyz)
    application.router.add_get("/metrics", metrics_text)
    application.router.add_get("/v1/queues", queues)
    application.router.add_get("/v1/outgoing", outgoing)
    application.router.add_get("/v1/readers", readers)
    application.router.add_get("/v1/stats", stats)
    return application


def _flat(view: Any) -> dict[str, Any]:
    """A view's fields with its properties beside them."""
    entry = {item.name: getattr(view, item.name) for item in dataclasses.fields(view)}
    properties = entry.pop("properties")
    return {**properties, **entry}


def _json(content: object) -> web.Response:
    return web.json_response(content, dumps=lambda value: json.dumps(value, default=str))


@web.middleware
async def _harden(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Errors as JSON, and no caching of live figures."""
    try:
        response = await handler(request)
    except web.HTTPException as error:
        response = web.json_response({"error": error.reason}, status=error.status)
        if isinstance(error, web.HTTPMethodNotAllowed):
            response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response

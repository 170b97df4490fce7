"""The HTTP application of the admin port: health, metrics and lists. Nothing here can change a queue; the
management API (`admin/api`) and the console are applications of their own under the same port.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from msmq_fast.admin.metrics import Metrics
from msmq_fast.admin.view import View
from msmq_fast.security.callers import Access, CallerRefused, Callers
from msmq_fast.security.webpages import connection_ends, is_of_another_site, names_this_machine

__all__ = ["MAX_BODY", "build"]

MAX_BODY: Final = 8 << 20
"""Bytes of a request: a message of 4 MiB in base64, and its properties. aiohttp applies the limit of this
application to the applications under it, too.
"""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def build(view: View, queue_limit: int, callers: Callers, *, open_metrics: bool = False) -> web.Application:
    """Return the application. `queue_limit` bounds the number of queues with their own metrics.

    Other computers need a token that `callers` knows; with `open_metrics`, not for /metrics.
    """
    metrics = Metrics(view, queue_limit)
    remote = replace(callers, access=Access.TOKEN)

    def guarded(handler: _Handler, *, needs_token: bool = True) -> _Handler:
        """Wrap a handler that returns data about queues: it then refuses requests from web pages, and with
        `needs_token` those from other computers that have no token.
        """

        async def handle(request: web.Request) -> web.StreamResponse:
            _refuse_web_pages(request, callers.names)
            if needs_token and connection_ends(request.transport) is None:
                _need_token(request, remote)
            return await handler(request)

        return handle

    async def livez(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        reason = view.ready()
        if reason is None:
            shortage = view.shortage()
            return web.Response(text=f"ok\n{shortage}\n" if shortage else "ok\n")
        return web.Response(status=503, text=f"{reason}\n")

    async def metrics_text(_: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def queues(_: web.Request) -> web.Response:
        return _json([queue.as_map() for queue in view.queues()])

    async def outgoing(_: web.Request) -> web.Response:
        return _json([queue.as_map() for queue in view.outgoing()])

    async def readers(_: web.Request) -> web.Response:
        return _json([reader.as_map() for reader in view.readers()])

    async def stats(_: web.Request) -> web.Response:
        return _json(dict(view.stats()))

    application = web.Application(middlewares=[_harden], client_max_size=MAX_BODY)
    application.router.add_get("/livez", livez)
    application.router.add_get("/readyz", readyz)
    application.router.add_get("/metrics", guarded(metrics_text, needs_token=not open_metrics))
    application.router.add_get("/v1/queues", guarded(queues))
    application.router.add_get("/v1/outgoing", guarded(outgoing))
    application.router.add_get("/v1/readers", guarded(readers))
    application.router.add_get("/v1/stats", guarded(stats))
    return application


def _refuse_web_pages(request: web.Request, names: Collection[str]) -> None:
    """Raises HTTPForbidden for a request that a browser sends for a page of another site. Also raises it for
    a request over the loopback interface with the name of another host in its Host header, as after DNS
    rebinding.
    """
    if is_of_another_site(request.headers):
        raise web.HTTPForbidden(reason="requests from pages of other sites are refused (Sec-Fetch-Site)")
    local = connection_ends(request.transport)
    if local and not names_this_machine(request.headers.get("Host", "localhost"), names):
        raise web.HTTPForbidden(
            reason="the Host header names another computer: use localhost, or add the name to server.aliases"
        )


def _need_token(request: web.Request, callers: Callers) -> None:
    """Raises HTTPUnauthorized for a request without a valid token."""
    try:
        callers.identify(request.headers, request.remote or "", None)
    except CallerRefused as refused:
        raise web.HTTPUnauthorized(reason=str(refused), headers={"WWW-Authenticate": "Bearer"}) from None


def _json(content: object) -> web.Response:
    return web.json_response(content, dumps=lambda value: json.dumps(value, default=str))


@web.middleware
async def _harden(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Call `handler`, return its HTTP errors as JSON, and forbid caches to store the response."""
    try:
        response = await handler(request)
    except web.HTTPException as error:
        response = web.json_response({"error": error.reason}, status=error.status)
        if "WWW-Authenticate" in error.headers:
            response.headers["WWW-Authenticate"] = error.headers["WWW-Authenticate"]
        if isinstance(error, web.HTTPMethodNotAllowed):
            response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response

"""The HTTP application of the admin port: health and metrics. The management API (`admin/api`) and the
console are applications of their own under the same port.
"""

from __future__ import annotations

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

_MOVED: Final = {
    "/v1/queues": "/api/v1/queues",
    "/v1/outgoing": "/api/v1/outgoing",
    "/v1/readers": "/api/v1/readers",
    "/v1/stats": "/api/v1/server/stats",
}
"""Paths of earlier versions, and those of the management API that replace them."""


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

    async def moved(request: web.Request) -> web.Response:
        raise web.HTTPGone(reason=f"{request.path} has moved: use {_MOVED[request.path]}")

    application = web.Application(middlewares=[_harden], client_max_size=MAX_BODY)
    application.router.add_get("/livez", livez)
    application.router.add_get("/readyz", readyz)
    application.router.add_get("/metrics", guarded(metrics_text, needs_token=not open_metrics))
    for path in _MOVED:
        application.router.add_route("*", path, moved)
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

"""The bulk API as an aiohttp application: identifies callers, returns errors as JSON, counts calls.

The other modules of this package implement the calls.

The server serves the application under /v1/bulk of the admin port.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from aiohttp import web

from msmq_fast.bulk.context import Context, set_caller
from msmq_fast.bulk.errors import Refusal, bad_request, refusal_of
from msmq_fast.logfields import logged
from msmq_fast.security.webpages import connection_ends

__all__ = ["INCARNATION_HEADER", "build"]

INCARNATION_HEADER: Final = "X-MSMQ-Incarnation"
_LOGGED: Final = 200  # characters of a reason in the log
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger("msmq_fast.bulk")


def build(context: Context, routes: Iterable[web.RouteDef]) -> web.Application:
    """Return the application that serves `routes`."""
    application = web.Application(middlewares=[_Boundary(context).run])
    application.add_routes(routes)
    return application


class _Boundary:
    """Middleware around every call: checks the request, counts it, and turns exceptions into answers."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @web.middleware
    async def run(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Check the request, run its handler, and return the answer."""
        call = _name(request)
        try:
            response = await self._call(request, handler)
        except web.HTTPNotFound:
            response = self._refused(
                call, request, Refusal("NOT_FOUND", f"unknown path {request.path[:200]!r}")
            )
        except web.HTTPMethodNotAllowed as error:
            allowed = ", ".join(sorted(error.allowed_methods))
            refusal = Refusal("METHOD_NOT_ALLOWED", f"this call takes {allowed} only")
            response = self._refused(call, request, refusal)
            response.headers["Allow"] = allowed
        except ConnectionError:  # the client left; the admin port counts that
            raise
        except Exception as error:
            refusal_or_none = refusal_of(error)
            if refusal_or_none is None:
                _log.exception("the call %s failed", call, extra=logged(peer=request.remote or ""))
                refusal_or_none = Refusal("FAILED", "internal error; see the log of the server")
            response = self._refused(call, request, refusal_or_none)
        self._context.figures.requests[call, response.status] += 1
        return response

    async def _call(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        context = self._context
        ends = connection_ends(request.transport)
        caller = context.callers.identify(request.headers, request.remote or "", ends)
        set_caller(request, caller.token)
        reason = context.not_ready()
        if reason is not None:
            raise Refusal("NOT_READY", f"the server is not ready: {reason}")
        self._check_incarnation(request)
        context.manager.tick()
        return await handler(request)

    def _check_incarnation(self, request: web.Request) -> None:
        given = request.headers.get(INCARNATION_HEADER)
        if given is None:
            return
        if not (given.isascii() and given.isdigit() and len(given) < 20):
            raise bad_request(f"{INCARNATION_HEADER} must be a whole number")
        here = self._context.incarnation
        if int(given) != here:
            raise Refusal(
                "INCARNATION",
                f"the store was restored or copied: it has incarnation {here}, the request expects {given}",
                given=int(given),
                incarnation=here,
            )

    def _refused(self, call: str, request: web.Request, refusal: Refusal) -> web.Response:
        detail = f"{call}: {refusal}"[:_LOGGED]
        self._context.refuse("bulk request", refusal.code, detail, peer=request.remote or "")
        response = answer(refusal.answer(), refusal.status)
        if refusal.code == "UNAUTHORIZED":
            response.headers["WWW-Authenticate"] = "Bearer"
        return response


def _name(request: web.Request) -> str:
    """Return the name of the call for counters and logs: the last fixed part of its path, without names of
    subscriptions.
    """
    resource = request.match_info.route.resource
    words = [] if resource is None else resource.canonical.split("/")
    return next((word for word in reversed(words) if word and not word.startswith("{")), "unknown")


def answer(content: object, status: int = 200) -> web.Response:
    """Return `content` as a JSON answer."""
    return web.Response(text=json.dumps(content) + "\n", status=status, content_type="application/json")

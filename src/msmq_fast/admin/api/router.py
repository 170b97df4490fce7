"""The management API over HTTP: one aiohttp application, whose routes come from the table of operations.

The admin port serves it under /api/v1.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.api import Api
from msmq_fast.admin.api.errors import Refusal, bad_request, refusal_of
from msmq_fast.admin.api.openapi import document
from msmq_fast.admin.api.operation import Download, Operation, etag_of
from msmq_fast.admin.api.operations import OPERATIONS
from msmq_fast.admin.api.repeats import Repeats
from msmq_fast.admin.application import MAX_BODY
from msmq_fast.logfields import Refuse, logged
from msmq_fast.protocol.text import quoted
from msmq_fast.security.callers import Caller, Callers
from msmq_fast.security.webpages import connection_ends

__all__ = ["API_PATH", "build_api"]

API_PATH: Final = "/api/v1"
MOST: Final = 64  # requests under way
MOST_OF_ONE: Final = 16  # of one caller
MOST_BYTES: Final = 64 << 20  # of the bodies of all requests under way

_LOGGED: Final = 200  # characters of a reason in the log
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger("msmq_fast.admin")


def build_api(api: Api, callers: Callers, refuse: Refuse) -> web.Application:
    """Return the application. It calls `refuse(what, reason, detail)` for each refused request."""
    router = _Router(api, callers, refuse)
    application = web.Application(middlewares=[router.boundary])
    application.router.add_get("/openapi.json", router.document)
    for operation in OPERATIONS:
        path = operation.path.replace("}", ":[^/]+}")
        application.router.add_route(operation.method, path, router.handler(operation))
    return application


class _Router:
    def __init__(self, api: Api, callers: Callers, refuse: Refuse) -> None:
        self._api = api
        self._callers = callers
        self._refuse = refuse
        self._repeats = Repeats(time.monotonic)
        self._running: Counter[str] = Counter()  # requests under way, by SID
        self._bytes = 0  # of their bodies

    async def document(self, request: web.Request) -> web.StreamResponse:
        """Return the OpenAPI document."""
        self._identify(request)
        return _json(document(), 200)

    @contextmanager
    def _admitted(self, caller: Caller, size: int) -> Iterator[None]:
        """Count a request under way, whose body has at most `size` bytes. Raises Refusal if there are too
        many, of all callers or of this one.
        """
        sid = str(caller.token.user)
        if (
            self._running.total() >= MOST
            or self._running[sid] >= MOST_OF_ONE
            or self._bytes + size > MOST_BYTES
        ):
            raise Refusal("TOO_MANY_REQUESTS", "too many requests are under way: send fewer at a time")
        self._running[sid] += 1
        self._bytes += size
        try:
            yield
        finally:
            self._bytes -= size
            self._running[sid] -= 1
            if not self._running[sid]:
                del self._running[sid]

    @web.middleware
    async def boundary(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Run a handler, and turn exceptions into answers."""
        try:
            return await handler(request)
        except web.HTTPNotFound:
            refusal = Refusal("NOT_FOUND", f"unknown path {quoted(request.path[:_LOGGED])}")
        except web.HTTPMethodNotAllowed as error:
            allowed = ", ".join(sorted(error.allowed_methods))
            response = self._refused(request, Refusal("METHOD_NOT_ALLOWED", f"this path takes {allowed}"))
            response.headers["Allow"] = allowed
            return response
        except web.HTTPRequestEntityTooLarge:
            refusal = Refusal("TOO_LARGE", f"the body is larger than {MAX_BODY} bytes")
        except ConnectionResetError:  # the client left; the admin port counts that
            raise
        except Exception as error:
            found = refusal_of(error)
            if found is None:
                _log.exception(
                    "%s %s failed", request.method, request.path, extra=logged(peer=request.remote or "")
                )
                found = Refusal("FAILED", "internal error; see the log of the server")
            refusal = found
        return self._refused(request, refusal)

    def handler(self, operation: Operation) -> _Handler:
        """Return the handler of an operation."""

        async def handle(request: web.Request) -> web.StreamResponse:
            caller = self._identify(request)
            query = _query(operation, request)
            with self._admitted(caller, _size(request)):
                return _answer(operation, await self._run(operation, request, caller, query))

        return handle

    async def _run(
        self, operation: Operation, request: web.Request, caller: Caller, query: dict[str, Any]
    ) -> Any:
        body = await _body(request)
        path = dict(request.match_info)

        async def perform() -> Any:
            return await self._api.perform(
                caller,
                operation.name,
                path=path,
                query=query,
                body=body,
                version=request.headers.get("If-Match") if operation.locked_by else None,
            )

        key = request.headers.get("Idempotency-Key") if operation.repeatable else None
        if key is None:
            return await perform()
        same = (operation.name, path, query, body)
        return await self._repeats.run(str(caller.token.user), key, same, perform)

    def _identify(self, request: web.Request) -> Caller:
        ends = connection_ends(request.transport)
        return self._callers.identify(request.headers, request.remote or "", ends)

    def _refused(self, request: web.Request, refusal: Refusal) -> web.Response:
        detail = f"{request.method} {request.path}: {refusal}"[:_LOGGED]
        self._refuse("API request", refusal.code, detail, peer=request.remote or "")
        response = _json(refusal.answer(), refusal.status)
        if refusal.status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        return response


def _size(request: web.Request) -> int:
    """Return the greatest size of the body of a request: a chunked one may have MAX_BODY bytes."""
    if request.content_length is None:
        return MAX_BODY if request.can_read_body else 0
    return min(request.content_length, MAX_BODY)


def _query(operation: Operation, request: web.Request) -> dict[str, Any]:
    many = {parameter.name for parameter in operation.parameters if parameter.many}
    found: dict[str, Any] = {}
    for name, value in request.query.items():
        if name in many:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise bad_request(f"{quoted(name)} is given twice")
        else:
            found[name] = value
    return found


async def _body(request: web.Request) -> Any:
    data = await request.read()
    if not data:
        return None
    if request.content_type != "application/json":
        raise Refusal("MEDIA_TYPE", "a body must have the Content-Type application/json")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body is not valid JSON: {error}") from None


def _answer(operation: Operation, answer: Any) -> web.Response:
    if isinstance(answer, Download):
        return web.Response(
            body=answer.content,
            content_type="application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="{answer.name}"'},
        )
    response = _json(answer, operation.status)
    if operation.version is not None:
        response.headers["ETag"] = etag_of(operation, answer)
    return response


def _json(content: Any, status: int) -> web.Response:
    return web.Response(text=json.dumps(content) + "\n", status=status, content_type="application/json")

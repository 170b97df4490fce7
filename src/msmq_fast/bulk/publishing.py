"""The calls /stage, /publish and /discard: clients upload messages in stages, then publish the stages
together, exactly once.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from typing import Final

from aiohttp import web

from msmq_fast.bulk.application import answer
from msmq_fast.bulk.context import Context, caller
from msmq_fast.bulk.errors import Refusal, bad_request
from msmq_fast.bulk.fields import ARROW_TYPE, body_fields, pieces
from msmq_fast.bulk.staging import StageRequest, StageUpload
from msmq_fast.qm.bulk.staging import MOST_STAGES, Fenced, Staged, StageNotFound

__all__ = ["routes"]

_LONGEST_ORIGIN: Final = 200


def routes(context: Context, workers: Executor) -> list[web.RouteDef]:
    """Return the POST routes. `workers` is the executor that decodes uploaded rows."""
    publishing = _Publishing(context, workers)
    return [
        web.post("/stage", publishing.stage),
        web.post("/publish", publishing.publish),
        web.post("/discard", publishing.discard),
    ]


def _owner(request: web.Request) -> str:
    """Return the text that identifies the caller as the owner of a stage: only the caller that uploaded a
    stage may publish it.
    """
    return str(caller(request).user)


class _Publishing:
    def __init__(self, context: Context, workers: Executor) -> None:
        self._context = context
        self._workers = workers
        self._places = asyncio.Semaphore(context.limits.uploads)  # each may hold messages of 64 MiB

    async def stage(self, request: web.Request) -> web.Response:
        if request.content_type != ARROW_TYPE:
            raise bad_request(f"the body must be an Arrow stream, with Content-Type: {ARROW_TYPE}")
        asked = StageRequest.parse(_query(request))
        async with self._places:
            if request.transport is None or request.transport.is_closing():
                raise ConnectionResetError("the client disconnected while it waited")
            staged = await self._staged(request, asked)
        return answer({"stage": staged.stage, "rows": staged.rows, "bytes": staged.bytes})

    async def _staged(self, request: web.Request, asked: StageRequest) -> Staged:
        manager = self._context.manager
        manager.tick()
        upload = StageUpload(
            manager,
            self._workers,
            asked,
            token=caller(request),
            touch=self._context.touch,
            signing=self._context.signing,
            owner=_owner(request),
            most_bytes=self._context.limits.stage_bytes,
        )
        try:
            await self._take_in(request, upload)
            return await upload.finish()
        except BaseException:
            upload.abort()
            raise

    async def _take_in(self, request: web.Request, upload: StageUpload) -> None:
        limits, figures = self._context.limits, self._context.figures
        size = 0
        async for piece in pieces(request, limits.slow_client):
            size += len(piece)
            figures.bytes_in += len(piece)
            if size > limits.stage_bytes:
                raise Refusal(
                    "TOO_LARGE",
                    f"a stage has at most {limits.stage_bytes} bytes (bulk.max_stage_bytes): use more parts",
                )
            await upload.feed(piece)

    async def publish(self, request: web.Request) -> web.Response:
        fields = await body_fields(request)
        writer, epoch, batch = fields.text("writer"), fields.number("epoch"), fields.number("batch")
        stages = fields.texts("stages", MOST_STAGES)
        origin, remember = fields.text("origin", "", empty=True), fields.flag("remember", True)
        fields.done()
        if len(origin) > _LONGEST_ORIGIN:
            raise bad_request(f"origin may have at most {_LONGEST_ORIGIN} characters")
        staging = self._context.manager.staging
        try:
            published = await self._context.settled(
                staging.publish(
                    writer, epoch, batch, stages, owner=_owner(request), origin=origin, remember=remember
                )
            )
        except Fenced as error:
            raise Refusal("FENCED", str(error)) from None
        except StageNotFound as error:
            raise Refusal("STAGE_NOT_FOUND", str(error)) from None
        return answer(published._asdict())

    async def discard(self, request: web.Request) -> web.Response:
        fields = await body_fields(request)
        stages = fields.texts("stages", MOST_STAGES)
        fields.done()
        staging = self._context.manager.staging
        discarded = await self._context.settled(staging.discard(stages, owner=_owner(request)))
        return answer({"discarded": discarded})


def _query(request: web.Request) -> dict[str, str]:
    """Return the query of a request as a dictionary. Raises Refusal (BAD_REQUEST) if a name occurs twice."""
    twice = next((name for name in request.query if len(request.query.getall(name)) > 1), None)
    if twice is not None:
        raise bad_request(f"the parameter {twice[:100]!r} is given twice")
    return dict(request.query)

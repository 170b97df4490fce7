"""The call /snapshot: a copy of the running store in a new directory of the server's machine."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Final

from aiohttp import web

from msmq_fast.bulk.application import answer
from msmq_fast.bulk.context import Context, caller
from msmq_fast.bulk.errors import Refusal, bad_request
from msmq_fast.bulk.fields import body_fields
from msmq_fast.store.errors import BackupError
from msmq_fast.store.snapshots import MIN_RATE, SnapshotBusy, Snapshots

__all__ = ["routes"]

_LOOK: Final = 0.5  # seconds between two looks whether the client is still there


def routes(context: Context, snapshots: Snapshots) -> list[web.RouteDef]:
    """Return the routes: POST starts a snapshot, GET returns its progress."""

    async def make(request: web.Request) -> web.Response:
        fields = await body_fields(request)
        directory = fields.text("directory")
        rate = fields.optional_number("bytes_per_second", low=MIN_RATE)
        fields.done()
        context.manager.guard.administer(caller(request), "make a snapshot of the store")
        try:
            snapshot = snapshots.begin(directory, rate)
        except SnapshotBusy as error:
            raise Refusal("BUSY", str(error)) from None
        except BackupError as error:
            raise bad_request(str(error)) from None
        context.manager.audit.recorded(
            snapshot.done,
            caller(request),
            "make snapshot",
            directory,
            lambda manifest: f"bytes: {manifest.size}",
        )
        result = asyncio.ensure_future(context.settled(snapshot.done))
        try:
            while not (await asyncio.wait({result}, timeout=_LOOK))[0]:
                if request.transport is None or request.transport.is_closing():
                    snapshot.cancel()
        except asyncio.CancelledError:
            snapshot.cancel()
            result.cancel()
            raise
        try:
            return answer(asdict(result.result()))
        except BackupError as error:
            raise Refusal("FAILED", str(error)) from None

    async def progress(request: web.Request) -> web.Response:
        context.manager.guard.administer(caller(request), "look at a snapshot of the store")
        current = snapshots.current
        if current is None:
            return answer({"running": False})
        return answer({"running": True, "written": current.written, "total": current.total})

    return [
        web.post("/snapshot", make),
        web.get("/snapshot", progress, allow_head=False),
    ]

"""What POST /stage does: an Arrow IPC stream that comes in pieces becomes a stage.

A route makes a `StageUpload` of the query, feeds it the body of the request and finishes it; whatever goes
wrong in between, it aborts it::

    upload = StageUpload(manager, workers, StageRequest.parse(request.query), token=token, owner=owner)
    try:
        async for piece in request.content.iter_any():
            await upload.feed(piece)
        staged = await upload.finish()
    except BaseException:
        upload.abort()
        raise
    return {"stage": staged.stage, "rows": staged.rows, "bytes": staged.bytes}

POST /publish and POST /discard are `manager.staging.publish` and `manager.staging.discard`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msmq_fast.qm.staging import Staged

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.security.token import Token


@dataclass(frozen=True, slots=True)
class StageRequest:
    """The query of POST /stage: writer, batch, part and attempt, and the defaults of columns."""

    writer: str
    batch: int
    part: int
    attempt: int

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> StageRequest:
        """Of the parameters of a query. ValueError, one clear line: an unknown or a bad one."""
        raise NotImplementedError


class StageUpload:
    """One stage on its way in. `workers` runs what takes long: one executor with one thread for a server.

    Every call raises, with one line for the client: ValueError (400; the stream, a column or a value is
    wrong), ArrowMissing (501), and MSMQError: QUEUE_NOT_FOUND (404), ACCESS_DENIED (403),
    INSUFFICIENT_RESOURCES (413; a message is too large, a quota is used up), SERVICE_NOT_AVAILABLE (503), any
    other (400). After an error nothing is staged.
    """

    def __init__(
        self,
        manager: QueueManager,
        workers: Executor,
        request: StageRequest,
        *,
        token: Token | None,
        owner: str = "",
    ) -> None:
        """`token` needs the right to send to every queue; None is the queue manager itself. `owner` names who
        stages: only he publishes it.
        """
        raise NotImplementedError

    async def feed(self, data: bytes) -> None:
        """The next bytes of the stream. Returns when there is room for more."""
        raise NotImplementedError

    async def finish(self) -> Staged:
        """The stream has ended; returns when everything is durable."""
        raise NotImplementedError

    def abort(self) -> None:
        """The client is gone, or something went wrong: nothing is staged. Any number of times; no effect
        behind `finish`.
        """
        raise NotImplementedError

"""Implements POST /stage: an Arrow IPC stream that arrives in pieces becomes a stage.

The route creates a `StageUpload` from the query, feeds it the body of the request and finishes it; if
anything fails in between, the route aborts it. POST /publish and POST /discard call `publish` and `discard`
of `manager.staging`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from msmq_fast._native.packetblock import PacketBlock
from msmq_fast._native.stagecodec import Destination, RowBuilder, RowError
from msmq_fast.bulk.ipc import MessageCutter, StreamMessage
from msmq_fast.bulk.stagedecode import Rows, StageDecoder
from msmq_fast.bulk.stagerequest import StageRequest
from msmq_fast.packet.fields import sent_field
from msmq_fast.packet.malformed import Malformed
from msmq_fast.packet.replies import ReplyNames
from msmq_fast.protocol.errors import (
    InsufficientResources,
    MSMQError,
    QueueNotFound,
    TransactionUsage,
    UnsupportedAccessMode,
    UnsupportedFormatNameOperation,
    error,
)
from msmq_fast.qm.access import Access
from msmq_fast.qm.bulk.stages import MOST_QUEUES, Staged
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.identity.signing import Signing, prepare
from msmq_fast.qm.queues.protection import demands
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.security.token import Token

__all__ = ["StageRequest", "StageUpload"]

_AT_ONCE: Final = 64  # queues that are opened in one turn of the loop
_TAKEN: Final = (QueueKind.PUBLIC, QueueKind.PRIVATE, QueueKind.OUTGOING)

T = TypeVar("T")


class _Target(NamedTuple):
    handle: OpenQueue
    destination: Destination


class StageUpload:
    """The upload of one stage. `workers` is the executor that decodes rows and builds packets; a server has
    one, with one thread.

    Every method raises ValueError if the stream, a column or a value is invalid. It raises MSMQError for
    errors of the queue manager: QUEUE_NOT_FOUND, ACCESS_DENIED, INSUFFICIENT_RESOURCES (a message is too
    large or a quota is exhausted), SERVICE_NOT_AVAILABLE, and others. The text of each error is one line for
    the client. After an error nothing is staged.
    """

    def __init__(
        self,
        manager: QueueManager,
        workers: Executor,
        request: StageRequest,
        *,
        token: Token | None,
        owner: str = "",
        touch: Callable[[], None],
        most_bytes: int = 1 << 40,
        signing: Signing | None = None,
    ) -> None:
        """`token` is the caller, which needs the right to send to each queue of the stage; None is the queue
        manager itself. `owner` identifies the caller: only that caller may publish the stage. `touch`
        requests a commit of the pending writes; `most_bytes` limits the size of the stored packets of the
        stage.
        """
        self._manager = manager
        self._workers = workers
        self._request = request
        self._token = token
        self._touch = touch
        self._signing = signing
        self._most_bytes = most_bytes
        self._cutter = MessageCutter()
        self._decoder = StageDecoder(strict=request.strict)
        settings = manager.settings
        self._builder = RowBuilder(
            manager.guid.bytes_le, settings.long_lived, request.defaults, request.replay
        )
        self._targets: dict[str, _Target] = {}
        self._stage = manager.staging.open(request.part, owner=owner, whole=request.whole)
        self._working: asyncio.Task[None] | None = None
        self._checked = False
        self._bytes = 0

    # ---- the life of a stage

    async def feed(self, data: bytes) -> None:
        """Process the next bytes of the stream. Returns when there is room for more."""
        for message in self._cutter.feed(data):
            await self._settle()
            self._working = asyncio.create_task(self._take(message))
            self._working.add_done_callback(_seen)

    async def finish(self) -> Staged:
        """Complete the stage after the end of the stream. Returns when all rows are durable."""
        await self._settle()
        if not self._cutter.ended:
            raise Malformed("the Arrow stream is incomplete: its end-of-stream mark is missing")
        await self._check_schema()
        self._manager.tick()
        done = self._stage.finish()
        self._touch()
        staged = await _result(done)
        self._close()
        return staged

    def abort(self) -> None:
        """Discard the stage because the client is gone or something failed: nothing is staged. May be called
        repeatedly; has no effect after `finish`.
        """
        if self._working is not None:
            self._working.cancel()
            self._working = None
        self._stage.abort()
        self._close()
        self._touch()

    def _close(self) -> None:
        for target in self._targets.values():
            target.handle.close()
        self._targets.clear()

    async def _settle(self) -> None:
        """Wait until the previous message of the stream has been processed."""
        working, self._working = self._working, None
        if working is not None:
            await working

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._workers, work)

    # ---- rows

    async def _check_schema(self) -> None:
        if not self._checked:
            schema = self._cutter.schema
            if schema is None:
                raise Malformed("the Arrow stream has no schema")
            await self._run(partial(self._decoder.check_schema, schema))
            self._checked = True

    async def _take(self, message: StreamMessage) -> None:
        await self._check_schema()
        pieces = await self._run(lambda: list(self._decoder.decode(message)))
        for rows in pieces:
            targets = await self._destinations(rows)
            packets = await self._run(partial(self._build, rows, [target.destination for target in targets]))
            self._put(rows, packets, targets)
            await _result(self._stage.room())

    def _build(self, rows: Rows, destinations: list[Destination]) -> PacketBlock:
        try:
            return self._builder.build(
                rows.count,
                rows.columns,
                self._manager.ledger.now_s,
                destinations,
                rows.targets,
                rows.responses,
                rows.response_names,
                rows.admins,
                rows.admin_names,
            )
        except RowError as problem:
            raise error(problem.code, f"row {rows.first + problem.row}: {problem.problem}") from None

    def _put(self, rows: Rows, packets: PacketBlock, targets: list[_Target]) -> None:
        queues: list[Queue] = [target.handle.queue for target in targets]
        self._bytes += packets.nbytes
        if self._bytes > self._most_bytes:
            raise InsufficientResources(f"a stage has at most {self._most_bytes} bytes: use more parts")
        for place, queue in enumerate(queues):
            if demands(queue):
                packet = packets[rows.row_of(place) - rows.first]
                self._of_row(rows, place, partial(prepare, self._signing, queue, packet, None, self._token))
        self._manager.tick()
        self._stage.put(packets, rows.places, queues, first=rows.first)
        self._touch()

    # ---- queues

    async def _destinations(self, rows: Rows) -> list[_Target]:
        """Open the queues of some rows. Yields to the event loop in between if there are many queues."""
        self._manager.tick()
        targets: list[_Target] = []
        for place, name in enumerate(rows.queues):
            wanted = name or self._request.queue
            known = self._targets.get(wanted)
            if known is None:
                known = self._of_row(rows, place, partial(self._open, wanted))
                self._targets[wanted] = known
                if len(self._targets) % _AT_ONCE == 0:
                    self._touch()
                    await asyncio.sleep(0)
            targets.append(known)
        return targets

    @staticmethod
    def _of_row(rows: Rows, place: int, work: Callable[[], T]) -> T:
        """Run `work`; put the number of the first row whose queue is `rows.queues[place]` into the text of an
        error.
        """
        try:
            return work()
        except MSMQError as problem:
            text = f"row {rows.row_of(place)}: {problem.detail or problem}"
            raise error(problem.code, text) from None

    def _open(self, name: str) -> _Target:
        if not name:
            raise QueueNotFound("the row names no queue: fill the column queue, or give the parameter queue")
        if len(self._targets) >= MOST_QUEUES:
            raise InsufficientResources(f"one stage may name at most {MOST_QUEUES} queues")
        if "," in name or name[:3].upper() == "DL=":
            raise UnsupportedFormatNameOperation(
                "the name means several queues: write one row for each queue"
            )
        manager = self._manager
        handle = manager.open(name, Access.SEND, token=self._token)
        try:
            queue = handle.queue
            if queue.kind not in _TAKEN:
                raise UnsupportedAccessMode(f"{queue.name} does not accept messages from the bulk API")
            field = sent_field(handle.format_name)
            address = handle.destination_manager
            destination = Destination(
                address.bytes_le,
                field.kind,
                field.wire,
                self._transactional(queue),
                ReplyNames(manager.settings.known_as, manager.guid, address),
                queue.kind is not QueueKind.OUTGOING,
            )
        except BaseException:
            handle.close()
            raise
        return _Target(handle, destination)

    def _transactional(self, queue: Queue) -> bool:
        wanted = self._request.transactional
        if queue.kind is QueueKind.OUTGOING:
            return wanted is not False
        if wanted is not None and wanted != queue.transactional:
            takes = "takes transactional messages only" if queue.transactional else "is not transactional"
            raise TransactionUsage(f"{queue.name} {takes}")
        return queue.transactional


def _seen(working: asyncio.Task[None]) -> None:
    """Mark the exception of a task as retrieved, so that asyncio does not log it: the next call of the upload
    raises it, and after `abort` there is no next call.
    """
    if not working.cancelled():
        working.exception()


async def _result(completion: Completion[T]) -> T:
    if not completion.done:
        waiting = asyncio.get_running_loop().create_future()

        def wake(_: Completion[T]) -> None:
            if not waiting.done():
                waiting.set_result(None)

        completion.add_done_callback(wake)
        await waiting
    return completion.result()

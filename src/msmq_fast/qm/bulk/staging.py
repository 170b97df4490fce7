"""Staged publishing: a writer uploads messages in stages, which are invisible until it publishes the batch,
exactly once.

One small unit decides a publication. It writes the writer's fence, which is the last batch that the writer
has published, and a record that names the stages; it deletes the stages' own records. From then on the
publication completes, also after a restart (`qm/bulk/rollforward.py`).
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msmq_fast._native.queue import QueueCore
from msmq_fast._native.staging import ROW_PREFIX, release_reserved, reserve_again, row_key, sizes_by_queue
from msmq_fast.packet.malformed import Malformed
from msmq_fast.protocol.errors import AccessDenied, InsufficientResources, QueueDeleted, ServiceNotAvailable
from msmq_fast.qm.bulk.rollforward import PUBLICATION_PREFIX, Publication, RollForward
from msmq_fast.qm.bulk.stages import OpenStage, Part, Stage, Staged, StageState, check_number, check_writer
from msmq_fast.qm.services import Services
from msmq_fast.qm.transactions.transaction import Transactions
from msmq_fast.store.completion import Completion
from msmq_fast.store.errors import StoreError
from msmq_fast.store.schema import MetaName, Table
from msmq_fast.timing import earliest

__all__ = ["Fenced", "OpenStage", "Part", "Published", "StageNotFound", "Staged", "Staging"]

_log = logging.getLogger(__name__)

MOST_WAITING: Final = 50_000
"""Maximum number of stages, of all writers, that are open or wait to be published."""

MOST_STAGES: Final = 10_000
"""Maximum number of stages in one publication: the unit that decides it names them all."""

_SWEEP_SECONDS: Final = 3600.0
_IDENTIFIER: Final = 16
_LAST: Final = b"\xff" * 5  # behind the keys of the rows of a stage


class Fenced(Exception):
    """HTTP status 409 FENCED: the writer has already published a batch of a later epoch, or a batch of this
    epoch from another origin.
    """


class StageNotFound(Exception):
    """HTTP status 404 STAGE_NOT_FOUND: the stage does not exist, or no longer exists."""


class Published(NamedTuple):
    """The result of a publication.

    `dup`: True if this batch, or a later one of the same epoch, was published before; this call then
    published no messages. `rows`: number of messages of the batch. `last`: the latest batch of the epoch that
    was published.
    """

    dup: bool
    rows: int
    last: int


_Key = tuple[str, int, str]  # writer, batch, owner


@dataclass(slots=True)
class _Batch:
    """The stages of one batch that wait to be published, and when they expire.

    The stages expire together, since the tasks that upload them may run at very different times.
    """

    stages: dict[Stage, None] = field(default_factory=dict)  # in the order in which they came
    due: float = 0.0  # monotonic


_Waiting = tuple[Completion[Published], Callable[[], None]]


class _Fence(NamedTuple):
    """The fence of a writer: the last batch that the writer published."""

    epoch: int
    batch: int
    rows: int
    published_s: int  # Unix seconds
    owner: str
    origin: str = ""


class Staging:
    """The stages, writers and publications of a queue manager: `QueueManager.staging`.

    `lifetime`: how many seconds after the latest upload of a batch its unpublished stages are deleted.
    `writer_lifetime`: how many seconds after its latest publication a writer is forgotten.
    """

    def __init__(
        self, services: Services, transactions: Transactions, lifetime: float, writer_lifetime: float
    ) -> None:
        self._services = services
        self._transactions = transactions
        self._store = services.store
        self._records = services.records
        self._ledger = services.ledger
        self._lifetime = lifetime
        self._writer_lifetime = writer_lifetime
        self._sweep: float | None = None  # when idle writers are forgotten; None: there are no writers
        self._stages: dict[bytes, Stage] = {}
        self._open: dict[Stage, OpenStage] = {}
        self._idle: OrderedDict[_Key, _Batch] = OrderedDict()  # in the order in which they expire
        self._writers: dict[str, deque[_Waiting]] = {}  # publications under way and waiting, by writer
        self._rolling = RollForward(services)
        self._number = 0  # of the latest publication

    def __len__(self) -> int:
        return len(self._stages)

    def totals(self) -> tuple[int, int]:
        """Returns how many stages are open or wait to be published, and the total size of their packets in
        bytes.
        """
        return len(self._stages), sum(stage.bytes for stage in self._stages.values())

    # ---- stages

    def open(self, part: Part, *, owner: str = "", whole: bool = False) -> OpenStage:
        """Open a new stage.

        With `whole` the transactional messages of the stage are one transaction; otherwise each message is a
        transaction of its own. Several stages may have the same part and attempt: one of them is published,
        the others are discarded. Raises ValueError, SERVICE_NOT_AVAILABLE, and INSUFFICIENT_RESOURCES if
        there are MOST_WAITING stages.
        """
        self._services.require_ready()
        part.check()
        if len(self._stages) >= MOST_WAITING:
            raise InsufficientResources(
                f"{MOST_WAITING} stages are waiting to be published; that is the limit"
            )
        identifier = self._services.random_bytes(_IDENTIFIER)
        stage = Stage(identifier, part, owner, self._ledger.now_s)
        self._stages[identifier] = stage
        self._open[stage] = OpenStage(self._services, self._transactions, stage, self._ended, whole=whole)
        return self._open[stage]

    def _ended(self, stage: Stage) -> None:
        """Called when an open stage accepts no more messages. If the stage is ready, it now waits to be
        published; if it was aborted, it is forgotten and its rows are deleted.
        """
        self._open.pop(stage)
        if stage.state is StageState.READY:
            self._rest(stage, self._lifetime)
            return
        del self._stages[stage.identifier]
        self._rolling.discard(stage.identifier)

    def _rest(self, stage: Stage, seconds: float) -> None:
        """Add a ready stage to those that wait to be published. The whole batch of the stage expires
        `seconds` from now, after all other batches.
        """
        batch = self._idle.pop(_key(stage), None) or _Batch()
        batch.stages[stage] = None
        batch.due = self._services.monotonic() + seconds
        self._idle[_key(stage)] = batch

    def _wake(self, stage: Stage) -> None:
        """Remove a stage from those that wait to be published; it does not expire any more."""
        batch = self._idle[_key(stage)]
        del batch.stages[stage]
        if not batch.stages:
            del self._idle[_key(stage)]

    def _remove(self, stages: Iterable[Stage]) -> int:
        """Discards stages; returns how many. The caller must delete the records of these stages in the
        current unit.
        """
        count = 0
        for stage in stages:
            if stage.state is StageState.OPEN:
                self._open[stage].abort()
                count += 1
            elif stage.state is StageState.READY:
                stage.state = StageState.GONE
                del self._stages[stage.identifier]
                self._wake(stage)
                release_reserved(stage.reserved)
                self._rolling.discard(stage.identifier)
                count += 1
        return count

    def _behead(self, stages: Iterable[Stage]) -> None:
        """Delete the records of stages in the current unit. After a restart, the rows of a stage without a
        record are deleted unless the stage is published.
        """
        for stage in stages:
            self._store.writer.delete_record(Table.META, row_key(stage.identifier, 0))

    def discard(self, stages: Sequence[str], *, owner: str = "") -> Completion[int]:
        """Discard stages; skips those that are unknown, owned by another caller, or being published.

        Resolved with the number of discarded stages, once the deletion is durable.
        """
        self._services.require_ready()
        found = [self._stages.get(identifier) for identifier in map(_identifier, dict.fromkeys(stages))]
        return self._forget([stage for stage in found if stage is not None and stage.owner == owner])

    def _forget(self, stages: list[Stage]) -> Completion[int]:
        done = self._records.unit(lambda: self._behead(stages))
        count = self._remove(stages)
        return done.then(lambda _: Completion.of(count))

    # ---- publishing

    def publish(
        self,
        writer: str,
        epoch: int,
        batch: int,
        stages: Sequence[str],
        *,
        owner: str = "",
        origin: str = "",
        remember: bool = True,
    ) -> Completion[Published]:
        """Publish stages: put their messages into the queues, in the order of `stages`. Resolved when all
        messages are in their queues and durable.

        `origin`, if given, names the source that numbers the batches of an epoch: batch numbers of different
        origins cannot be compared. Without `remember` the writer's fence is neither checked nor stored, so
        that a repeated publication is not detected.

        Publications of one writer run one after the other. The stages of the batch that are not named here
        are discarded. Raises, or fails with: Fenced; StageNotFound; ValueError (a stage of another writer or
        batch, two attempts of one part, a stage twice, a number out of range); QUEUE_DELETED; ACCESS_DENIED
        (the writer belongs to another caller); SERVICE_NOT_AVAILABLE; MESSAGE_STORAGE_FAILED. In these cases
        no message becomes visible and the stages remain.
        """
        self._services.require_ready()
        check_writer(writer)
        check_number("epoch", epoch)
        check_number("batch", batch)
        identifiers = [_identifier(stage) for stage in stages]
        if len(identifiers) > MOST_STAGES:
            raise Malformed(
                f"one publication cannot have {len(identifiers)} stages; the limit is {MOST_STAGES}"
            )
        if len(set(identifiers)) != len(identifiers):
            raise Malformed("a stage is named twice")
        completion: Completion[Published] = Completion()

        def begin() -> None:
            completion.add_done_callback(lambda _: self._free(writer))
            try:
                self._decide(
                    writer, epoch, batch, identifiers, owner, origin if remember else None, completion
                )
            except Exception as problem:
                completion.fail(problem)

        if writer in self._writers:
            self._writers[writer].append((completion, begin))
        else:
            self._writers[writer] = deque()
            begin()
        return completion

    def _free(self, writer: str) -> None:
        """Start the writer's next publication after its current one has ended."""
        waiting = self._writers[writer]
        if waiting:
            waiting.popleft()[1]()
        else:
            del self._writers[writer]

    def _decide(
        self,
        writer: str,
        epoch: int,
        batch: int,
        identifiers: list[bytes],
        owner: str,
        origin: str | None,
        completion: Completion[Published],
    ) -> None:
        """Check a publication, and record it if it is valid. `origin` is None if the writer is not
        remembered.
        """
        siblings = [
            stage
            for stage in self._stages.values()
            if (stage.part.writer, stage.part.batch, stage.owner) == (writer, batch, owner)
        ]
        fence = None if origin is None else self._fence(writer)
        if fence is not None and fence.owner != owner:
            raise AccessDenied(f"the writer name {writer} belongs to another caller")
        if fence is not None and epoch < fence.epoch:
            raise Fenced(
                f"epoch {epoch} of the writer {writer} has ended: epoch {fence.epoch} has published batch"
                f" {fence.batch}; to publish again, use a greater epoch"
            )
        if fence is not None and epoch == fence.epoch and origin and fence.origin not in ("", origin):
            raise Fenced(
                f"batches of the writer {writer} in epoch {epoch} were published from {fence.origin}, up to"
                f" batch {fence.batch}: to publish from {origin}, use a greater epoch"
            )
        if fence is not None and epoch == fence.epoch and batch <= fence.batch:
            named = [self._stages[one] for one in identifiers if one in self._stages]
            mine = [stage for stage in named if (stage.part.writer, stage.owner) == (writer, owner)]
            self._forget(list(dict.fromkeys(mine + siblings)))
            completion.resolve(Published(dup=True, rows=0, last=fence.batch))
            return
        chosen = [self._chosen(identifier, writer, batch, owner) for identifier in identifiers]
        _check_parts(chosen)
        others = [stage for stage in siblings if stage not in chosen]
        publication = self._publication(writer, chosen)
        known = fence.origin if fence is not None and epoch == fence.epoch else ""
        record = [epoch, batch, publication.messages, self._ledger.now_s, owner, origin or known]

        def fill() -> None:
            if origin is not None:
                self._records.set_meta(MetaName.WRITER + writer.encode(), record)
            if publication.stages:
                self._store.writer.put_record(Table.META, publication.key, publication.record())
            self._behead(chosen + others)

        for stage in chosen:
            stage.state = StageState.PUBLISHING
            self._wake(stage)

        if self._sweep is None:
            self._sweep = self._services.monotonic() + _SWEEP_SECONDS

        def carried_out(done: Completion[int]) -> None:
            completion.resolve(Published(dup=False, rows=done.result(), last=batch))

        def decided(done: Completion[None]) -> None:
            problem = done.exception()
            if problem is not None:
                self._undecided(chosen)
                completion.fail(problem)
                return
            for stage in chosen:
                stage.state = StageState.GONE
                del self._stages[stage.identifier]
            self._remove(others)
            publication.done.add_done_callback(carried_out)
            if publication.stages:
                self._rolling.publish(publication)
            else:
                publication.done.resolve(0)

        try:
            unit = self._records.unit(fill)
        except Exception:
            self._undecided(chosen)
            raise
        unit.add_done_callback(decided)

    def _undecided(self, stages: list[Stage]) -> None:
        for stage in stages:
            stage.state = StageState.READY
            self._rest(stage, self._lifetime)

    def _chosen(self, identifier: bytes, writer: str, batch: int, owner: str) -> Stage:
        stage = self._stages.get(identifier)
        if stage is None or stage.state is not StageState.READY or stage.owner != owner:
            raise StageNotFound(
                f"stage {identifier.hex()} does not exist: it was discarded, it expired, or its upload is"
                " incomplete"
            )
        if (stage.part.writer, stage.part.batch) != (writer, batch):
            raise Malformed(
                f"the stage {stage.name} belongs to batch {stage.part.batch} of the writer"
                f" {stage.part.writer} and not to batch {batch} of {writer}"
            )
        if stage.lost:
            raise QueueDeleted(f"{stage.lost}, for which the stage {stage.name} has messages, was deleted")
        return stage

    def _publication(self, writer: str, stages: list[Stage]) -> Publication:
        reserved: dict[QueueCore, int] = {}
        for stage in stages:
            for core, size in stage.reserved.items():
                reserved[core] = reserved.get(core, 0) + size
        self._number += 1
        parts = [(stage.identifier, stage.rows) for stage in stages]
        return Publication(self._number, writer, sum(stage.messages for stage in stages), parts, reserved)

    def _fence(self, writer: str) -> _Fence | None:
        stored = self._records.meta(MetaName.WRITER + writer.encode())
        return None if stored is None else _Fence(*stored)

    # ---- time

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""
        first = next(iter(self._idle.values()), None)
        return earliest(None if first is None else first.due, self._rolling.next_deadline(), self._sweep)

    def expire(self, now: float) -> None:
        """Continue the decided publications, and discard the stages that have expired."""
        over: list[Stage] = []
        for batch in self._idle.values():
            if batch.due > now:
                break
            over += batch.stages
        for stage in over:
            _log.warning(
                "stage %s of batch %d of the writer %s was not published in %g s: its %d messages are lost",
                stage.name,
                stage.part.batch,
                stage.part.writer,
                self._lifetime,
                stage.messages,
            )
        if over:
            self._end(over)
        if self._sweep is not None and now >= self._sweep:
            self._sweep = now + _SWEEP_SECONDS
            self._forget_writers()
        self._rolling.expire(now)

    def _end(self, over: list[Stage]) -> None:
        """Discard the expired stages `over` in one unit or, if that raises, one by one; a stage that cannot
        be discarded stays.
        """
        try:
            self._forget(over)
        except StoreError:
            raise  # the store accepts nothing now: all of them are retried
        except Exception as error:
            self._services.faults.note("a stage that expired", error)
            if len(over) > 1:
                for stage in over:
                    self._end([stage])
            else:
                self._idle.pop(_key(over[0]), None)

    def _forget_writers(self) -> None:
        """Delete the fences of writers that have published nothing for `writer_lifetime`: most jobs use a
        writer name of their own and run only once.
        """
        before = self._ledger.now_s - self._writer_lifetime
        try:
            names = [
                name
                for name, stored in self._records.metas(MetaName.WRITER)
                if name.decode() not in self._writers and _Fence(*stored).published_s < before
            ]
        except (StoreError, TypeError, ValueError) as problem:
            _log.error("idle writers were not removed, because the record of one is damaged: %r", problem)
            return
        if names:

            def fill() -> None:
                for name in names:
                    self._records.delete_meta(MetaName.WRITER + name)

            self._records.unit(fill)

    def stop(self) -> None:
        """Accept no new work. Stages stay; the next start completes the decided publications."""
        for opened in list(self._open.values()):
            opened.abort()
        for waiting in self._writers.values():
            while waiting:
                waiting.popleft()[0].fail(ServiceNotAvailable("the queue manager is stopping"))

    # ---- recovery

    def recover(self) -> None:
        """Read stages and publications from the store, and reserve the quotas of their messages."""
        if self._store.tables.scan(Table.META, MetaName.WRITER, MetaName.WRITER + b"\xff", 1):
            self._sweep = self._services.monotonic() + _SWEEP_SECONDS
        publications: list[Publication] = []
        decided: dict[bytes, Publication] = {}
        first: dict[bytes, int] = {}  # rows that are being published
        for name, stored in self._records.metas(PUBLICATION_PREFIX):
            try:
                publication = Publication.load(name, stored)
            except (ValueError, TypeError) as problem:
                self._services.report_corrupt(
                    "stage", f"the record of publication {name.hex()} is damaged: {problem!r}"
                )
                continue
            self._number = max(self._number, publication.number)
            publications.append(publication)
            decided.update(dict.fromkeys((one for one, _, _ in publication.stages), publication))
        ready: list[Stage] = []
        lower = ROW_PREFIX
        while rows := self._store.tables.scan(Table.META, lower, ROW_PREFIX[:-1] + b"\x01", 1):
            key, value = rows[0]
            identifier = key[len(ROW_PREFIX) : len(ROW_PREFIX) + _IDENTIFIER]
            if identifier in decided:
                first.setdefault(identifier, int.from_bytes(key[len(ROW_PREFIX) + _IDENTIFIER :]))
                self._count(decided[identifier], value)
                lower = key + b"\0"
                continue
            if key == row_key(identifier, 0):
                self._load(identifier, ready)
            else:
                self._rolling.discard(identifier)
            lower = ROW_PREFIX + identifier + _LAST
        for publication in publications:
            publication.resume(first)
            self._resume(publication)
        for stage in sorted(ready, key=lambda stage: stage.created):
            age = min(max(self._ledger.now_s - stage.created, 0), self._lifetime)
            self._rest(stage, self._lifetime - age)

    def _resume(self, publication: Publication) -> None:
        self._writers[publication.writer] = deque()
        publication.done.add_done_callback(lambda _: self._free(publication.writer))
        self._rolling.publish(publication)

    def _count(self, publication: Publication, row: bytes) -> None:
        """Reserve quota again for the messages of a stored row of a publication, which are still to be put
        into their queues.
        """
        try:
            sums = sizes_by_queue(row)
        except ValueError:
            return  # it is reported when its turn comes
        for ordinal, size in sums.items():
            core = self._ledger.core(ordinal)
            if core is not None:
                reserve_again({core: size})
                publication.reserved[core] = publication.reserved.get(core, 0) + size

    def _load(self, identifier: bytes, ready: list[Stage]) -> None:
        try:
            stored = self._records.meta(row_key(identifier, 0))
            stage = Stage.load(identifier, stored, self._ledger.core)
        except (ValueError, TypeError, StoreError) as problem:
            self._services.report_corrupt(
                "stage", f"the record of stage {identifier.hex()} is damaged: {problem!r}"
            )
            return
        reserve_again(stage.reserved)
        self._stages[identifier] = stage
        ready.append(stage)


def _key(stage: Stage) -> _Key:
    return stage.part.writer, stage.part.batch, stage.owner


def _identifier(name: str) -> bytes:
    """Returns the identifier in the name of a stage. Raises ValueError if the name is invalid."""
    try:
        identifier = bytes.fromhex(name)
    except ValueError:
        identifier = b""
    if len(identifier) != _IDENTIFIER or identifier.hex() != name:
        raise Malformed(f"the name of a stage must have {2 * _IDENTIFIER} hexadecimal digits in lower case")
    return identifier


def _check_parts(stages: list[Stage]) -> None:
    parts: dict[int, Stage] = {}
    for stage in stages:
        other = parts.setdefault(stage.part.number, stage)
        if other is not stage:
            raise Malformed(
                f"the stages {other.name} and {stage.name} are two uploads of part {stage.part.number}"
            )

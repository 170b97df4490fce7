"""Moves published stages into their queues and deletes discarded stages from the store.

The work is done in small units, so that it does not delay other work. The next start resumes it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from msmq_fast._native.queue import QueueCore
from msmq_fast._native.staging import ROW_WEIGHT, drop, place, release_reserved, row_key, weigh
from msmq_fast._native.tables import StoreError
from msmq_fast.protocol.text import counted, printable
from msmq_fast.qm.services import Services
from msmq_fast.store.completion import Completion
from msmq_fast.store.records import cold
from msmq_fast.store.schema import Table

_log = logging.getLogger(__name__)

PUBLICATION_PREFIX: Final = b"pub\x00"
RETRY: Final = 1.0  # seconds until a failed unit is retried

_UNIT: Final = 2 * ROW_WEIGHT  # work of one unit
_SELDOM: Final = 8  # while stages are published, every eighth unit deletes rows
_PAGE: Final = 4  # rows that are read at a time
_LAST_ROW: Final = 0xFFFFFFFF
_NUMBER: Final = 4  # bytes of the number of a row, at the end of its key

Row = tuple[bytes, bytes]


class Publication:
    """A batch whose publication is decided and recorded. `stages` has, for each stage whose rows are not all
    in their queues yet: identifier, number of the last row that was processed, number of rows.

    `reserved` has the bytes of quota that the stages hold in each queue. `done` is resolved with the number
    of messages when all messages are in their queues.
    """

    def __init__(
        self,
        number: int,
        writer: str,
        messages: int,
        stages: list[tuple[bytes, int]],
        reserved: dict[QueueCore, int],
    ) -> None:
        self.number = number
        self.writer = writer
        self.messages = messages
        self.stages = deque((identifier, 0, rows) for identifier, rows in stages if rows)
        self.reserved = reserved
        self.gone = 0
        self.done: Completion[int] = Completion()

    def resume(self, first: dict[bytes, int]) -> None:
        """Resume after a restart. `first` has, for each stage, the number of the first row that is still to
        be placed; a stage that is not in `first` is complete.
        """
        self.stages = deque(
            (identifier, first[identifier] - 1, rows)
            for identifier, _, rows in self.stages
            if identifier in first
        )

    @property
    def key(self) -> bytes:
        """The key of this publication's record in META."""
        return PUBLICATION_PREFIX + self.number.to_bytes(8, "big")

    def record(self) -> bytes:
        """Returns the value of the record in META that makes the publication durable."""
        stages = [[identifier, rows] for identifier, _, rows in self.stages]
        return cold([self.writer, self.messages, stages])

    @classmethod
    def load(cls, name: bytes, stored: Any) -> Publication:
        """Read a publication from its record; `name` is the part of the record's key after the prefix. Raises
        ValueError or TypeError if the record is damaged.
        """
        writer, messages, stages = stored
        return cls(
            int.from_bytes(name), writer, messages, [(bytes(key), int(rows)) for key, rows in stages], {}
        )


class RollForward:
    """Puts the messages of published stages into their queues, and deletes the stored rows of discarded
    stages.

    Each unit of work serves one publication or one discarded stage; only one unit is pending at a time. The
    publications are served in turn, the discarded stages less often. Call `expire` when `next_deadline` is
    due.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._active: deque[Publication] = deque()
        self._dropping: deque[bytes] = deque()
        self._flying = False
        self._due = 0.0
        self._turn = 0

    def publish(self, publication: Publication) -> None:
        """Start to put the messages of a publication into their queues; the record of the publication must be
        durable.
        """
        self._active.append(publication)

    def discard(self, identifier: bytes) -> None:
        """Delete the rows of a stage that is no longer needed."""
        self._dropping.append(identifier)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None if there is no work, or while a unit is
        pending.
        """
        return self._due if not self._flying and (self._active or self._dropping) else None

    def expire(self, now: float) -> None:
        """If work is due, do one unit of work: put some messages of one publication into their queues, or
        delete some rows of one discarded stage.
        """
        if self._flying or now < self._due:
            return
        self._turn += 1
        try:
            if self._dropping and (not self._active or self._turn % _SELDOM == 0):
                self._drop(self._dropping[0])
            elif self._active:
                self._active.rotate(-1)
                self._place(self._active[-1])
        except (OverflowError, MemoryError, StoreError) as problem:
            if not self._services.store.writer.failed:
                _log.warning("staged messages are delayed: %s", problem)
            self._ended(1)
        except Exception as error:
            # Each publication has its turn by itself; so have the stages to be discarded.
            self._services.faults.note("staged messages", error)
            self._dropping.rotate(-1)
            self._ended(1)

    def _unit(self, then: Callable[[], None]) -> Callable[[int], None]:
        self._flying = True

        def ended(status: int) -> None:
            self._ended(status)
            if not status:
                then()

        return ended

    def _ended(self, status: int) -> None:
        self._flying = False
        self._due = self._services.monotonic() + RETRY if status else 0.0

    # ---- into the queues

    def _place(self, publication: Publication) -> None:
        rows, left = self._next_rows(publication)
        keys = [] if left else [publication.key]
        gone = 0

        def placed() -> None:
            publication.gone += gone
            publication.stages = left
            if not left:
                self._finish(publication)

        ended = self._unit(placed)
        try:
            _, gone = place(self._services.ledger, rows, keys, publication.reserved, ended)
        except BaseException:
            self._flying = False
            raise

    def _next_rows(self, publication: Publication) -> tuple[list[Row], deque[tuple[bytes, int, int]]]:
        """Returns the rows whose messages the next unit puts into their queues, and the value of
        `publication.stages` after this unit.
        """
        rows: list[Row] = []
        left = publication.stages.copy()
        work = 0
        while left:
            identifier, done, last = left[0]
            found = self._rows(identifier, done + 1)
            for key, value in found:
                try:
                    work += weigh(value)
                except ValueError as problem:
                    self._services.report_corrupt("stage", f"{problem}: its key is {key.hex()}")
                    done = int.from_bytes(key[-_NUMBER:])
                    continue
                if rows and work > _UNIT:
                    left[0] = identifier, done, last
                    return rows, left
                rows.append((key, value))
                done = int.from_bytes(key[-_NUMBER:])
            if done >= last:
                left.popleft()
            elif not found:
                self._services.report_corrupt(
                    "stage", f"{counted(last - done, 'row')} of stage {identifier.hex()} missing"
                )
                left.popleft()
            else:
                left[0] = identifier, done, last
        return rows, left

    def _rows(self, identifier: bytes, first: int) -> list[Row]:
        tables = self._services.store.tables
        upper = row_key(identifier, _LAST_ROW)
        return tables.scan(Table.META, row_key(identifier, first), upper, _PAGE)

    def _finish(self, publication: Publication) -> None:
        self._active.remove(publication)
        release_reserved(publication.reserved)
        if publication.gone:
            _log.warning(
                "%d messages of the writer %s were deleted with their queues",
                publication.gone,
                printable(publication.writer),
            )
        publication.done.resolve(publication.messages)

    # ---- out of the store

    def _drop(self, identifier: bytes) -> None:
        rows = self._rows(identifier, 0)
        if not rows:
            self._dropping.popleft()
            return
        ended = self._unit(lambda: None)
        try:
            drop(self._services.ledger, rows, ended)
        except BaseException:
            self._flying = False
            raise

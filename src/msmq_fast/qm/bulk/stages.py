"""A stage: stored messages of one writer that are not in any queue yet. Adds messages to a stage, and encodes
and decodes the record of a stage.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, NamedTuple

from msmq_fast._native.packetblock import PacketBlock
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.staging import Intake, Refused
from msmq_fast._native.tables import StoreError
from msmq_fast.packet.malformed import Malformed
from msmq_fast.protocol.errors import (
    InsufficientResources,
    MessageStorageFailed,
    MSMQError,
    OperationCancelled,
    error,
)
from msmq_fast.qm.handles.handle import refusal
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.records import storage_error
from msmq_fast.qm.services import Services
from msmq_fast.qm.transactions.transaction import Transactions
from msmq_fast.store.completion import Completion
from msmq_fast.store.records import cold

MOST_QUEUES: Final = 10_000
"""Maximum number of queues in one stage: its record names them all."""

_MOST_PENDING: Final = 2 << 20  # bytes on their way to the disk above which no more is taken in
_FEW_PENDING: Final = 1 << 20
_LONGEST_WRITER: Final = 200  # characters
_NUMBERS: Final = 1 << 63


class StageState(IntEnum):
    """The states of a stage."""

    OPEN = 1  # messages come in
    READY = 2  # durable: it can be published
    PUBLISHING = 3
    GONE = 4


class Staged(NamedTuple):
    """A complete and durable stage. `stage`: its name. `rows`: the number of its messages. `bytes`: the total
    size of their packets.
    """

    stage: str
    rows: int
    bytes: int


def check_writer(writer: str) -> None:
    """Raises ValueError if a string is not a valid writer name."""
    if not 0 < len(writer) <= _LONGEST_WRITER or not writer.isprintable():
        raise Malformed(f"the name of a writer must have 1 to {_LONGEST_WRITER} printable characters")


def check_number(name: str, value: int) -> None:
    """Raises ValueError if the number of an epoch, a batch, a part or an attempt is out of range. `name` says
    in the error text which of them `value` is.
    """
    if not 0 <= value < _NUMBERS:
        raise Malformed(f"{name} must be a number from 0 to 2^63-1, not {value}")


class Part(NamedTuple):
    """Identifies the content of a stage: the writer, its batch, the number of the part of the batch, and the
    attempt at uploading this part.
    """

    writer: str
    batch: int
    number: int
    attempt: int

    def check(self) -> None:
        """Raises ValueError if the writer name is not valid or a number is out of range."""
        check_writer(self.writer)
        check_number("batch", self.batch)
        check_number("part", self.number)
        check_number("attempt", self.attempt)


class Stage:
    """A stage: its state, and a description of its messages.

    `owner`: the caller that uploaded the stage. `created`: Unix seconds. `reserved`: the bytes of quota that
    the stage holds in each queue. `names`: the names of the queues of its messages, by queue ordinal. `rows`:
    the number of its rows in the store.
    """

    __slots__ = (
        "bytes",
        "created",
        "identifier",
        "messages",
        "names",
        "owner",
        "part",
        "reserved",
        "rows",
        "state",
    )

    def __init__(self, identifier: bytes, part: Part, owner: str, created: int) -> None:
        self.identifier = identifier
        self.part = part
        self.owner = owner
        self.created = created
        self.messages = self.bytes = self.rows = 0
        self.reserved: dict[QueueCore, int] = {}
        self.names: dict[int, str] = {}
        self.state = StageState.OPEN

    @property
    def name(self) -> str:
        """The name of the stage in the API: its identifier in hexadecimal."""
        return self.identifier.hex()

    @property
    def lost(self) -> str:
        """The name of a queue that has messages in this stage and was deleted since; empty if there is
        none.
        """
        alive = {core.ordinal for core in self.reserved if not core.gone}
        return next((name for ordinal, name in self.names.items() if ordinal not in alive), "")

    def head(self, rows: int) -> bytes:
        """Returns the record that makes the stage complete when it is written; `rows` is the number of the
        stage's rows in the store.
        """
        self.rows = rows
        self.names = {core.ordinal: self.names[core.ordinal] for core in self.reserved}
        queues = [[core.ordinal, self.names[core.ordinal], size] for core, size in self.reserved.items()]
        values = [*self.part, self.owner, self.created, self.messages, self.bytes, self.rows, queues]
        return cold(values)

    @classmethod
    def load(cls, identifier: bytes, stored: Any, core: Callable[[int], QueueCore | None]) -> Stage:
        """Read a stage from its record, without reserving quota; `core` finds the core of a queue by ordinal.
        Raises ValueError or TypeError if the record is damaged.
        """
        writer, batch, number, attempt, owner, created, messages, size, rows, queues = stored
        part = Part(writer, batch, number, attempt)
        part.check()
        stage = cls(identifier, part, owner, created)
        stage.messages, stage.bytes, stage.rows = messages, size, rows
        for ordinal, name, held in queues:
            stage.names[ordinal] = name
            found = core(ordinal)
            if found is not None:
                stage.reserved[found] = held
        stage.state = StageState.READY
        return stage


class OpenStage:
    """A stage that accepts messages.

    `ended` is called once: when the stage is ready, or when it was aborted and none of its writes is pending
    any more.
    """

    def __init__(
        self,
        services: Services,
        transactions: Transactions,
        stage: Stage,
        ended: Callable[[Stage], None],
        *,
        whole: bool,
    ) -> None:
        self._services = services
        self._transactions = transactions
        self._stage = stage
        self._ended: Callable[[Stage], None] | None = ended
        number = transactions.take_numbers() if whole else 0
        self._intake = Intake(services.ledger, stage.identifier, self._written, number)
        stage.reserved = self._intake.reserved
        self._done: Completion[Staged] | None = None
        self._headed = False

    def put(
        self, packets: PacketBlock, targets: array[int] | memoryview, queues: list[Queue], *, first: int = 0
    ) -> None:
        """Add messages: packet i is for the queue `queues[targets[i]]`. The stage owns `packets` from now on.

        Packets get their message ordinals and transaction numbers here, unless they have them. `first` is the
        row number of the first packet, for error texts. Aborts the stage and raises INSUFFICIENT_RESOURCES,
        QUEUE_DELETED or MESSAGE_STORAGE_FAILED if a message cannot be added. Raises OPERATION_CANCELLED if
        the stage was finished or discarded.
        """
        stage = self._stage
        if stage.state is not StageState.OPEN or self._done is not None:
            raise OperationCancelled("the stage is closed")
        try:
            if self._intake.status:
                raise storage_error(self._intake.status)
            ordinal = self._services.message_ordinals.take(len(packets))
            number = self._transactions.take_numbers(len(packets))
            stage.names.update((queue.ordinal, queue.name) for queue in queues)
            self._intake.put(packets, targets, [queue.core for queue in queues], ordinal, number)
        except Refused as refused:
            self.abort()
            problem = refusal(refused.result)
            queue = queues[targets[refused.index]]
            raise error(
                problem.code, f"row {first + refused.index}: {queue.name}: {problem.detail}"
            ) from None
        except Exception as problem:
            self.abort()
            raise _error(problem) from None
        stage.messages, stage.bytes = self._intake.messages, self._intake.bytes

    def room(self) -> Completion[None]:
        """Returns a completion that is resolved when more messages can be added, because few bytes wait to be
        written to the disk.
        """
        done: Completion[None] = Completion()
        writer = self._services.store.writer
        if writer.pending_bytes <= _MOST_PENDING:
            done.resolve(None)
        else:
            writer.when_room(_FEW_PENDING, lambda: done.resolve(None))
        return done

    def finish(self) -> Completion[Staged]:
        """Complete the stage; resolved when it is durable. Raises the errors that `put` raises, or the
        completion fails with them.
        """
        if self._stage.state is not StageState.OPEN or self._done is not None:
            raise OperationCancelled("the stage is closed")
        self._done = Completion()
        done = self._done
        self._end()
        return done

    def _end(self) -> None:
        try:
            self._headed = self._intake.end(self._stage.head)
        except Exception as problem:
            self._fail(_error(problem))

    def _written(self) -> None:
        """Process the end of store units with messages of this stage: fail the stage if a unit has failed;
        make the stage ready after the last unit if no more messages follow.
        """
        intake, stage = self._intake, self._stage
        if stage.state is StageState.GONE:
            self._gone()
        elif intake.status:
            self._fail(storage_error(intake.status))
        elif self._done is not None and not intake.flying:
            if not self._headed:
                self._end()
                return
            stage.state = StageState.READY
            self._tell()
            self._done.resolve(Staged(stage.name, stage.messages, stage.bytes))

    def _fail(self, problem: MSMQError) -> None:
        done, self._done = self._done, None
        self.abort()
        if done is not None:
            done.fail(problem)

    def abort(self) -> None:
        """Discard the stage: its messages are never published, and rows already written are deleted. No
        effect once the stage is ready.
        """
        if self._stage.state is StageState.OPEN:
            self._stage.state = StageState.GONE
            self._intake.forget()
            if self._done is not None:
                self._done.fail(OperationCancelled("the stage was discarded"))
            self._gone()

    def _gone(self) -> None:
        if not self._intake.flying:
            self._tell()

    def _tell(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            self._intake.close()
            ended(self._stage)


def _error(problem: Exception) -> MSMQError:
    if isinstance(problem, MSMQError):
        return problem
    if isinstance(problem, OverflowError):
        return InsufficientResources(str(problem))
    if isinstance(problem, StoreError):
        return MessageStorageFailed(str(problem))
    raise problem

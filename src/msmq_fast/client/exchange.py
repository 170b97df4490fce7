"""Batch operations of operators on many messages: list, move, copy, remove, send again, import.

One call handles one batch and returns the position that it reached; pass this position to the next call. The
changes of one batch are stored together or not at all. See `connection.admin.messages`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msmq_fast.client.queue import Queue
from msmq_fast.client.subject import Subject
from msmq_fast.client.transport import Requester
from msmq_fast.protocol.errors import MSMQError, error
from msmq_fast.protocol.frames import Frame


@dataclass(frozen=True, slots=True)
class Filter:
    """Selects messages; each must match all that is not None: a pattern for the label, the message class,
    arrival times in Unix microseconds, the message identifier and the correlation identifier (20 bytes each),
    the priority, or at most 10,000 lookup ids.
    """

    label: str | None = None
    message_class: int | None = None
    since_us: int | None = None
    until_us: int | None = None
    id: bytes | None = None
    correlation_id: bytes | None = None
    priority: int | None = None
    lookup_ids: tuple[int, ...] | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the filter as a map in the form of the application protocol."""
        given = {
            "label": self.label,
            "class": self.message_class,
            "since": self.since_us,
            "until": self.until_us,
            "id": self.id,
            "correlation_id": self.correlation_id,
            "priority": self.priority,
            "lookup_ids": self.lookup_ids,
        }
        return {name: value for name, value in given.items() if value is not None}


EVERYTHING = Filter()


@dataclass(frozen=True, slots=True)
class Stored:
    """A message as a queue holds it. `packet` is its UserMessage packet (MS-MQMQ), with all properties."""

    lookup_id: int
    arrived_us: int
    abort_count: int
    move_count: int
    packet: bytes
    reason: int = 0  # for a dead letter: the message class with the reason


@dataclass(frozen=True, slots=True)
class Page:
    """A batch of messages of a queue. `next` and `upto` are arguments for the next call: it continues after
    `next`, and leaves out messages that arrived after `upto`.
    """

    next: int
    upto: int
    finished: bool
    locked: int  # messages that a reader has locked, which are not shown, in the whole queue
    messages: list[Stored]

    @classmethod
    def from_wire(cls, reply: dict[str, Any]) -> Page:
        """Return the page that a reply of the application protocol describes."""
        messages = [Stored(*fields) for fields in reply["messages"]]
        return cls(reply["next"], reply["upto"], reply["finished"], reply["locked"], messages)


Plan = tuple[tuple[int, int], ...]
"""What a dry run would have added to queues up to now; its first batch gets an empty one."""


def _plan_of(given: list[list[int]] | None) -> Plan | None:
    return None if given is None else tuple((ordinal, size) for ordinal, size in given)


@dataclass(frozen=True, slots=True)
class Refused:
    """Messages that stay in their queue for the same reason, `error`."""

    error: MSMQError
    lookup_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The result of one batch. `count` and `size` are the number and the size of the messages that were
    moved, copied, removed or sent again. `refusals` maps each reason to the number of messages that stay for
    that reason; `refused` names these messages. `plan` is that of a dry run, for its next batch.
    """

    next: int
    upto: int
    finished: bool
    count: int
    size: int
    refusals: dict[str, int] = field(default_factory=dict)
    refused: tuple[Refused, ...] = ()
    plan: Plan | None = None

    @classmethod
    def from_wire(cls, reply: dict[str, Any]) -> Done:
        """Return the result that a reply of the application protocol describes."""
        return cls(
            reply["next"],
            reply["upto"],
            reply["finished"],
            reply["count"],
            reply["bytes"],
            reply["refusals"],
            tuple(Refused(error(code, detail), tuple(ids)) for code, detail, ids in reply.get("refused", ())),
            _plan_of(reply.get("plan")),
        )


class MessageAdmin(Subject):
    """Batch operations on the messages of this connection's queues.

    A batch examines at most `limit` messages that arrived after `after` (0: from the start) and up to `upto`
    (0: the newest message now). Pass `next` and `upto` of the result to the next call, as `after` and `upto`.
    """

    async def browse(
        self, queue: Queue, wanted: Filter = EVERYTHING, after: int = 0, upto: int = 0, limit: int = 1000
    ) -> Page:
        """Return the next messages of a queue in the order of arrival, without removing them. Raises
        AccessDenied, QueueDeleted.
        """
        reply = await queue.request(Frame.BROWSE, wanted.to_wire(), after, upto, limit)
        return Page.from_wire(reply)

    async def move(
        self,
        source: Queue,
        target: Queue,
        wanted: Filter = EVERYTHING,
        after: int = 0,
        upto: int = 0,
        limit: int = 1000,
        *,
        each: bool = False,
        plan: Plan | None = None,
    ) -> Done:
        """Move the next batch from one queue to another of the same queue manager. Message identifiers do not
        change.

        Raises the error of the target queue if that queue refuses the first message. With `each`, refused
        messages stay, and `refused` of the result names them. With a `plan`, which is empty for the first
        batch, nothing is changed; the result is that of `each`.
        """
        fields = [target.handle, False, wanted.to_wire(), after, upto, limit, None, each, plan]
        return Done.from_wire(await source.request(Frame.RELOCATE, *fields))

    async def copy(
        self,
        source: Queue,
        target: Queue,
        wanted: Filter = EVERYTHING,
        after: int | None = None,
        upto: int = 0,
        limit: int = 1000,
        *,
        job: bytes | None = None,
        each: bool = False,
        plan: Plan | None = None,
    ) -> Done:
        """Copy the next batch from one queue to another; the arguments are those of `move`, and `job`.

        `job` is 16 bytes that identify the whole copy operation. With it, the queue manager stores the
        progress of the operation, and an `after` of None continues from that progress, also after a crash.
        """
        fields = [target.handle, True, wanted.to_wire(), after, upto, limit, job, each, plan]
        return Done.from_wire(await source.request(Frame.RELOCATE, *fields))

    async def end_job(self, job: bytes) -> None:
        """Make the queue manager forget the progress of a finished copy; the same `job` then starts a new
        copy.
        """
        await self._link.request(Frame.END_JOB, [job])

    async def resubmit(
        self,
        dead_letters: Queue,
        wanted: Filter = EVERYTHING,
        after: int = 0,
        upto: int = 0,
        limit: int = 1000,
        *,
        plan: Plan | None = None,
    ) -> Done:
        """Send the next batch of dead letters to their original destinations again, and remove those that
        were sent. With a `plan`, which is empty for the first batch, nothing is changed.
        """
        reply = await dead_letters.request(Frame.RESUBMIT, wanted.to_wire(), after, upto, limit, plan)
        return Done.from_wire(reply)

    async def remove(
        self,
        queue: Queue,
        wanted: Filter = EVERYTHING,
        after: int = 0,
        upto: int = 0,
        limit: int = 1000,
        *,
        dry_run: bool = False,
    ) -> Done:
        """Remove the next batch of messages from a queue that is open for receiving, as `Queue.purge` does
        with all of them: senders that asked for it get a negative acknowledgment. With `dry_run`, return what
        would be removed, and change nothing.

        If `wanted` has lookup ids, `refused` names those that were not removed, each with the reason.
        """
        fields = [wanted.to_wire(), after, upto, limit, dry_run]
        return Done.from_wire(await queue.request(Frame.REMOVE, *fields))

    async def browse_outgoing(
        self, name: str, wanted: Filter = EVERYTHING, after: int = 0, upto: int = 0, limit: int = 1000
    ) -> Page:
        """Return the next messages of an outgoing queue, as `browse` does for an open queue. Raises
        QueueNotFound, AccessDenied.
        """
        fields = [name, wanted.to_wire(), after, upto, limit]
        return Page.from_wire(await self._link.request(Frame.BROWSE, fields))

    async def remove_outgoing(
        self,
        name: str,
        wanted: Filter = EVERYTHING,
        after: int = 0,
        upto: int = 0,
        limit: int = 1000,
        *,
        dry_run: bool = False,
    ) -> Done:
        """Remove the next batch of messages of an outgoing queue, as `remove` does for an open queue.
        Messages that are being sent stay. Raises QueueNotFound, AccessDenied.
        """
        fields = [name, wanted.to_wire(), after, upto, limit, dry_run]
        return Done.from_wire(await self._link.request(Frame.REMOVE, fields))

    async def open_import(self, job: bytes, *, anew: bool = False) -> Import:
        """Begin or continue the import that `job` (16 bytes) identifies; `anew` discards the progress of an
        earlier attempt.

        Raises AccessDenied; SharingViolation if the import is already running.
        """
        number, done = await self._link.request(Frame.OPEN_IMPORT, [job, anew])
        return Import(self._link, number, done)


class Import:
    """An import of the messages of a file. `done` is the number of records that an earlier attempt
    imported.
    """

    def __init__(self, link: Requester, number: int, done: int) -> None:
        self.done = done
        self._link = link
        self._number = number

    async def put(self, name: str, messages: list[Stored], *, skip: bool = False) -> tuple[int, int]:
        """Import the next records into a queue; returns (imported, skipped) when they are durable.

        With `skip`, messages that are already in the queue are not imported again. If the queue refuses a
        record, raises the error of the queue; the records before it remain imported.
        """
        first, self.done = self.done, self.done + len(messages)
        entries = [[m.packet, m.arrived_us, m.abort_count, m.move_count, m.reason] for m in messages]
        imported, skipped = await self._link.request(
            Frame.IMPORT, [self._number, name, first, entries, skip, False]
        )
        return imported, skipped

    async def end(self) -> None:
        """Finish the import: the queue manager forgets its progress."""
        await self._link.request(Frame.IMPORT, [self._number, None, self.done, [], False, True])

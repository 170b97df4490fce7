"""What an operator does with many messages: list, move, copy, send again, import. One batch a call.

A batch tells how far it came; the next call goes on there. Each batch that changes something is one durable
unit of the queue manager. See `connection.admin.messages`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msmq_fast.client.queue import Queue
from msmq_fast.client.subject import Subject
from msmq_fast.client.transport import Requester
from msmq_fast.protocol.frames import Frame


@dataclass(frozen=True, slots=True)
class Filter:
    """Which messages are meant: a pattern for the label, a class, times of arrival in Unix microseconds."""

    label: str | None = None
    message_class: int | None = None
    since_us: int | None = None
    until_us: int | None = None

    def to_wire(self) -> dict[str, Any]:
        """The filter map of the protocol."""
        given = {
            "label": self.label,
            "class": self.message_class,
            "since": self.since_us,
            "until": self.until_us,
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
    reason: int = 0  # of a dead letter: the message class that says why it is one


@dataclass(frozen=True, slots=True)
class Page:
    """A batch of a queue: the next one begins behind `next`; nothing that arrived after `upto` is shown."""

    next: int
    upto: int
    finished: bool
    locked: int  # messages that a reader has locked, which are not shown, in the whole queue
    messages: list[Stored]


@dataclass(frozen=True, slots=True)
class Done:
    """What one batch did: messages moved, copied or sent again, and why others stay."""

    next: int
    upto: int
    finished: bool
    count: int
    size: int
    refusals: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, reply: dict[str, Any]) -> Done:
        """Of a reply of the protocol."""
        return cls(
            reply["next"],
            reply["upto"],
            reply["finished"],
            reply["count"],
            reply["bytes"],
            reply["refusals"],
        )


class MessageAdmin(Subject):
    """Messages in batches, of the queues of one connection.

    A batch examines what arrived behind `after` (0: from the start) up to `upto` (0: what is there now), at
    most `limit` messages; `next` and `upto` of its result are where the next one begins.
    """

    async def browse(
        self, queue: Queue, wanted: Filter = EVERYTHING, after: int = 0, upto: int = 0, limit: int = 1000
    ) -> Page:
        """The next messages of a queue in the order of arrival; they stay. Raises AccessDenied,
        QueueDeleted.
        """
        reply = await queue.request(Frame.BROWSE, wanted.to_wire(), after, upto, limit)
        messages = [Stored(*fields) for fields in reply["messages"]]
        return Page(reply["next"], reply["upto"], reply["finished"], reply["locked"], messages)

    async def move(
        self,
        source: Queue,
        target: Queue,
        wanted: Filter = EVERYTHING,
        after: int = 0,
        upto: int = 0,
        limit: int = 1000,
    ) -> Done:
        """Move the next batch from one queue to another of the same queue manager. Identifiers stay.

        Raises the refusal of the target if it takes not even the first message.
        """
        fields = [target.handle, False, wanted.to_wire(), after, upto, limit]
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
    ) -> Done:
        """Copy the next batch, like `move`.

        With `job`, 16 bytes that name what is to be done, the queue manager keeps how far it is, and `after`
        None goes on there, also after a crash.
        """
        fields = [target.handle, True, wanted.to_wire(), after, upto, limit, job]
        return Done.from_wire(await source.request(Frame.RELOCATE, *fields))

    async def end_job(self, job: bytes) -> None:
        """The queue manager forgets a copy that is finished: the same job is new work from now on."""
        await self._link.request(Frame.END_JOB, [job])

    async def resubmit(
        self,
        dead_letters: Queue,
        wanted: Filter = EVERYTHING,
        after: int = 0,
        upto: int = 0,
        limit: int = 1000,
    ) -> Done:
        """Send the next batch to its original destinations again; what was sent leaves the dead letters."""
        reply = await dead_letters.request(Frame.RESUBMIT, wanted.to_wire(), after, upto, limit)
        return Done.from_wire(reply)

    async def open_import(self, job: bytes, *, anew: bool = False) -> Import:
        """Begin, or go on with, the import that `job` (16 bytes) names; `anew` forgets an earlier attempt.

        Raises AccessDenied, SharingViolation if it is under way.
        """
        number, done = await self._link.request(Frame.OPEN_IMPORT, [job, anew])
        return Import(self._link, number, done)


class Import:
    """An import of the messages of a file. `done`: how many records an earlier attempt brought in."""

    def __init__(self, link: Requester, number: int, done: int) -> None:
        self.done = done
        self._link = link
        self._number = number

    async def put(self, name: str, messages: list[Stored], *, skip: bool = False) -> tuple[int, int]:
        """Bring the next records into a queue; (imported, skipped), when they are durable.

        `skip` passes over messages that are in the queue. Raises what the queue refuses the first of them
        with; what came before is kept.
        """
        first, self.done = self.done, self.done + len(messages)
        entries = [[m.packet, m.arrived_us, m.abort_count, m.move_count, m.reason] for m in messages]
        imported, skipped = await self._link.request(
            Frame.IMPORT, [self._number, name, first, entries, skip, False]
        )
        return imported, skipped

    async def end(self) -> None:
        """All records are there: the queue manager forgets how far the import got."""
        await self._link.request(Frame.IMPORT, [self._number, None, self.done, [], False, True])

"""`msmq-fast trace`: shows where a message is and what happened to it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from msmq_fast.cli.classes import class_text
from msmq_fast.cli.messageid import message_id
from msmq_fast.cli.session import add_client, connect_to, converse
from msmq_fast.client.connection import Connection
from msmq_fast.client.places import places_of
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import Access
from msmq_fast.protocol.resources import MessageEvent
from msmq_fast.protocol.text import printable
from msmq_fast.protocol.verdicts import Verdict, actor_of, detail_of, verdict_of
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, coloured, show, show_table
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress

__all__ = ["COMMAND"]

_COLUMNS = ("event_time", "event", "queue", "detail")
_LONGEST = 100  # characters of a line of stdin
_FINE = frozenset(("received", "waiting", "journaled", "forwarded", "moved"))
# Where a packet has its identifier: SourceQM and MessageID of the UserHeader (MS-MQMQ 2.2.20.1), which
# follows the BaseHeader of 16 bytes.
_SOURCE, _ORDINAL = slice(16, 32), slice(56, 60)


def _identifier(text: str) -> bytes:
    """Return the bytes of a message identifier; b"" for "-", which means that it is in the first line of
    stdin.
    """
    return b"" if text == "-" else message_id(text)


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.message_id:
        try:
            arguments.message_id = message_id(sys.stdin.readline(_LONGEST))
        except argparse.ArgumentTypeError as error:
            raise CommandError(Exit.USAGE, str(error)) from None
    return converse(_trace, arguments)


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "message_id",
        metavar="MESSAGE-ID",
        type=_identifier,
        help=r"identifier as `send` and `peek` print it, {GUID}\NUMBER; - for stdin",
    )
    parser.add_argument(
        "--search", action="store_true", help="search every queue even if the event feed has the message"
    )
    parser.add_argument(
        "--at",
        metavar="ADDR",
        action="append",
        default=[],
        help="also trace it at this server, in the form of --endpoint and with the same token; repeatable",
    )
    add_client(parser)


@dataclass(frozen=True, slots=True)
class _Side:
    """What one queue manager knows of the message."""

    computer: str
    events: list[MessageEvent]
    places: list[dict[str, Any]]

    @property
    def knows(self) -> bool:
        return bool(self.events or self.places)

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.events, self.places)

    def as_map(self) -> dict[str, Any]:
        return {
            "events": [each.as_map() for each in self.events],
            "places": self.places,
            "verdict": self.verdict.as_map(),
        }


async def _trace(connection: Connection, arguments: argparse.Namespace) -> int:
    wanted: bytes = arguments.message_id
    side = await _side(connection, wanted, search=arguments.search)
    others = [found for at in arguments.at if (found := await _other(at, arguments)) is not None]
    shown_id = f"{{{UUID(bytes_le=wanted[:16])}}}\\{int.from_bytes(wanted[16:], 'little')}"
    if not any(one.knows for one in (side, *others)):
        verdict = side.verdict
        text = f"{shown_id}: neither in a queue nor in the event feed: {verdict.text}; {verdict.next}"
        raise CommandError(Exit.NOT_FOUND, text)
    if arguments.form is Form.JSON:
        answer = {"message_id": shown_id, **side.as_map()}
        if arguments.at:
            answer["others"] = [{"computer": one.computer, **one.as_map()} for one in others]
        show(answer, Form.JSON)
        return Exit.OK
    if others:
        _show_timeline([side, *others], arguments.form)
        return Exit.OK
    if side.events or arguments.form is Form.RAW:
        show_table([_row(event) for event in side.events], _COLUMNS, arguments.form)
    else:
        print("the event feed does not have this message; these queues hold it:")
    if arguments.form is Form.TABLE:
        _show_places(side)
    return Exit.OK


async def _side(connection: Connection, wanted: bytes, *, search: bool) -> _Side:
    events = await connection.admin.trace(wanted)
    places = await places_of(connection, wanted, events)
    if search or not events:
        known = {(place["queue"], place["lookup_id"]) for place in places}
        found = await _search(connection, wanted)
        places += [place for place in found if (place["queue"], place["lookup_id"]) not in known]
    return _Side(connection.computer_name, events, places)


async def _other(address: str, arguments: argparse.Namespace) -> _Side | None:
    """Trace the message at another server. None, with a line on stderr, if that server does not answer or
    refuses.
    """
    try:
        async with await connect_to(address, arguments) as connection:
            return await _side(connection, arguments.message_id, search=arguments.search)
    except MSMQError as error:
        problem = f"{address}: {error.detail or error}"
    except CommandError as error:
        problem = str(error)
    print(printable(f"msmq-fast trace: {problem}"), file=sys.stderr)
    return None


def _show_timeline(sides: Sequence[_Side], form: Form) -> None:
    """Print the events of all sides in the order of their times; each time is of the clock of its side."""
    rows = [_row(event) | {"computer": side.computer} for side in sides for event in side.events]
    rows.sort(key=lambda row: int(row["event_time"]))
    show_table(rows, ("event_time", "computer", *_COLUMNS[1:]), form)
    if form is Form.TABLE:
        for side in sides:
            print(f"at {printable(side.computer)}:")
            _show_places(side)


def _row(event: MessageEvent) -> dict[str, Any]:
    details = [detail_of(event, class_text)]
    actor = actor_of(event)
    details.append(f"by {actor}" if actor else "")
    return {
        "event_time": event.event_time,
        "event": event.event,
        "queue": event.queue,
        "detail": ", ".join(part for part in details if part),
    }


def _show_places(side: _Side) -> None:
    for place in side.places:
        where = f"{place['queue']} (lookup id {place['lookup_id']})"
        state = f": {place['state']}" if place["state"] else ""
        print(coloured(printable(f"now in {where}{state}"), "green"))
    verdict = side.verdict
    colour = "yellow" if verdict.cause not in _FINE else "bold"
    print(coloured(printable(f"{verdict.cause}: {verdict.text}"), colour))
    if verdict.next:
        print(printable(f"next: {verdict.next}"))


async def _search(connection: Connection, wanted: bytes) -> list[dict[str, Any]]:
    """Search all messages of all queues that the caller may read. Returns the queues that hold the message,
    in the form that `places_of` returns.
    """
    found: list[dict[str, Any]] = []
    queues = [queue for queue in await connection.admin.queues.all("all") if queue.kind != "outgoing"]
    with Progress("search", sum(queue.messages for queue in queues)) as progress:
        for info in queues:
            try:
                queue = await connection.open(info.name, Access.PEEK)
            except MSMQError:
                continue  # an internal queue, or one that the caller may not read
            after = upto = 0
            finished = False
            while not finished:
                page = await connection.admin.messages.browse(queue, after=after, upto=upto)
                after, upto, finished = page.next, page.upto, page.finished
                found += [
                    {
                        "queue": info.name,
                        "queue_kind": info.kind,
                        "lookup_id": each.lookup_id,
                        "state": "",
                        "stalled": "",
                    }
                    for each in page.messages
                    if each.packet[_SOURCE] + each.packet[_ORDINAL] == wanted
                ]
                progress.add(len(page.messages))
            await queue.close()
    return found


COMMAND = Command(
    name="trace",
    help="find out where a message is and what happened to it",
    description="""Shows the events of a message in the order in which they happened at this queue
        manager, as far back as the event feed reaches, and the queues that hold the message now: queues of
        programs, journals, outgoing queues and dead-letter queues. If the feed does not know the message,
        every queue is searched. Reading the feed needs the rights of an administrator.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example(r"'{ca67622c-7290-4658-b39b-f700fff64801}\627598800'", "an identifier that `send` printed"),
        Example("msmq-fast send orders --body x | {prog} -", "send a message, and see what happens to it"),
        Example(r"'{ca67622c-7290-4658-b39b-f700fff64801}\627598800' --json | jq .places", "where it is now"),
        Example("- --at tls://orders01.example.net:1803 < id.txt", "both sides in one timeline"),
    ),
)

"""The parts that commands on many messages share: the selection of messages, and the loop over batches."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from msmq_fast.cli.messageid import correlation_id, message_id
from msmq_fast.cli.session import exit_of
from msmq_fast.client.exchange import Done, Filter, Plan
from msmq_fast.protocol.classes import parse_class
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.output import show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress
from msmq_fast.terminal.values import duration, first_second, last_second, number

__all__ = ["BATCH", "Run", "add_arrival", "add_dry_run", "add_filter", "arrival_range", "message_filter"]

BATCH = 1000  # messages of one request
_DONE = {"move": "moved", "copy": "copied", "resubmit": "resubmitted", "purge": "purged"}
_REASONS = 10  # lines about what stays
_NAMED = 5  # lookup ids in such a line
_MOST_IDS = 10_000  # the application protocol takes no more


def _class(text: str) -> int:
    try:
        return parse_class(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a message class, such as NACK_Q_PURGED or 0xC001"
        ) from None


def add_arrival(group: argparse._ArgumentGroup) -> None:
    """Add the options for the time at which a message arrived."""
    group.add_argument(
        "--since",
        type=first_second,
        metavar="TIME",
        help="only messages that arrived at this time or later, such as 2026-01-31 or 2026-01-31T12:00 (UTC)",
    )
    group.add_argument(
        "--until",
        type=last_second,
        metavar="TIME",
        help="only messages that arrived up to this time; a day or a minute is included",
    )


def arrival_range(since: int | None, until: int | None) -> tuple[int | None, int | None]:
    """Return the Unix microseconds of the first and the last arrival for the seconds of `add_arrival`. Raises
    CommandError if the range is empty.
    """
    if since is not None and until is not None and since > until:
        raise CommandError(Exit.USAGE, "--since must not be later than --until")
    return (
        None if since is None else since * 1_000_000,
        None if until is None else until * 1_000_000 + 999_999,
    )


def add_filter(parser: Parser) -> None:
    """Add the options that select messages."""
    group = parser.add_argument_group("selection")
    group.add_argument(
        "--label", metavar="GLOB", help="only messages whose label matches a pattern with * ? and []"
    )
    group.add_argument(
        "--class",
        dest="message_class",
        type=_class,
        metavar="NAME",
        help="only messages of this class; for dead letters, only those with this class as their reason",
    )
    older = group.add_argument(
        "--older-than",
        dest="older",
        type=duration(),
        metavar="TIME",
        help="only messages that arrived at least this long ago",
    )
    newer = group.add_argument(
        "--newer-than",
        dest="newer",
        type=duration(),
        metavar="TIME",
        help="only messages that arrived at most this long ago",
    )
    add_arrival(group)
    parser.add_former(older, "--older")
    parser.add_former(newer, "--newer")
    group.add_argument(
        "--lookup-id",
        dest="lookup_ids",
        type=number(0, 2**64 - 1),
        action="append",
        metavar="N",
        help="only the message with this lookup id, as `peek` prints it; several options select several",
    )
    group.add_argument(
        "--id",
        type=message_id,
        metavar="ID",
        help="only the message with this identifier, as `send` prints it",
    )
    group.add_argument(
        "--correlation-id",
        type=correlation_id,
        metavar="ID",
        help="only answers to, and acknowledgments of, the message with this identifier",
    )
    group.add_argument("--priority", type=number(0, 7), metavar="N", help="only messages of this priority")
    group.add_argument("--limit", type=number(1, 2**63), metavar="N", help="at most N messages")


def add_dry_run(parser: Parser, about: str) -> None:
    """Add `--dry-run`."""
    parser.add_argument("--dry-run", action="store_true", help=about)


def message_filter(arguments: argparse.Namespace, now: float) -> Filter:
    """Return the filter for the options of `add_filter` at the time `now` (Unix seconds). Raises CommandError
    for too many lookup ids and for an empty range of times.
    """
    lookup_ids = arguments.lookup_ids
    if lookup_ids is not None and len(lookup_ids) > _MOST_IDS:
        raise CommandError(Exit.USAGE, f"--lookup-id may be given at most {_MOST_IDS} times")
    since, until = arrival_range(arguments.since, arguments.until)
    if arguments.newer is not None:
        since = max(since or 0, int((now - arguments.newer) * 1e6))
    if arguments.older is not None:
        oldest = max(0, int((now - arguments.older) * 1e6))
        until = oldest if until is None else min(until, oldest)
    return Filter(
        arguments.label,
        arguments.message_class,
        since,
        until,
        arguments.id,
        arguments.correlation_id,
        arguments.priority,
        None if lookup_ids is None else tuple(lookup_ids),
    )


class Run:
    """One run of a command that moves, copies, removes or sends messages, batch by batch, until no message is
    left or --limit is reached. `show` prints the totals and, for each reason, how many messages were left in
    the queue.
    """

    def __init__(self, title: str, arguments: argparse.Namespace, total: int) -> None:
        self._title = title
        self._arguments = arguments
        self._left: int | None = arguments.limit
        self._size = 0
        self._refusals: Counter[str] = Counter()
        self.plan: Plan | None = () if arguments.dry_run else None
        """What a dry run has planned up to now; None otherwise."""
        self._stay: dict[str, list[int]] = {}  # some lookup ids, by reason
        self._problem: MSMQError | None = None
        self.progress = Progress(title, total if self._left is None else min(total, self._left))

    @property
    def complete(self) -> bool:
        """Whether all batches ran without an error."""
        return self._problem is None

    async def repeat(self, batch: Callable[[int, int, int], Awaitable[Done]]) -> None:
        """Call `batch` for the messages of one queue until it reports the end. An error that happens before
        any message was processed is raised at once. A later error ends the run, and `show` raises it as a
        CommandError.
        """
        after = upto = 0
        while self._problem is None and (self._left is None or self._left):
            try:
                done = await batch(after, upto, BATCH if self._left is None else min(self._left, BATCH))
            except MSMQError as error:
                if not self.progress.count:
                    raise
                self._problem = error
                break
            after, upto, self.plan = done.next, done.upto, done.plan
            self._size += done.size
            self._refusals.update(done.refusals)
            for one in done.refused:
                self._stay.setdefault(str(one.error), []).extend(one.lookup_ids[: _NAMED + 1])
            self.progress.add(done.count)
            if self._left is not None:
                self._left -= done.count
            if done.finished:
                break

    def show(self) -> int:
        """Print one line with the totals; returns the exit code. Raises CommandError if an error ended the
        run early.
        """
        summary: dict[str, Any] = {
            _DONE[self._title]: self.progress.count,
            "bytes": self._size,
            "refused": self._refusals.total(),
            "seconds": round(self.progress.seconds, 3),
        }
        if self._arguments.dry_run:
            summary["dry_run"] = True
        show(summary, self._arguments.form)
        for reason, count in self._refusals.most_common(_REASONS):
            line = f"msmq-fast {self._arguments.command}: {count} stay: {reason}{self._named(reason)}"
            print(line, file=sys.stderr)
        if self._problem is not None:
            text = f"not complete; run the same command again to continue: {self._problem}"
            raise CommandError(exit_of(self._problem), text)
        return Exit.REFUSED if self._refusals else Exit.OK

    def _named(self, reason: str) -> str:
        """Return the lookup ids that stay for a reason, in words; empty if the command did not select any."""
        if self._arguments.lookup_ids is None or reason not in self._stay:
            return ""
        shown = self._stay[reason]
        more = ", …" if len(shown) > _NAMED else ""
        return f" (lookup id {', '.join(map(str, shown[:_NAMED]))}{more})"

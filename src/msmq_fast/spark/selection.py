"""Selects the queues and queue managers that a query reads, and the position at which it begins in each
queue.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msmq_fast.client.bulk.client import Batches, Bounds, BulkClient, BulkError, QueueBounds
from msmq_fast.spark.losses import SourceError
from msmq_fast.spark.offsets import EARLIEST
from msmq_fast.spark.options import OptionError, Options

_SHOWN: Final = 200  # characters of names in a progress report
_LONGEST_SELECTION: Final = 4000
"""Characters of a list of names that an offset stores; of a longer one it stores a digest."""
_LATEST_NUMBER, _EARLIEST_NUMBER = -1, -2


@dataclass(frozen=True)
class Position:
    """A position in a queue or in the event feed: the earliest, the latest, a number, or the first row at or
    after a time.
    """

    kind: str  # earliest, latest, number or time
    value: int = 0  # the number, or microseconds since 1970


def position_options(which: str) -> tuple[str, str, str]:
    """Returns the names of the options that say where a query begins ("starting") or ends ("ending")."""
    return f"{which}Offsets", f"{which}Timestamp", f"{which}OffsetsByTimestamp"


class Positions:
    """The starting or ending positions of a query, from the options `startingOffsets`, `startingTimestamp`
    and `startingOffsetsByTimestamp`, or the three whose names begin with `ending`.
    """

    def __init__(self, options: Options, which: str, default: str) -> None:
        """`which` is "starting" or "ending"; `default` is the position if none of the options is given.
        Raises OptionError if options exclude each other, or a value is invalid.
        """
        offsets, timestamp, times = position_options(which)
        self._option = offsets
        self._default = Position(default)
        self._single: dict[str, Position] = {}
        self._used: set[str] = set()
        text, moment, moments = options[offsets], options[timestamp], options[times]
        if text is not None and moment is not None:
            raise OptionError(f"options {offsets!r} and {timestamp!r} cannot be combined")
        if moment is not None:
            self._default = Position("time", moment * 1000)
        elif isinstance(text, str):
            self._default = Position(text)
        if isinstance(text, dict):
            self._read(text, "", self._numbered)
        if moments is not None:
            if isinstance(text, dict):
                raise OptionError(f"options {offsets!r} and {times!r} cannot both name queues")
            self._option = times
            self._read(moments, "", self._timed)

    @property
    def single(self) -> Position | None:
        """The position that applies to all queues; None if queues must be looked at one by one, because the
        option names queues or a time.
        """
        return None if self._single or self._default.kind == "time" else self._default

    def of(self, manager: Bounds, url: str, queue: QueueBounds | None) -> Position:
        """Returns the position for one queue of the queue manager at `url`, or for its events if `queue` is
        None. Names are not case-sensitive.
        """
        names = ["events"] if queue is None else _spellings(queue.name, manager.name)
        for prefix in (url, manager.name, manager.qm, ""):
            for name in names:
                key = f"{prefix}/{name}".lower()
                if key in self._single:
                    self._used.add(key)
                    return self._single[key]
        return self._default

    def check_reached(self, at: int, following: int, where: str) -> None:
        """Raises OptionError if a query would begin at a number `at` that is greater than `following`, the
        next number that the queue manager will assign. Such a position looks as if the store had been
        restored to an earlier state. `where` names the queue in the text of the error.
        """
        if at > following:
            raise OptionError(
                f"option {self._option!r}: {at} for {where} is too large, because the next number will be "
                f"{following}; use -1 (latest)"
            )

    def check_used(self) -> None:
        """Raises OptionError if a name in the option was not used for any queue of this query. Such a name is
        probably misspelt.
        """
        unused = sorted(set(self._single) - self._used)
        if unused:
            name = unused[0].strip("/")
            raise OptionError(f"option {self._option!r} names {name!r}, which is not a queue of this query")

    def _read(self, values: Mapping[str, Any], prefix: str, position: Callable[[str, Any], Position]) -> None:
        for name, value in values.items():
            if isinstance(value, dict) and not prefix:
                self._read(value, name, position)
            else:
                self._single[f"{prefix}/{name}".lower()] = position(name, value)

    def _numbered(self, name: str, value: Any) -> Position:
        if type(value) is not int or value < _EARLIEST_NUMBER:
            raise OptionError(
                f"option {self._option!r}: {name!r} must have a number, -2 (earliest) or -1 (latest)"
            )
        named = {_EARLIEST_NUMBER: Position("earliest"), _LATEST_NUMBER: Position("latest")}
        return named.get(value, Position("number", value))

    def _timed(self, name: str, value: Any) -> Position:
        if type(value) is not int or value < 0:
            raise OptionError(f"option {self._option!r}: {name!r} must have milliseconds since 1970")
        return Position("time", value * 1000)


def _spellings(path: str, manager: str) -> list[str]:
    """Returns the spellings by which options may name a queue: its path name in full, without the computer,
    with "." as the computer, and without `private$`.
    """
    local = path.split("\\", 1)[1] if path.lower().startswith(manager.lower() + "\\") else path
    short = local[len("private$\\") :] if local.lower().startswith("private$\\") else local
    return [path, local, f".\\{local}", short]


class Selection:
    """The queues that the options `subscribe`, `subscribePattern` and `assign` select."""

    def __init__(self, options: Options) -> None:
        """Raises OptionError if several of these options are given, if none is given although the content
        requires one, or if a value is invalid.
        """
        self.content: str = options["content"]
        given = [name for name in ("subscribe", "subscribePattern", "assign") if options[name] is not None]
        optional = self.content in ("events", "deadletter")
        if len(given) > 1:
            raise OptionError(f"options {given[0]!r} and {given[1]!r} cannot be combined")
        if given and self.content == "events":
            raise OptionError(
                f"option {given[0]!r} cannot be combined with content=events: the feed covers all queues"
            )
        if not given and not optional:
            raise OptionError(
                "no queue is selected: give one of the options 'subscribe', 'subscribePattern', 'assign'"
            )
        self.pattern: str | None = options["subscribePattern"]
        self._everywhere = _names(options["subscribe"] or "", "subscribe") if "subscribe" in given else []
        self._assigned: dict[str, list[str]] = {}
        for url, names in (options["assign"] or {}).items():
            if isinstance(names, str):
                names = names.split(",")
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise OptionError('option \'assign\' must be like {"msmq+bulk://host:1802": ["orders"]}')
            self._assigned[url.rstrip("/").lower()] = _names(",".join(names), "assign")

    def __str__(self) -> str:
        """What is read, for people; a long list of names is cut."""
        if self.content == "events":
            return "events"
        names = sorted({name for some in self._assigned.values() for name in some} | set(self._everywhere))
        shown = self.pattern or ",".join(names) or "all queues"
        return f"{self.content} of {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}"

    def check_urls(self, urls: Iterable[str]) -> None:
        """Raises OptionError if the option `assign` does not have the same addresses as the option `url`
        (`urls`).
        """
        if self._assigned and set(self._assigned) != {url.lower() for url in urls}:
            raise OptionError(
                "option 'assign' must have one entry for each address in option 'url', and no other"
            )

    def covers(self, path: str, manager: str, url: str) -> bool:
        """Returns whether the options select a queue with this path name, even if it does not exist."""
        path = re.sub(";journal$", "", path, flags=re.IGNORECASE) if self.content == "journal" else path
        if self.pattern is not None:
            return re.fullmatch(self.pattern, path, re.IGNORECASE) is not None
        names = {name.lower() for name in self._assigned.get(url.lower(), self._everywhere)}
        if not names or any("=" in name for name in names):  # a format name may be that of any queue
            return True
        return not names.isdisjoint(name.lower() for name in _spellings(path, manager))

    def names_at(self, url: str) -> list[str]:
        """Returns the names of the queues at one address; none if a pattern selects the queues."""
        return self._assigned.get(url.lower(), self._everywhere)

    def described(self, url: str) -> dict[str, str]:
        """Returns the selection at one address in the form that offsets store: equal for equal selections,
        whatever the order of names.
        """
        if self.pattern is not None:
            return {"content": self.content, "pattern": self.pattern}
        names = ",".join(sorted(name.lower() for name in self.names_at(url)))
        if len(names) > _LONGEST_SELECTION:
            return {"content": self.content, "digest": hashlib.sha256(names.encode()).hexdigest()}
        return {"content": self.content, "names": names}

    def look(
        self,
        client: BulkClient,
        *,
        tolerant: bool,
        since: int | None = None,
        seen: int | None = None,
        removals: int | None = None,
    ) -> Bounds:
        """Returns the bounds of the selected queues of one queue manager; for `since`, `seen` and `removals`
        see `BulkClient.bounds`. `tolerant`: queues that do not exist are left out; otherwise they raise
        QueueNotFound.

        Other exceptions of the client are passed on.
        """
        names = [] if self.pattern is not None else self.names_at(client.endpoint.url)
        return client.bounds(
            names,
            pattern=self.pattern,
            content=self.content,
            since=since,
            seen=seen,
            removals=removals,
            skip_missing=tolerant,
        )


def selected_before(client: BulkClient, described: Mapping[str, str]) -> frozenset[str]:
    """Returns the GUIDs of the queues that an earlier run of the query selected, as its offset describes the
    selection. Raises SourceError if the offset has only a digest of it.
    """
    content, names = described.get("content", "messages"), described.get("names")
    if "pattern" in described:
        found = client.bounds(pattern=described["pattern"], content=content)
    elif names is not None:
        wanted = [name for name in names.split(",") if name]
        found = client.bounds(wanted, content=content, skip_missing=True)
    else:
        raise SourceError(
            "the checkpoint was written with another list of queues (option 'subscribe' or 'assign'), which "
            f"is too long to be stored there (over {_LONGEST_SELECTION} characters): restore the list, use "
            "option 'subscribePattern', or use a new checkpointLocation"
        )
    return frozenset(queue.guid for queue in found.queues)


def _names(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise OptionError(f"option {option!r} names no queue")
    if len({name.lower() for name in names}) < len(names):
        raise OptionError(f"option {option!r} names a queue twice")
    return names


def resolve(
    client: BulkClient, bounds: Bounds, queue: QueueBounds | None, position: Position, content: str
) -> int:
    """Returns the arrival number at `position` in a queue, or the event number at `position` in the event
    feed if `queue` is None.
    """
    first, stop = (EARLIEST, bounds.next) if queue is not None else (bounds.feed_first, bounds.feed_next)
    if position.kind == "earliest":
        return first
    if position.kind == "latest":
        return stop
    if position.kind == "number":
        return position.value
    low, high = first, stop
    while low < high:  # binary search for the lowest number from which nothing is earlier than the time
        middle = (low + high) // 2
        at = _first_at(client, queue, middle, high, content)
        if at is None:
            high = middle
        elif at[1] < position.value:
            low = at[0] + 1
        else:
            high = middle
    return low


def _first_at(
    client: BulkClient, queue: QueueBounds | None, start: int, stop: int, content: str
) -> tuple[int, int] | None:
    """Returns (number, time in Unix microseconds) of the first row with start <= number < stop; None if there
    are no such rows.
    """
    if queue is None:
        return _first_of(client.events(start, start + 1, columns="feed_seq,event_time"))
    while (plan := client.plan(queue.name, start, stop, content=content, max_rows=1)).rows:
        rows = client.rows(queue.name, start, plan.stop, content=content, columns="arrival_seq,arrived_time")
        found = _first_of(rows)
        if found is not None:
            return found  # otherwise another reader has received it meanwhile: query the next one
    return None


def _first_of(batches: Batches) -> tuple[int, int] | None:
    found = None
    for batch in batches:  # read to the end: the server reports a stream that is closed early as a fault
        if batch.num_rows and found is None:
            found = batch.column(0)[0].as_py(), batch.column(1).cast("int64")[0].as_py()
    return found


def explain(
    error: BulkError,
    url: str,
    *,
    right: str = "the user of the token needs the peek right (to remove: the receive right)",
) -> str:
    """Return an error of a queue manager's bulk API as one line, with a remedy if one is known."""
    hints = {
        "UNAUTHORIZED": "give option 'auth.token' or 'auth.tokenFile'",
        "ACCESS_DENIED": right,
        "NOT_READY": f"is the queue manager running, and is {url} its admin port?",
        "NO_ARROW": "install msmq-fast[bulk] on the server",
        "STAGE_NOT_FOUND": "bulk.stage_lifetime of the server must be longer than any task takes",
    }
    hint = hints.get(error.code)
    return f"{error} ({hint})" if hint else str(error)

"""Offsets of streaming queries as stored in checkpoints, and the division of a limit among queues. Does no
I/O.

An offset grows with the number of queues that changed, not with the number of queues that a query reads:

1. Arrival numbers come from one counter of the queue manager, so one number (`Others.at`) is the position in
   all queues that have been read to their end.
2. Only queues with rows in the batch, and those that lag behind that number, have a position of their own.
3. Queues that were created later are recognised by their ordinals, which only grow (`Others.seen`), deleted
   ones by the number of queues (`Others.count`).

Offsets of version 1, of earlier releases, name every queue and have no `Others`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

VERSION: Final = 2
READABLE: Final = (1, VERSION)
EARLIEST: Final = 0
FEED: Final = "feed"
"""Used instead of a queue's GUID if events are read."""


class OffsetError(ValueError):
    """Raised if this data source cannot use the offset in a checkpoint."""


class Spot(NamedTuple):
    """The position of a query in one queue: the batch that ends at this position reads the numbers from
    `begin` up to but not including `end`.

    The numbers are arrival numbers, delivery numbers or event numbers, depending on the mode of the query.
    `rows` is the number of rows that the batch was planned to read.
    """

    path: str
    begin: int
    end: int
    rows: int = 0


@dataclass(frozen=True)
class Others:
    """What an offset says about all queues of a queue manager together.

    `at`: the position in queues with ordinals up to `seen` that have none of their own. `count`: the number
    of queues of the query with such ordinals. `removals`: the number of queues that had been deleted since
    the server started. `selection`: the options that selected the queues (`Selection.described`).
    """

    at: int
    seen: int
    count: int
    removals: int
    selection: dict[str, str]


@dataclass(frozen=True)
class ManagerSpot:
    """The position of a query in one queue manager. `incarnation`: that of its store. `started`: a number
    that is new at each start of its server. `queues`: the positions in queues that have one of their own, by
    GUID. `others`: that of all others; None in mode events, and in offsets of version 1, which name every
    queue.

    `late`: the values of `QueueBounds.late` when the batch was planned, by GUID, without zeros: how many
    messages, since the server started, had entered a queue at numbers that readers may already have passed.
    """

    name: str
    incarnation: int
    started: int
    queues: dict[str, Spot]
    others: Others | None = None
    late: dict[str, int] = field(default_factory=dict)

    @property
    def lowest(self) -> int:
        """The lowest position in any queue: no message below it is still to be read."""
        if self.others is None:
            return EARLIEST
        return min(self.others.at, min((spot.end for spot in self.queues.values()), default=self.others.at))

    def end_of(self, queue: str, ordinal: int) -> int:
        """The position in a queue, given by its GUID and its ordinal; EARLIEST in a queue that is newer than
        the offset.
        """
        spot = self.queues.get(queue)
        if spot is not None:
            return spot.end
        return self.others.at if self.others is not None and ordinal <= self.others.seen else EARLIEST

    def to_json(self) -> dict[str, Any]:
        """Returns the position as dicts, numbers and strings, with keys in a fixed order."""
        found: dict[str, Any] = {"name": self.name, "inc": self.incarnation, "start": self.started}
        if self.others is not None:
            others = self.others
            found |= {
                "at": others.at,
                "seen": others.seen,
                "count": others.count,
                "gone": others.removals,
                "sel": dict(sorted(others.selection.items())),
            }
        if self.late:
            found["late"] = dict(sorted(self.late.items()))
        queues = sorted(self.queues.items())
        found["q"] = {
            queue: {"path": spot.path, "from": spot.begin, "to": spot.end, "rows": spot.rows}
            for queue, spot in queues
        }
        return found

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> ManagerSpot:
        """Returns the position that `to_json` returned, or that of version 1."""
        queues = {
            queue: Spot(s["path"], int(s["from"]), int(s["to"]), int(s["rows"]))
            for queue, s in entry["q"].items()
        }
        late = {queue: int(s["late"]) for queue, s in entry["q"].items() if s.get("late")}
        late |= {queue: int(count) for queue, count in entry.get("late", {}).items()}
        others = None
        if "at" in entry:
            others = Others(
                at=int(entry["at"]),
                seen=int(entry["seen"]),
                count=int(entry["count"]),
                removals=int(entry["gone"]),
                selection=dict(entry["sel"]),
            )
        return cls(entry["name"], int(entry["inc"]), int(entry["start"]), queues, others, late)


@dataclass(frozen=True)
class Offset:
    """The position of a query. `mode` is keep, remove or events; numbers of one mode are invalid in another.

    `subscription` is the subscription to which delivery numbers belong (mode remove); "" if unknown.
    """

    mode: str
    managers: dict[str, ManagerSpot] = field(default_factory=dict)
    subscription: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns the offset as dicts, numbers and strings, with keys in a fixed order, because Spark
        compares offsets as JSON text.
        """
        return {
            "v": VERSION,
            "mode": self.mode,
            **({"sub": self.subscription} if self.subscription else {}),
            "qms": {guid: manager.to_json() for guid, manager in sorted(self.managers.items())},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str, mode: str) -> Offset:
        """Return the offset that `to_json` returned. Raises OffsetError if `value` is damaged, or of another
        version or mode.
        """
        try:
            values = json.loads(value) if isinstance(value, str) else value
            version, found = values["v"], values["mode"]
            if version not in READABLE:
                raise OffsetError(
                    f"the checkpoint has offsets of version {version}; this release reads versions up to "
                    f"{VERSION}"
                )
            if found != mode:
                raise OffsetError(
                    f"the checkpoint belongs to a query in mode {found!r}, this one is in mode {mode!r} "
                    "(options onSourceCommit and content): use a new checkpointLocation"
                )
            managers = {guid: ManagerSpot.from_json(entry) for guid, entry in values["qms"].items()}
            subscription = values.get("sub", "")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, OffsetError):
                raise
            raise OffsetError(f"the checkpoint has no valid offset of this data source: {error!r}") from None
        return cls(mode, managers, subscription)


class Share(NamedTuple):
    """The maximum number of rows and bytes that one queue contributes to a batch; None means no limit."""

    rows: int | None
    bytes: int | None


def allot(
    backlogs: Sequence[tuple[int, int]], max_rows: int | None, max_bytes: int | None, turn: int
) -> list[Share]:
    """Divides the limits of a batch among queues in proportion to their `backlogs`, pairs of (rows, bytes).

    Each queue with a backlog gets at least one row as long as `max_rows` allows. If there are more queues
    than rows, `turn`, a number that grows with each batch, determines which queues get one. `max_bytes` never
    prevents the first row of a queue from being read.
    """
    rows = _portions([backlog[0] for backlog in backlogs], max_rows, turn)
    sizes = _portions([backlog[1] for backlog in backlogs], max_bytes, turn)
    return [Share(r, None if b is None else max(b, 1)) for r, b in zip(rows, sizes, strict=True)]


def _portions(weights: Sequence[int], limit: int | None, turn: int) -> list[int | None]:
    total = sum(weights)
    if limit is None or total <= limit:
        return [None] * len(weights)
    some = [index for index, weight in enumerate(weights) if weight]
    some = some[turn % len(some) :] + some[: turn % len(some)]
    portions = [0] * len(weights)
    for index in some[:limit]:
        portions[index] = 1
    left = limit - min(limit, len(some))
    spare = left
    for index in some:
        more = min(left * weights[index] // total, weights[index] - portions[index], spare)
        portions[index] += max(more, 0)
        spare -= max(more, 0)
    for index in some:
        more = min(spare, weights[index] - portions[index])
        portions[index] += more
        spare -= more
    return list(portions)

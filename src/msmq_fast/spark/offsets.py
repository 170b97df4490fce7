"""Offsets of streaming queries as stored in checkpoints, and the division of a limit among queues. Does no
I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

VERSION: Final = 1
FEED: Final = "feed"
"""Used instead of a queue's GUID if events are read."""


class OffsetError(ValueError):
    """Raised if this data source cannot use the offset in a checkpoint."""


class Spot(NamedTuple):
    """The position of a query in one queue: the batch that ends at this position reads the numbers from
    `begin` up to but not including `end`.

    The numbers are arrival numbers, delivery numbers or event numbers, depending on the mode of the query.
    `rows` is the number of rows that the batch was planned to read. `late` is the value of `QueueBounds.late`
    when the batch was planned: how many messages, since the server started, had entered the queue at numbers
    that readers may already have passed.
    """

    path: str
    begin: int
    end: int
    rows: int = 0
    late: int = 0


@dataclass(frozen=True)
class ManagerSpot:
    """The position of a query in one queue manager. `incarnation`: that of its store. `started`: a number
    that is new at each start of its server. `queues`: the position in each queue, by GUID.
    """

    name: str
    incarnation: int
    started: int
    queues: dict[str, Spot]


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
            "qms": {
                guid: {
                    "name": manager.name,
                    "inc": manager.incarnation,
                    "start": manager.started,
                    "q": {
                        queue: {"path": s.path, "from": s.begin, "to": s.end, "rows": s.rows, "late": s.late}
                        for queue, s in sorted(manager.queues.items())
                    },
                }
                for guid, manager in sorted(self.managers.items())
            },
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str, mode: str) -> Offset:
        """Return the offset that `to_json` returned. Raises OffsetError if `value` is damaged, or of another
        version or mode.
        """
        try:
            values = json.loads(value) if isinstance(value, str) else value
            version, found = values["v"], values["mode"]
            if version != VERSION:
                raise OffsetError(
                    f"the checkpoint has offsets of version {version}; this release reads version {VERSION}"
                )
            if found != mode:
                raise OffsetError(
                    f"the checkpoint belongs to a query in mode {found!r}, this one is in mode {mode!r} "
                    "(options onSourceCommit and content): use a new checkpointLocation"
                )
            managers = {
                guid: ManagerSpot(
                    entry["name"],
                    int(entry["inc"]),
                    int(entry["start"]),
                    {
                        queue: Spot(s["path"], int(s["from"]), int(s["to"]), int(s["rows"]), int(s["late"]))
                        for queue, s in entry["q"].items()
                    },
                )
                for guid, entry in values["qms"].items()
            }
            subscription = values.get("sub", "")
        except (KeyError, TypeError, AttributeError) as error:
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

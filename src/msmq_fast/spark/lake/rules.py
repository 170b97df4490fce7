"""The rules of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_LATER: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Rules:
    """The rules of an audit.

    `lookback`: how many days before and after the audited day are searched for other events of its messages.
    `grace_s`: a message that the next queue manager acknowledged to the sender is lost if it has not arrived
    this many seconds later. `poison_aborts`: the number of aborted receives that make a message poison.
    `now`: the present time; if the audited day is not over at this time, the lake may lack the end of that
    day. `gone`: names or GUIDs of queue managers that were removed from the network, so that no later events
    of theirs are expected.
    """

    lookback: int = 7
    grace_s: float = 3600.0
    poison_aborts: int = 3
    now: datetime = _LATER
    gone: tuple[str, ...] = ()

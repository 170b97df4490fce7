"""Messages of one sender that were refused, dead-lettered, received or wait, as rows of a lake."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tests.spark.lake.feeds import DAY, Letter, Manager

NACK_BAD_DST_Q = 0x8000
NEXT = DAY + timedelta(days=1)


class Traffic:
    """One sender, one receiver: refused, dead-lettered and received messages, and one that is not sent."""

    def __init__(self) -> None:
        self.sender = Manager("11111111-0000-0000-0000-000000000000", "client")
        self.receiver = Manager("22222222-0000-0000-0000-000000000000", "server")
        self._now = DAY + timedelta(hours=9)
        for _ in range(3):
            self._refused(self._send("nosuch"))
        for _ in range(2):
            self._dead(self._send("letters"))
        for _ in range(4):
            self._received(self._send("orders"))
        self._send("away")

    def _tick(self) -> Any:
        self._now += timedelta(seconds=1)
        return self._now

    def _send(self, queue: str) -> Letter:
        self.sender.ordinal += 1
        name = f"{{{self.sender.guid}}}\\{self.sender.ordinal}"
        letter = Letter(
            self.sender, self.receiver, queue, name, self._tick(), None, self.sender.next_lookup()
        )
        self.sender.note(letter.sent_at, "sent", letter.outgoing, "outgoing", **letter.row(letter.lookup))
        return letter

    def _acked(self, letter: Letter) -> None:
        self.sender.note(self._tick(), "acked", letter.outgoing, "outgoing", **letter.row(letter.lookup))

    def _refused(self, letter: Letter) -> None:
        row = {**letter.row(0), "class": NACK_BAD_DST_Q}
        self.receiver.note(self._tick(), "nacked", letter.dest, None, **row)
        self._acked(letter)

    def _dead(self, letter: Letter) -> None:
        """It expired before it left, and its sender wanted to keep what is left of it."""
        why = {"reason": "NACK_REACH_QUEUE_TIMEOUT"}
        row = letter.row(letter.lookup, **why)
        self.sender.note(self._tick(), "expired", letter.outgoing, "outgoing", **row)
        copy = letter.row(self.sender.next_lookup(), **why)
        self.sender.note(self._tick(), "dead_lettered", "client\\system$;deadletter", "deadletter", **copy)

    def _received(self, letter: Letter) -> None:
        row = letter.row(self.receiver.next_lookup())
        self.receiver.note(self._tick(), "arrived", letter.dest, "queue", **row)
        self._acked(letter)
        self.receiver.note(self._tick(), "received", letter.dest, "queue", **row)

    def rows(self) -> list[dict[str, Any]]:
        return [*self.sender.feed(), *self.receiver.feed()]

    def told(self) -> list[dict[str, Any]]:
        held: Sequence[tuple[Manager, str, int]] = (
            (self.sender, "client\\system$;deadletter", 2),
            (self.receiver, "server\\private$\\orders", 0),
        )
        return [
            {
                "qm_guid": manager.guid,
                "name": manager.name,
                "incarnation": 1,
                "start": 1,
                "taken_at": NEXT,
                "feed_first": 1,
                "feed_next": len(manager.feed()) + 1,
                "queue": queue,
                "count": count,
            }
            for manager, queue, count in held
        ]

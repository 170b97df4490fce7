"""Two queue managers that send to each other, as their event feeds tell it, with faults that are known.

`Pair(seed)` plays a few dozen messages: most arrive and are received, some with what is harmless (an aborted
receive, a copy that was dropped on the wire, a way through a subqueue, a journal), and some with one of
`FAULTS`. `truth` has what an audit must find; nothing else may be found.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

DAY = datetime(2026, 3, 1, tzinfo=UTC)
FAULTS = (
    "lost",
    "duplicated",
    "reordered",
    "expired",
    "unsent",
    "poisoned",
    "purged",
    "restarted",
    "refused",
)
HARMLESS = ("received", "received", "open", "aborted", "repeated", "subqueue", "journaled", "late_reader")

NACK_EXPIRED = 0xC002
NACK_ACCESS = 0x8004


@dataclass
class Truth:
    """By kind of fault: message identifiers, or (sender, sequence, number)."""

    lost: set[str] = field(default_factory=set)
    duplicated: set[str] = field(default_factory=set)
    expired: set[str] = field(default_factory=set)
    purged: set[str] = field(default_factory=set)
    poisoned: set[str] = field(default_factory=set)
    nacked: set[str] = field(default_factory=set)
    wire: set[str] = field(default_factory=set)
    gaps: set[tuple[str, int, int]] = field(default_factory=set)
    reordered: set[tuple[str, int, int]] = field(default_factory=set)
    restarted: set[tuple[str, int]] = field(default_factory=set)
    repeated: set[tuple[str, int, int]] = field(default_factory=set)


class Manager:
    """One queue manager: what happens is noted with its time, and numbered at the end."""

    def __init__(self, guid: str, name: str) -> None:
        self.guid = guid
        self.name = name
        self.ordinal = 0
        self.sequence = 0
        self.notes: list[tuple[datetime, int, dict[str, Any]]] = []

    def next_lookup(self) -> int:
        self.sequence += 1
        return self.sequence

    def note(
        self, time: datetime, event: str, queue: str | None = None, kind: str | None = None, **row: Any
    ) -> None:
        self.notes.append(
            (time, len(self.notes), {"event": event, "queue": queue, "queue_kind": kind, **row})
        )

    def feed(self) -> list[dict[str, Any]]:
        return [
            {"qm_guid": self.guid, "incarnation": 1, "feed_seq": number, "event_time": time, **row}
            for number, (time, _, row) in enumerate(sorted(self.notes, key=lambda note: note[:2]), 1)
        ]


@dataclass
class Letter:
    """One message on its way."""

    sender: Manager
    receiver: Manager
    queue: str
    message_id: str
    sent_at: datetime
    place: tuple[int, int] | None
    lookup: int = 0  # in the outgoing queue

    @property
    def outgoing(self) -> str:
        return f"DIRECT=OS:{self.receiver.name}\\private$\\{self.queue}"

    @property
    def dest(self) -> str:
        return f"{self.receiver.name}\\private$\\{self.queue}"

    def row(self, lookup: int, **more: Any) -> dict[str, Any]:
        return {
            "message_id": self.message_id,
            "source_machine": self.sender.guid,
            "lookup_id": lookup,
            "arrival_seq": lookup,
            "class": 0,
            "packet_size": 1000,
            **more,
        }

    def placed(self) -> dict[str, Any]:
        return {} if self.place is None else {"seq_id": self.place[0], "seq_no": self.place[1]}


class Pair:
    """One play. `managers` have the feeds, `truth` what is wrong in them."""

    def __init__(
        self, seed: int, *, messages: int = 40, faults: tuple[str, ...] = FAULTS, day: datetime = DAY
    ) -> None:
        self.rng = random.Random(seed)
        guids = [str(uuid.UUID(int=self.rng.getrandbits(128))) for _ in range(2)]
        self.managers = tuple(Manager(guid, f"host{i}-{seed}") for i, guid in enumerate(guids))
        self.truth = Truth()
        self.faults = faults
        self.ends: list[str] = []  # the kind of fault of each message that ended badly without being lost
        self._now = day + timedelta(hours=10)
        self._streams: dict[tuple[str, str], list[int]] = {}  # (sender, queue) -> [sequence, last number]
        self._held_back: dict[
            tuple[str, str], Letter
        ] = {}  # a transactional message that the next one overtakes
        self._order_after: dict[tuple[str, str], datetime] = {}
        for manager in self.managers:
            manager.note(self._tick(), "started")
        kinds = [*faults, *self.rng.choices(HARMLESS + faults, k=max(messages - len(faults), 0))]
        self.rng.shuffle(kinds)
        for kind in kinds:
            self._play(kind)
        for key in list(self._held_back):
            self._release(key, self._now)

    def rows(self) -> list[dict[str, Any]]:
        return [row for manager in self.managers for row in manager.feed()]

    def told(self, at: datetime) -> list[dict[str, Any]]:
        """What the queue managers say of themselves at the end."""
        found = []
        for manager in self.managers:
            feed = manager.feed()
            head = {
                "qm_guid": manager.guid,
                "name": manager.name,
                "incarnation": 1,
                "start": 1,
                "taken_at": at,
                "feed_first": 1,
                "feed_next": len(feed) + 1,
            }
            found += [{**head, "queue": queue, "count": count} for queue, count in depths(feed).items()]
        return found

    def _tick(self) -> datetime:
        self._now += timedelta(milliseconds=self.rng.randint(1, 3000), microseconds=self.rng.randint(0, 999))
        return self._now

    def _play(self, kind: str) -> None:
        sender, receiver = self.rng.sample(self.managers, 2)
        if kind == "restarted":
            self._restart(sender, receiver)
            return
        if self.rng.random() < 0.1 and kind == "received":
            self._local(sender)
            return
        transactional = kind == "reordered" or self.rng.random() < 0.5
        letter = self._send(sender, receiver, transactional)
        getattr(self, f"_{kind}")(letter)

    def _send(self, sender: Manager, receiver: Manager, transactional: bool, queue: str = "") -> Letter:
        sender.ordinal += 1
        queue = queue or (
            f"tx{self.rng.randint(0, 1)}" if transactional else f"plain{self.rng.randint(0, 1)}"
        )
        place = None
        if transactional:
            stream = self._streams.setdefault((sender.guid, queue), [1000, 0])
            stream[1] += 1
            place = (stream[0], stream[1])
        letter = Letter(sender, receiver, queue, f"{{{sender.guid}}}\\{sender.ordinal}", self._tick(), place)
        letter.lookup = sender.next_lookup()
        row = letter.row(letter.lookup, **letter.placed())
        sender.note(letter.sent_at, "sent", letter.outgoing, "outgoing", **row)
        return letter

    def _ack(self, letter: Letter) -> None:
        letter.sender.note(self._tick(), "acked", letter.outgoing, "outgoing", **letter.row(letter.lookup))

    def _arrive(self, letter: Letter, *, ack: bool = True) -> int:
        key = (letter.sender.guid, letter.queue)
        lookup = letter.receiver.next_lookup()
        letter.receiver.note(
            self._tick(), "arrived", letter.dest, "queue", **letter.row(lookup, **letter.placed())
        )
        if ack:
            self._ack(letter)
        if letter.place is not None and key in self._held_back:
            self._release(key, self._tick())
        return lookup

    def _release(self, key: tuple[str, str], time: datetime) -> None:
        letter = self._held_back.pop(key)
        lookup = letter.receiver.next_lookup()
        letter.receiver.note(time, "arrived", letter.dest, "queue", **letter.row(lookup, **letter.placed()))
        self._ack(letter)

    def _take(self, letter: Letter, lookup: int, queue: str = "") -> None:
        letter.receiver.note(self._tick(), "received", queue or letter.dest, "queue", **letter.row(lookup))

    # Harmless.

    def _received(self, letter: Letter) -> None:
        self._take(letter, self._arrive(letter))

    def _open(self, letter: Letter) -> None:
        self._arrive(letter)

    def _late_reader(self, letter: Letter) -> None:
        """Its reader was gone; another one took it."""
        lookup = self._arrive(letter)
        self._take(letter, lookup)
        letter.receiver.note(self._tick(), "returned", letter.dest, "queue", **letter.row(lookup))
        self._take(letter, lookup)

    def _aborted(self, letter: Letter) -> None:
        lookup = self._arrive(letter)
        for aborts in range(1, self.rng.randint(1, 2) + 1):
            row = letter.row(lookup, abort_count=aborts)
            letter.receiver.note(self._tick(), "aborted_return", letter.dest, "queue", **row)
        self._take(letter, lookup)

    def _repeated(self, letter: Letter) -> None:
        """The connection broke before the acknowledgment: it came again, and was dropped."""
        lookup = self._arrive(letter, ack=False)
        row = letter.row(0, **letter.placed())
        letter.receiver.note(self._tick(), "duplicate", letter.dest, "queue", **row)
        self._ack(letter)
        self.truth.wire.add(letter.message_id)
        self._take(letter, lookup)

    def _subqueue(self, letter: Letter) -> None:
        lookup = self._arrive(letter)
        sub = letter.dest + ";waiting"
        letter.receiver.note(
            self._tick(), "moved", sub, "subqueue", **letter.row(lookup, origin_queue=letter.dest)
        )
        letter.receiver.note(
            self._tick(), "moved", letter.dest, "queue", **letter.row(lookup, origin_queue=sub)
        )
        self._take(letter, lookup)

    def _journaled(self, letter: Letter) -> None:
        lookup = self._arrive(letter)
        self._take(letter, lookup)
        copy = letter.receiver.next_lookup()
        journal = letter.dest + ";journal"
        letter.receiver.note(self._now, "journaled", journal, "journal", **letter.row(copy))
        if self.rng.random() < 0.5:
            letter.receiver.note(self._tick(), "received", journal, "journal", **letter.row(copy))

    def _local(self, manager: Manager) -> None:
        manager.ordinal += 1
        letter = Letter(manager, manager, "own", f"{{{manager.guid}}}\\{manager.ordinal}", self._tick(), None)
        lookup = manager.next_lookup()
        manager.note(letter.sent_at, "arrived", letter.dest, "queue", **letter.row(lookup))
        self._take(letter, lookup)

    # Faults.

    def _lost(self, letter: Letter) -> None:
        self._ack(letter)
        self.truth.lost.add(letter.message_id)
        if letter.place is not None:  # seen as a gap as soon as the next one of the sequence arrives
            follower = self._send(letter.sender, letter.receiver, True, letter.queue)
            self._received(follower)
            self.truth.gaps.add((letter.sender.guid, *letter.place))

    def _duplicated(self, letter: Letter) -> None:
        first, second = self._arrive(letter), self._arrive(letter, ack=False)
        self._take(letter, first)
        if self.rng.random() < 0.5:
            self._take(letter, second)
        self.truth.duplicated.add(letter.message_id)
        if letter.place is not None:
            self.truth.repeated.add((letter.sender.guid, *letter.place))

    def _reordered(self, letter: Letter) -> None:
        """The one behind it arrives first."""
        assert letter.place is not None
        key = (letter.sender.guid, letter.queue)
        if key in self._held_back:
            self._received(letter)
            return
        self._held_back[key] = letter
        follower = self._send(letter.sender, letter.receiver, True, letter.queue)
        self._received(follower)
        self.truth.reordered.add((letter.sender.guid, *letter.place))

    def _expired(self, letter: Letter) -> None:
        lookup = self._arrive(letter)
        row = letter.row(lookup)
        if self.rng.random() < 0.5:
            told = {**row, "class": NACK_EXPIRED}
            letter.receiver.note(self._tick(), "nacked", letter.dest, "queue", **told)
            self.truth.nacked.add(letter.message_id)
        letter.receiver.note(
            self._tick(), "expired", letter.dest, "queue", **row, reason="NACK_RECEIVE_TIMEOUT"
        )
        if self.rng.random() < 0.5:
            copy = letter.row(letter.receiver.next_lookup(), reason="NACK_RECEIVE_TIMEOUT")
            queue = f"{letter.receiver.name}\\system$;deadletter"
            letter.receiver.note(self._now, "dead_lettered", queue, "deadletter", **copy)
        self.ends.append("expired")
        self.truth.expired.add(letter.message_id)

    def _unsent(self, letter: Letter) -> None:
        """It expired before it left: its number is used up, and nothing is missing at the receiver."""
        row = letter.row(letter.lookup, reason="NACK_REACH_QUEUE_TIMEOUT")
        letter.sender.note(self._tick(), "expired", letter.outgoing, "outgoing", **row)
        self.ends.append("unsent")
        self.truth.expired.add(letter.message_id)
        if letter.place is not None:
            self._received(self._send(letter.sender, letter.receiver, True, letter.queue))

    def _poisoned(self, letter: Letter) -> None:
        lookup = self._arrive(letter)
        if self.rng.random() < 0.5:
            for aborts in range(1, self.rng.randint(3, 6) + 1):
                row = letter.row(lookup, abort_count=aborts)
                letter.receiver.note(self._tick(), "aborted_return", letter.dest, "queue", **row)
        else:
            row = letter.row(lookup, origin_queue=letter.dest)
            letter.receiver.note(self._tick(), "moved", letter.dest + ";poison", "subqueue", **row)
        self.truth.poisoned.add(letter.message_id)

    def _purged(self, letter: Letter) -> None:
        row = letter.row(self._arrive(letter), reason="NACK_Q_PURGED")
        letter.receiver.note(self._tick(), "purged", letter.dest, "queue", **row)
        self.ends.append("purged")
        self.truth.purged.add(letter.message_id)

    def _refused(self, letter: Letter) -> None:
        """The receiver did not take it into a queue, and said so."""
        row = {**letter.row(0), "class": NACK_ACCESS, **letter.placed()}
        letter.receiver.note(self._tick(), "nacked", letter.dest, "queue", **row)
        self._ack(letter)
        self.ends.append("refused")
        self.truth.nacked.add(letter.message_id)
        if letter.place is not None:
            self._received(self._send(letter.sender, letter.receiver, True, letter.queue))

    def _restart(self, sender: Manager, receiver: Manager) -> None:
        """What it sends afterwards belongs to new sequences that begin at 1."""
        for key in [key for key in self._held_back if key[0] == sender.guid]:
            self._release(key, self._tick())
        sender.note(self._tick(), "stopped")
        sender.note(self._tick(), "started")
        for key, stream in self._streams.items():
            if key[0] == sender.guid and stream[1]:
                self._streams[key] = [stream[0] + (1 << 32), 0]
        if not any(key[0] == sender.guid for key in self._streams):
            self._received(self._send(sender, receiver, True))
            self._restart(sender, receiver)
            return
        for key, stream in list(self._streams.items()):
            if key[0] == sender.guid and not stream[1]:
                self._received(self._send(sender, receiver, True, key[1]))
                self.truth.restarted.add((sender.guid, stream[0]))


def depths(feed: list[dict[str, Any]]) -> dict[str, int]:
    """Naive: where each position of one queue manager is at the end, by its LookupIdentifier."""
    there: dict[int, str] = {}
    queues = set()
    for row in feed:
        event, lookup, queue = row["event"], row.get("lookup_id"), row["queue"]
        if queue is not None:
            queues.add(queue)
        if event in ("sent", "arrived", "journaled", "dead_lettered", "moved", "returned"):
            there[lookup] = queue
        elif event in ("received", "expired", "purged", "removed") or (
            event == "acked" and "outgoing" in row["queue_kind"]
        ):
            del there[lookup]
    found = dict.fromkeys(queues, 0)
    for queue in there.values():
        found[queue] += 1
    return found


class Scenes:
    """Small feeds beside the pairs, each with what an audit is to say of it."""

    def __init__(self, day: datetime = DAY) -> None:
        names = ("router", "origin", "target", "restored", "holed", "partner", "stranger")
        self.managers = {name: Manager(str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), name) for name in names}
        self.states: dict[str, str] = {}
        self._now = day + timedelta(hours=9)
        for manager in self.managers.values():
            manager.note(self._tick(), "started")
        self._routed()
        self._order_acks()
        self._holed()
        self._unarchived()
        self.rows = [row for m in self.managers.values() if m.name != "stranger" for row in m.feed()]
        self._punch()
        self.rows += self._restored()

    def _tick(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    def _letter(self, sender: str, receiver: str, queue: str, *, acked: bool = True) -> Letter:
        origin, target = self.managers[sender], self.managers[receiver]
        origin.ordinal += 1
        letter = Letter(origin, target, queue, f"{{{origin.guid}}}\\{origin.ordinal}", self._tick(), None)
        self._leg(origin, letter, acked=acked)
        return letter

    def _leg(self, manager: Manager, letter: Letter, *, acked: bool) -> None:
        lookup = manager.next_lookup()
        manager.note(self._tick(), "sent", letter.outgoing, "outgoing", **letter.row(lookup))
        if acked:
            manager.note(self._tick(), "acked", letter.outgoing, "outgoing", **letter.row(lookup))

    def _arrive(self, letter: Letter) -> None:
        lookup = letter.receiver.next_lookup()
        letter.receiver.note(self._tick(), "arrived", letter.dest, "queue", **letter.row(lookup))

    def _routed(self) -> None:
        """Over a router: one is still there, one arrived, one went astray behind it."""
        for state, acked in (("open", False), ("open", True), ("lost", True)):
            letter = self._letter("origin", "target", "routed")
            self._leg(self.managers["router"], letter, acked=acked)
            if acked and state == "open":
                self._arrive(letter)
            self.states[letter.message_id] = state

    def _order_acks(self) -> None:
        """Used up by the queue manager itself: nothing arrives, and nothing is lost."""
        letter = self._letter("target", "origin", "order_queue$")
        self.states[letter.message_id] = "left out"

    def _holed(self) -> None:
        """What the receiver's feed does not tell may be in its hole."""
        for arrives in (True, False, True):
            letter = self._letter("partner", "holed", "inbox")
            if arrives:
                self._arrive(letter)
            self.states[letter.message_id] = "open" if arrives else "lost?"

    def _unarchived(self) -> None:
        letter = self._letter("partner", "stranger", "far")
        self.states[letter.message_id] = "lost?"

    def _punch(self) -> None:
        """An event between the first and the last one is missing: a purge of some other message, say."""
        guid = self.managers["holed"].guid
        for row in self.rows:
            if row["qm_guid"] == guid and row["feed_seq"] > 2:
                row["feed_seq"] += 1

    def _restored(self) -> list[dict[str, Any]]:
        """The store came back from a backup: it tells the beginning again, then something else."""
        manager = self.managers["restored"]
        letters = [
            Letter(manager, manager, "own", f"{{{manager.guid}}}\\{n}", self._tick(), None) for n in (1, 2)
        ]
        for letter in letters:
            self._arrive(letter)
            self.states[letter.message_id] = "received"
        manager.note(self._tick(), "received", letters[0].dest, "queue", **letters[0].row(1))
        told = manager.feed()
        first = [row for row in told if row["feed_seq"] > 1]  # the rest is in `rows` already
        again = [{**row, "incarnation": 2} for row in told]
        last = {
            "qm_guid": manager.guid,
            "incarnation": 2,
            "feed_seq": len(told) + 1,
            "event_time": self._tick(),
        }
        taken = letters[1].row(2)
        return (
            first
            + again
            + [{**last, "event": "received", "queue": letters[1].dest, "queue_kind": "queue", **taken}]
        )

    def told(self, at: datetime) -> list[dict[str, Any]]:
        """Time goes on for all of them."""
        last: dict[tuple[str, int], int] = {}
        for row in self.rows:
            key = (row["qm_guid"], row["incarnation"])
            last[key] = max(last.get(key, 0), row["feed_seq"])
        names = {manager.guid: manager.name for manager in self.managers.values()}
        return [
            {
                "qm_guid": guid,
                "name": names[guid],
                "incarnation": incarnation,
                "start": 1,
                "taken_at": at,
                "feed_first": 1,
                "feed_next": number + 1,
            }
            for (guid, incarnation), number in last.items()
        ]

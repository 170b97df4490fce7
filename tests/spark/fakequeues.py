"""A queue manager in a few dictionaries: what the bulk API promises, and nothing that makes it fast.

It is the model that the Spark sources are tested with, and an independent statement of the API's rules. No
locking of its own: `fakeserver` calls it under one lock.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

STATUS = {
    "BAD_REQUEST": 400,
    "ACCESS_DENIED": 403,
    "QUEUE_NOT_FOUND": 404,
    "SUBSCRIPTION_NOT_FOUND": 404,
    "LEASE_LOST": 409,
    "FENCED": 409,
    "INCARNATION": 409,
    "GONE_EVENTS": 410,
    "SLOT_DROPPED": 410,
    "TOO_LARGE": 413,
    "NOT_READY": 503,
}
CONTENTS = ("messages", "journal", "deadletter", "events")
DEAD_LETTERS = (r"system$;deadletter", r"system$;deadxact")


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status = STATUS[code]
        self.body = {"error": code, "message": message, **details}


def refuse(code: str, message: str, **details: Any) -> NoReturn:
    raise Refusal(code, message, **details)


@dataclass(slots=True)
class Held:
    """A message in a queue. `state` is pending, available or locked."""

    arrival_seq: int
    priority: int
    row: dict[str, Any]
    state: str = "available"
    express: bool = False

    @property
    def lookup_id(self) -> int:
        return (7 - self.priority) << 56 | self.arrival_seq

    @property
    def size(self) -> int:
        return len(self.row["body"] or b"") + 256


@dataclass(slots=True)
class Lease:
    """What one subscription has of one queue. Numbers below `acked` are done."""

    next: int = 1
    acked: int = 1
    ends: float = 0.0
    numbers: dict[int, Held] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)


class Queue:
    def __init__(self, path: str, kind: str, *, transactional: bool = False, journal: Queue | None = None):
        self.path = path
        self.kind = kind
        self.guid = str(uuid.uuid4())
        self.ordinal = 0
        self.transactional = transactional
        self.journal = journal
        self.held: dict[int, Held] = {}
        self.late = 0
        self.leases: dict[str, Lease] = {}

    def rows(self, start: int, stop: int) -> list[Held]:
        """Available and locked messages with start <= arrival_seq < stop, in that order."""
        return [
            self.held[seq]
            for seq in sorted(self.held)
            if start <= seq < stop and self.held[seq].state != "pending"
        ]


class FakeManager:
    def __init__(self, name: str = "fake") -> None:
        self.name = name
        self.guid = str(uuid.uuid4())
        self.incarnation = 1
        self.start = 1
        self.sequence = 0
        self.now_us = 1_700_000_000_000_000
        self.queues: dict[str, Queue] = {}
        self.events: list[dict[str, Any]] = []
        self.events_first = 1
        self.subscriptions: dict[str, dict[str, Any]] = {}
        self.stages: dict[str, tuple[str, str | None, list[dict[str, Any]]]] = {}
        self.fences: dict[str, tuple[int, int, str]] = {}
        self.denied: set[str] = set()
        self.last_ordinal = 0
        self.removed: list[Queue] = []
        self.most_parts = 10_000
        for path in DEAD_LETTERS:
            kind = "xact_deadletter" if path.endswith("xact") else "deadletter"
            self.queues[path] = Queue(f"{name}\\{path}", kind, transactional=kind == "xact_deadletter")

    # What tests and other programs do.

    def create(self, name: str, *, transactional: bool = False) -> Queue:
        path = self._path(name)
        queue = Queue(path, "queue", transactional=transactional, journal=Queue(path + ";JOURNAL", "journal"))
        self.queues[self._key(name)] = queue
        for one in (queue, queue.journal):
            assert one is not None
            self.last_ordinal += 1
            one.ordinal = self.last_ordinal
        self._event("queue_created", queue, None)
        return queue

    def delete(self, name: str) -> None:
        queue = self.queues.pop(self._key(name))
        self.removed += [one for one in (queue.journal, queue) if one is not None]
        self._void(queue, list(queue.held))
        self._event("queue_deleted", queue, None)

    def send(
        self,
        name: str,
        body: bytes,
        *,
        priority: int = 0,
        pending: bool = False,
        express: bool = False,
        **row: Any,
    ) -> Held:
        queue = self._find(name)
        self.sequence += 1
        self.now_us += 1000
        values = {
            "message_id": f"{{{self.guid}}}\\{self.sequence}",
            "body": body,
            "body_size": len(body),
            "label": "",
            "class": 0,
            "sent_time": self.now_us // 1_000_000 * 1_000_000,
            "arrived_time": self.now_us,
            **row,
        }
        held = Held(self.sequence, priority, values, "pending" if pending else "available", express)
        queue.held[held.arrival_seq] = held
        if not pending:
            self._event("arrived", queue, held)
        return held

    def settle(self, held: Held, name: str) -> None:
        """What was pending is durable."""
        held.state = "available"
        self._event("arrived", self._find(name), held)

    def receive(self, name: str) -> Held | None:
        queue = self._find(name)
        for held in sorted(queue.held.values(), key=lambda h: h.lookup_id):
            if held.state == "available":
                self._take(queue, held)
                return held
        return None

    def move(self, held: Held, source: str, target: str) -> None:
        """It keeps its arrival number, so it may come in behind what was read."""
        origin, queue = self._find(source), self._find(target)
        del origin.held[held.arrival_seq]
        queue.held[held.arrival_seq] = held
        queue.late += 1
        self._event("moved", queue, held)

    def purge(self, name: str) -> None:
        queue = self._find(name)
        for held in list(queue.held.values()):
            self._event("purged", queue, held)
        self._void(queue, list(queue.held))
        queue.held.clear()

    def trim_events(self, first: int) -> None:
        self.events_first = max(self.events_first, first)

    def crash(self) -> None:
        """Express messages and pending ones are gone; leases stay."""
        self.start += 1
        self.removed.clear()
        for queue in self.queues.values():
            lost = [seq for seq, held in queue.held.items() if held.express or held.state == "pending"]
            self._void(queue, lost)
            for seq in lost:
                del queue.held[seq]
            queue.late = 0

    def restored(self) -> None:
        """The store came back from a backup."""
        self.incarnation += 1
        self.crash()

    # The API.

    @property
    def watermark(self) -> int:
        pending = [
            h.arrival_seq for q in self.queues.values() for h in q.held.values() if h.state == "pending"
        ]
        return min(pending, default=self.sequence + 1)

    def bounds(
        self,
        names: list[str],
        pattern: str | None,
        content: str,
        since: int | None = None,
        seen: int | None = None,
        removals: int | None = None,
        missing: str = "error",
    ) -> dict[str, Any]:
        if content not in CONTENTS:
            refuse("BAD_REQUEST", f"content must be one of {', '.join(CONTENTS)}, not {content!r}")
        if missing == "skip":
            names = [name for name in names if self._key(name) in self.queues]
        found = [self.look_up(name, content) for name in names] if content != "events" else []
        if pattern is not None:
            candidates = [q for key, q in sorted(self.queues.items()) if key not in DEAD_LETTERS]
            found = [self.look_up(q.path, content) for q in candidates if re.fullmatch(pattern, q.path, re.I)]
        elif content == "deadletter" and not names:
            found = [self.queues[path] for path in DEAD_LETTERS]
        return {
            "qm": self.guid,
            "name": self.name,
            "incarnation": self.incarnation,
            "start": self.start,
            "release": "fake",
            "next": self.watermark,
            "feed": {"first": self.events_first, "next": len(self.events) + 1},
            "ordinal": self.last_ordinal,
            "selected": len(found),
            "known": sum(seen is None or q.ordinal <= seen for q in found),
            "removals": len(self.removed),
            "removed": [
                {
                    "name": q.path,
                    "guid": q.guid,
                    "ordinal": q.ordinal,
                    "again": self._key(q.path) in self.queues,
                }
                for q in self.removed[len(self.removed) if removals is None else removals :]
                if (q.kind == "journal") == (content == "journal")
            ],
            "queues": [
                {
                    "name": q.path,
                    "guid": q.guid,
                    "ordinal": q.ordinal,
                    "kind": q.kind,
                    "transactional": q.transactional,
                    "first": min(q.held, default=self.watermark),
                    "messages": len(q.held),
                    "bytes": sum(h.size for h in q.held.values()),
                    "late": q.late,
                }
                for q in found
                if since is None
                or q.late
                or max(q.held, default=-1) >= (since if seen is None or q.ordinal <= seen else 0)
            ],
        }

    def plan(self, queue: str, content: str, start: int, stop: int, rows: int, size: int, parts: int) -> Any:
        if parts > self.most_parts:
            refuse("BAD_REQUEST", f"parts must be a whole number from 1 to {self.most_parts}")
        if content == "events":
            sizes = [(e["feed_seq"], 128) for e in self.feed(start, stop)]
        else:
            sizes = [(h.arrival_seq, h.size) for h in self.look_up(queue, content).rows(start, stop)]
        end = stop
        total = 0
        waiting = len(sizes)
        for index, (seq, weight) in enumerate(sizes):
            if (rows and index >= rows) or (size and index and total + weight > size):
                end, sizes = seq, sizes[:index]
                break
            total += weight
        step = max(1, -(-len(sizes) // max(parts, 1)))
        groups = [sizes[i : i + step] for i in range(0, len(sizes), step)]
        cuts = [start, *(group[0][0] for group in groups[1:]), end]
        ranges = [
            {"from": cuts[i], "to": cuts[i + 1], "rows": len(g), "bytes": sum(w for _, w in g)}
            for i, g in enumerate(groups)
        ]
        return {"ranges": ranges, "to": end, "rows": len(sizes), "bytes": sum(w for _, w in sizes)} | {
            "waiting": waiting
        }

    def feed(self, start: int, stop: int) -> list[dict[str, Any]]:
        if start < self.events_first:
            refuse(
                "GONE_EVENTS",
                f"events below {self.events_first} are no longer kept; asked from {start}",
                first=self.events_first,
            )
        return self.events[start - 1 : stop - 1]

    def message_rows(self, queue: Queue, held: Iterable[Held]) -> list[dict[str, Any]]:
        return [
            {
                "qm_guid": self.guid,
                "queue": queue.path,
                "queue_guid": queue.guid,
                "queue_kind": queue.kind,
                "arrival_seq": h.arrival_seq,
                "lookup_id": h.lookup_id - (1 << 64) if h.lookup_id >> 63 else h.lookup_id,
                "priority": h.priority,
                **h.row,
            }
            for h in held
        ]

    def lease(self, subscription: str, name: str, rows: int, size: int, seconds: float) -> dict[str, int]:
        queue = self._find(name)
        lease = queue.leases.setdefault(subscription, Lease())
        self.expire(queue)
        first, total = lease.next, 0
        for held in sorted(queue.held.values(), key=lambda h: h.lookup_id):
            taken = lease.next - first
            if (rows and taken >= rows) or (size and taken and total + held.size > size):
                break
            if held.state == "available":
                held.state = "locked"
                total += held.size
                lease.numbers[lease.next] = held
                lease.next += 1
        lease.ends = time.monotonic() + seconds
        return {"from": first, "to": lease.next, "rows": lease.next - first}

    def delivery(self, subscription: str, name: str, start: int, stop: int) -> list[tuple[int, Held]]:
        queue = self._find(name)
        lease = self._leased(queue, subscription, start, stop)
        return [(n, lease.numbers[n]) for n in range(start, stop) if n in lease.numbers]

    def ack(self, subscription: str, name: str, upto: int) -> dict[str, int]:
        queue = self._find(name)
        lease = queue.leases.setdefault(subscription, Lease())
        if upto <= lease.acked:
            return {"removed": 0, "gone": 0}
        lease = self._leased(queue, subscription, lease.acked, upto)
        removed = gone = 0
        for number in range(lease.acked, upto):
            held = lease.numbers.pop(number, None)
            if held is None:
                gone += 1
                lease.gone.discard(number)
            else:
                removed += 1
                self._take(queue, held)
        lease.acked = upto
        return {"removed": removed, "gone": gone}

    def release(self, subscription: str, name: str, upto: int) -> dict[str, int]:
        """Settles all below `upto`: what is still leased goes back, what was lost is forgotten."""
        lease = self._find(name).leases.setdefault(subscription, Lease())
        numbers = [n for n in lease.numbers if n < upto]
        for number in numbers:
            lease.numbers.pop(number).state = "available"
        lease.acked = max(lease.acked, min(upto, lease.next))
        return {"removed": len(numbers), "gone": 0}

    def expire(self, queue: Queue, *, now: bool = False) -> None:
        """Leases that ended put their messages back."""
        for lease in queue.leases.values():
            if lease.numbers and (now or lease.ends < time.monotonic()):
                for held in lease.numbers.values():
                    held.state = "available"
                lease.numbers.clear()

    def stage(self, writer: str, queue: str | None, rows: list[dict[str, Any]]) -> dict[str, Any]:
        for name in {row.get("queue") or queue for row in rows}:
            if name is None:
                refuse("BAD_REQUEST", "a row names no queue, and the request has no queue= either")
            self._find(name)
        stage = uuid.uuid4().hex
        self.stages[stage] = (writer, queue, rows)
        return {"stage": stage, "rows": len(rows), "bytes": sum(len(row["body"] or b"") for row in rows)}

    def publish(
        self, writer: str, epoch: int, batch: int, stages: list[str], origin: str, remember: bool
    ) -> dict[str, Any]:
        last_epoch, last_batch, counted = (
            self.fences.get(writer, (epoch, -1, "")) if remember else (epoch, -1, "")
        )
        if epoch < last_epoch:
            refuse("FENCED", f"writer {writer!r} is at epoch {last_epoch}; this is {epoch}")
        if epoch == last_epoch and origin and counted not in ("", origin):
            refuse("FENCED", f"batches of writer {writer!r} were published from {counted}")
        if epoch == last_epoch and batch <= last_batch:
            self.discard(stages)
            return {"dup": True, "rows": 0, "last": last_batch}
        for stage in stages:
            if stage not in self.stages:
                refuse("BAD_REQUEST", f"no such stage: {stage}")
        rows = 0
        for stage in stages:
            _, queue, entries = self.stages.pop(stage)
            for entry in entries:
                known = {name: value for name, value in entry.items() if name != "queue"}
                self.send(entry.get("queue") or queue or "", **known)
                rows += 1
        if remember:
            self.fences[writer] = (epoch, batch, origin)
        return {"dup": False, "rows": rows, "last": batch}

    def discard(self, stages: list[str]) -> dict[str, Any]:
        return {"rows": sum(len(self.stages.pop(s)[2]) for s in stages if s in self.stages)}

    def look_up(self, name: str, content: str) -> Queue:
        queue = self._find(name)
        return queue.journal if content == "journal" and queue.journal else queue

    def _leased(self, queue: Queue, subscription: str, start: int, stop: int) -> Lease:
        self.expire(queue)
        lease = queue.leases.get(subscription)
        if lease is None or stop > lease.next or start < lease.acked:
            refuse("LEASE_LOST", f"subscription {subscription!r} has no deliveries {start} to {stop - 1}")
        lost = [n for n in range(start, stop) if n not in lease.numbers and n not in lease.gone]
        if lost:
            refuse(
                "LEASE_LOST", f"deliveries {lost[0]} to {lost[-1]} of {queue.path} went back: the lease ended"
            )
        return lease

    def _take(self, queue: Queue, held: Held) -> None:
        del queue.held[held.arrival_seq]
        self._event("received", queue, held)

    def _void(self, queue: Queue, numbers: list[int]) -> None:
        for lease in queue.leases.values():
            for number, held in list(lease.numbers.items()):
                if held.arrival_seq in numbers:
                    del lease.numbers[number]
                    lease.gone.add(number)

    def _event(self, event: str, queue: Queue, held: Held | None) -> None:
        self.events.append(
            {
                "qm_guid": self.guid,
                "incarnation": self.incarnation,
                "feed_seq": len(self.events) + 1,
                "event": event,
                "event_time": self.now_us,
                "queue": queue.path,
                "queue_guid": queue.guid,
                "queue_kind": queue.kind,
                "message_id": held.row["message_id"] if held else None,
                "arrival_seq": held.arrival_seq if held else None,
            }
        )

    def _path(self, name: str) -> str:
        return f"{self.name}\\{self._key(name)}"

    def _key(self, name: str) -> str:
        local = re.sub(r"^(\.|" + re.escape(self.name) + r")\\", "", name.lower()).removesuffix(";journal")
        return local if "$" in local else f"private$\\{local}"

    def _find(self, name: str) -> Queue:
        queue = self.queues.get(self._key(name))
        if queue is None:
            refuse("QUEUE_NOT_FOUND", f"no queue {name!r} on {self.name}")
        if self._key(name) in self.denied:
            refuse("ACCESS_DENIED", f"no right to read {queue.path}")
        return queue

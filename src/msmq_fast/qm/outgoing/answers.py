"""Outgoing queues that are opened for answers to other queue managers (acknowledgments), within a budget for
each peer that causes answers.

A peer chooses where its answers go, so it can name any number of destinations that do not exist.

1. A queue that was opened only for answers has the address group that caused it
   (`OutgoingQueue.answers_for`), also in its record, so that it counts again after a restart. It becomes an
   ordinary queue as soon as a program, or a message in transit, uses it.
2. Each group may have `answers_per_address` such queues that no session ever reached, and `MOST_OF_GROUP` in
   all; the server has at most `MOST_ANSWERED`. Acknowledgments of streams have budgets of their own, so that
   invented administration queues cannot compete with them.
3. At a limit, the least useful queue of the same group (or of the largest group, if the total limit is
   reached) is deleted to make room: an empty queue first, then the oldest that no session ever reached, then
   the oldest. So a peer that is connected but accepts no messages cannot block others. The deletion happens
   in later turns of the loop, a bounded number in each.
4. The cause of an answer is known from the session that delivered the message (`Origins`). For an
   answer that is sent later, it is looked up by the GUID of the sender of the message.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

from msmq_fast.packet.names import FormatName, NameKind
from msmq_fast.qm.outgoing.queues import OutgoingQueues
from msmq_fast.qm.queues.opening import is_http
from msmq_fast.qm.queues.outgoing import OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.queuerecords import QueueRecords
from msmq_fast.qm.queues.system import is_internal
from msmq_fast.qm.services import Services
from msmq_fast.security.addresses import address_group, is_confined

__all__ = ["AnswerQueues", "Origins", "group_of", "may_answer"]

MOST_ANSWERED = 10_000
"""Maximum number of outgoing queues for answers. It is limited because senders choose the destinations of
answers.
"""
MOST_OF_GROUP = 1_000
"""Maximum number of outgoing queues for answers to one address group."""
UNKNOWN = "unknown"
"""The address group of answers to a peer whose address is not known, because the server was restarted
since.
"""
_ORIGINS = 16_384
_GIVEN_UP = 256  # maximum number of queues that wait to be deleted
_TURN = 50  # maximum number of queues deleted in one turn of the loop
_AGAIN = 60.0  # seconds until a failed deletion is retried
_QUIET = 600.0  # seconds between two log lines for one cause

_log = logging.getLogger(__name__)


class Origins:
    """The addresses from which the latest messages of queue managers came, by GUID as on the wire."""

    def __init__(self) -> None:
        self._addresses: dict[bytes, str] = {}

    def brought(self, source: bytes, address: str) -> None:
        """Remember the address from which a message of a queue manager arrived: the address of that queue
        manager, or of a router.
        """
        self._addresses.pop(source, None)
        if len(self._addresses) >= _ORIGINS:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[source] = address

    def address(self, source: UUID) -> str:
        """Returns the address from which the latest message of a queue manager came; empty if it is not
        known.
        """
        return self._addresses.get(source.bytes_le, "")


def may_answer(name: FormatName, origin: str, own: frozenset[str]) -> bool:
    """Whether an answer may go to a queue that a peer at `origin` named; `own` are addresses of this server.

    False for loopback, link-local and multicast addresses, since they mean another computer on the peer than
    on this server. False for HTTP to other hosts than the peer, since the peer could make this server send a
    request of the peer's choice.
    """
    if name.kind is NameKind.MULTICAST:
        return False
    if name.direct is None:
        return True
    host = name.direct.address.casefold()
    if host == origin.casefold():
        return True
    if is_http(name):
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return False
    return not is_confined(host) or host in own


@dataclass(slots=True)
class _Pool:
    """The outgoing queues for one kind of answers, by address group, least recently used first."""

    groups: dict[str, dict[OutgoingQueue, None]] = field(default_factory=dict)
    total: int = 0

    def add(self, queue: OutgoingQueue) -> None:
        group = self.groups.setdefault(queue.answers_for, {})
        if queue not in group:
            group[queue] = None
            self.total += 1

    def use(self, queue: OutgoingQueue) -> None:
        group = self.groups.get(queue.answers_for, {})
        if queue in group:
            del group[queue]
            group[queue] = None

    def remove(self, queue: OutgoingQueue) -> None:
        group = self.groups.get(queue.answers_for, {})
        if queue in group:
            del group[queue]
            self.total -= 1
            if not group:
                del self.groups[queue.answers_for]


class AnswerQueues:
    """Opens outgoing queues for answers within the budgets.

    `most_unreached`: maximum number of queues for acknowledgments that one address group may have and that no
    session has reached. `given_up` counts queues that were deleted to make room, `refused` counts answers for
    which there was no room.
    """

    def __init__(
        self,
        services: Services,
        outgoing: OutgoingQueues,
        records: QueueRecords,
        most_unreached: int,
    ) -> None:
        self._services = services
        self._outgoing = outgoing
        self._records = records
        self.most = MOST_ANSWERED
        outgoing.opened.connect(self._opened)
        outgoing.removed.connect(self._closed)
        outgoing.claimed.connect(self.claim)
        self._most_unreached = most_unreached
        self._pools = {False: _Pool(), True: _Pool()}  # by whether they are acknowledgments of streams
        self._doomed: dict[OutgoingQueue, None] = {}
        self._since = 0.0  # when the latest of them made room
        self._told: dict[str, float] = {}
        self.origins = Origins()
        self.given_up = 0
        self.refused: Counter[str] = Counter()

    def __len__(self) -> int:
        return sum(pool.total for pool in self._pools.values())

    @property
    def shortage(self) -> str:
        """A text for operators with the limits that were reached in the last ten minutes; empty if none was
        reached.
        """
        now = self._services.monotonic()
        return "; ".join(cause for cause, at in self._told.items() if now - at < _QUIET)

    # ---- opening

    def admits(self, name: FormatName) -> bool:
        """Whether a dependent client may open the outgoing queue of this name.

        True if the queue exists, or if there are fewer than `most` queues, not counting those for answers.
        """
        return self._outgoing.find(name) is not None or len(self._outgoing.all) - len(self) < self.most

    def open(self, name: FormatName, group: str) -> OutgoingQueue | None:
        """Returns the outgoing queue for an answer that a peer of `group` causes; None if the group is at its
        limit.

        An empty group means that programs of this computer cause the answer: then no limit applies.
        """
        queue = self._outgoing.find(name)
        if queue is not None:
            if queue.answers_only:
                self._doomed.pop(queue, None)
                pool = self._pool(queue)
                pool.add(queue)
                pool.use(queue)
            return queue
        if not group:
            return self._outgoing.to(name)
        if not self._has_room(self._pools[is_internal(name)], group, ordering=is_internal(name)):
            return None
        return self._outgoing.open_for_answers(name, group)

    def _opened(self, queue: OutgoingQueue) -> None:
        """Called when an outgoing queue was created or read from the store: if it is a queue for answers,
        count it in the budget of its address group.
        """
        if queue.answers_only:
            self._pool(queue).add(queue)

    def _closed(self, queue: OutgoingQueue) -> None:
        """Forget a deleted outgoing queue, and free its place in the budget of queues for answers."""
        self._doomed.pop(queue, None)
        if queue.answers_only:
            self._pool(queue).remove(queue)

    def claim(self, queue: OutgoingQueue) -> None:
        """Make a queue for answers an ordinary queue that no longer counts in its budget, because a program
        or a message in transit uses it.
        """
        if not queue.answers_only:
            return
        self._closed(queue)
        queue.answers_for = ""
        self._records.write(queue)

    def _pool(self, queue: OutgoingQueue) -> _Pool:
        return self._pools[is_internal(queue.destination)]

    def _has_room(self, pool: _Pool, group: str, *, ordering: bool) -> bool:
        held = pool.groups.get(group, {})
        unreached = MOST_OF_GROUP if ordering or group == UNKNOWN else self._most_unreached
        full = len(held) >= MOST_OF_GROUP or (
            len(held) >= unreached and sum(not queue.reached for queue in held) >= unreached
        )
        if full:
            self._tell(f"the limit of outgoing queues for acknowledgments to {group} is reached")
            return self._make_room(pool, held, "address")
        if pool.total >= self.most:
            self._tell("the limit of outgoing queues for acknowledgments is reached")
            largest = max(pool.groups.values(), key=len)
            return self._make_room(pool, largest, "all")
        return True

    def _make_room(self, pool: _Pool, held: dict[OutgoingQueue, None], limit: str) -> bool:
        victim = None
        if len(self._doomed) < _GIVEN_UP:
            empty = (queue for queue in held if not self._outgoing.hindrance(queue))
            victim = next(empty, None)
            victim = victim or next((queue for queue in held if _may_go(queue) and not queue.reached), None)
            victim = victim or next(filter(_may_go, held), None)
        if victim is None:
            self.refused[limit] += 1
            return False
        pool.remove(victim)
        self._since = self._services.monotonic()
        self._doomed[victim] = None
        return True

    def _tell(self, cause: str) -> None:
        """Log a limit that was reached (`cause`), at most once every ten minutes for each limit."""
        now = self._services.monotonic()
        if now - self._told.get(cause, -_QUIET) < _QUIET:
            return
        if len(self._told) >= _GIVEN_UP:
            self._told = {cause: at for cause, at in self._told.items() if now - at < _QUIET}
            if len(self._told) >= _GIVEN_UP:
                return
        self._told[cause] = now
        _log.warning("%s: the least useful queues are deleted", cause)

    # ---- giving up, in later turns

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""
        return self._since if self._doomed else None

    def expire(self, now: float) -> None:
        """Delete some of the queues that were chosen to make room, together with their messages."""
        if not self._doomed or now < self._since:
            return
        for queue in list(self._doomed)[:_TURN]:
            del self._doomed[queue]
            if not queue.answers_only or queue.descriptors:
                continue
            try:
                self._outgoing.discard(queue)
            except Exception as error:
                self._services.faults.note("a queue for answers that makes room", error)
                self._doomed[queue] = None  # behind the others
                self._since = now + _AGAIN
            else:
                self.given_up += 1


def _may_go(queue: OutgoingQueue) -> bool:
    """Whether a queue may be deleted: no program has it open and no operator has paused it."""
    return not queue.descriptors and queue.outgoing_state is not OutgoingState.ON_HOLD


def group_of(origin: str) -> str:
    """Returns the address group of a peer at the address `origin`; the budget of this group counts the
    answers that the peer causes.
    """
    return address_group(origin) if origin else UNKNOWN

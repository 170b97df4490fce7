"""Leases: a subscription locks messages of a queue for a limited time, reads them as often as it needs to and
finally acknowledges them.

No other reader gets a leased message and no operator can move it; a peek still sees it. Leases outlive the
process. When a lease ends, its messages return to their places in the queue, and its delivery numbers are
void.

Long work (a lease, an acknowledgment, the end of a lease) is split into slices, so that it does not delay
other work; the requests of one subscription and queue are executed one after the other.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterator
from errno import ENOSPC
from typing import Final, NamedTuple, TypeVar

from msmq_fast._native.lease import lease as lock
from msmq_fast._native.lease import lock_again, settle
from msmq_fast.packet.malformed import Malformed
from msmq_fast.protocol.errors import (
    InsufficientResources,
    MessageStorageFailed,
    QueueDeleted,
    SharingViolation,
    UnsupportedFormatNameOperation,
)
from msmq_fast.protocol.text import quoted
from msmq_fast.qm.access import Access, Share, excludes
from msmq_fast.qm.bulk.leaseholder import CHUNK, LeaseHolder, LeaseLost, Stored, stored_leases
from msmq_fast.qm.feed.callers import FeedCallers
from msmq_fast.qm.feed.subscriptions import check_name
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.records import storage_error
from msmq_fast.qm.services import Services
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion
from msmq_fast.store.errors import StoreError
from msmq_fast.store.schema import MetaName

__all__ = ["Holding", "LeaseLost", "Leased", "Leases", "Settled"]

DEFAULT_SECONDS: Final = 900.0
LONGEST_SECONDS: Final = 86_400.0
MOST_HELD: Final = 1_000_000
"""Maximum number of messages in all leases together."""
MOST_HOLDERS: Final = 1024
"""Maximum number of lease holders. Each holder has the leases of one subscription on one queue."""
MOST_BYTES: Final = 1 << 62
ACK_STEP: Final = 1000
"""Maximum number of messages that one unit removes."""
SLICE: Final = 0.01  # seconds for which the work may block the loop
RETRY: Final = 1.0  # seconds until a failed write of records is retried
NEXT: Final = False
WAIT: Final = True

T = TypeVar("T")


class Leased(NamedTuple):
    """The result of `Leases.lease`: the delivery numbers from `start` up to but not including `stop`."""

    start: int
    stop: int


class Settled(NamedTuple):
    """The result of an acknowledgment or a release.

    `removed`: number of messages that the acknowledgment received, or the release returned to the queue.
    `gone`: number of messages that no longer existed, because they were purged, or were express messages and
    lost in a restart.
    """

    removed: int
    gone: int


class Holding(NamedTuple):
    """The leases of one subscription on one queue, as shown to operators: the delivery numbers from `start`
    up to but not including `next`. The leases end in `remaining` seconds.
    """

    subscription: str
    queue: Queue
    start: int
    next: int
    remaining: float


class Leases:
    """The leases of a queue manager: `QueueManager.leases`."""

    def __init__(self, services: Services, registry: QueueRegistry, callers: FeedCallers) -> None:
        self._services = services
        self._records = services.records
        self._ledger = services.ledger
        self._registry = registry
        self._callers = callers
        self._holders: dict[int, dict[str, LeaseHolder]] = {}  # by queue ordinal and subscription
        self._busy: deque[LeaseHolder] = deque()  # with work to do
        self._due = math.inf  # when the next one may end, or earlier
        self._mend = math.inf  # when records that were not kept are written again
        self.ended = 0  # leases that have expired since the start
        self._floor = 1  # numbers below it may have been given by lease holders that were forgotten

    def _all(self) -> Iterator[LeaseHolder]:
        for holders in self._holders.values():
            yield from holders.values()

    # ---- what subscriptions do

    def lease(
        self,
        subscription: str,
        queue: Queue,
        max_rows: int,
        max_bytes: int,
        seconds: float = DEFAULT_SECONDS,
    ) -> Completion[Leased]:
        """Lock messages from the front of a queue: up to `max_rows` messages with up to `max_bytes` of
        packets in all, but at least one message if the queue has any.

        Resolved when the lease is durable; if `start` equals `stop` in the result, the queue was empty. The
        lease ends `seconds` after the latest call for the subscription. Raises ValueError for invalid
        arguments, UNSUPPORTED_FORMATNAME_OPERATION for an outgoing queue, SHARING_VIOLATION if the queue is
        open for exclusive receiving, INSUFFICIENT_RESOURCES at a limit.
        """
        self._services.require_ready()
        if max_rows < 1 or max_bytes < 1:
            raise Malformed("max_rows and max_bytes of a lease must be at least 1")
        if not 1 <= seconds <= LONGEST_SECONDS:
            raise Malformed(f"a lease must last from 1 to {LONGEST_SECONDS:g} seconds, not {seconds:g}")
        if queue.kind is QueueKind.OUTGOING:
            raise UnsupportedFormatNameOperation("messages of an outgoing queue cannot be leased")
        if any(excludes(one.access, one.share, Access.RECEIVE, Share.DENY_NONE) for one in queue.descriptors):
            raise SharingViolation(f"{queue.name} is open for exclusive receiving")
        found = self._find(subscription, queue) or self._new(subscription, queue)
        found.seconds = seconds
        self._touch(found)
        return self._ask(found, lambda done: self._gather(found, max_rows, min(max_bytes, MOST_BYTES), done))

    def rows(self, subscription: str, queue: Queue, start: int, stop: int) -> tuple[array[int], array[int]]:
        """Returns (lookup ids, delivery numbers) of the messages with `start` <= number < `stop` that still
        exist.

        Raises LeaseLost unless all of these numbers are leased to the subscription.
        """
        self._services.require_ready()
        if not 0 < start <= stop:
            raise Malformed(f"{start} to {stop} is not a range of delivery numbers: they begin at 1")
        found = self._find(subscription, queue)
        if found is None:
            raise LeaseLost(f"the subscription {subscription} has no lease on {queue.name}")
        found.check(start, stop)
        self._touch(found)
        return found.still(start, stop)

    def ack(
        self, subscription: str, queue: Queue, upto: int, token: Token | None = None
    ) -> Completion[Settled]:
        """Receive every leased message with a delivery number below `upto` for the caller `token`; resolved
        when durable.

        A repeated call with the same `upto` has no effect. The completion fails with LeaseLost if number
        `upto` - 1 is void.
        """
        self._services.require_ready()
        found = self._find(subscription, queue)
        if found is None:
            return _never_given(subscription, queue, upto, self._floor)
        self._touch(found)
        caller = self._callers.number(token)
        return self._ask(found, lambda done: self._receive(found, upto, caller, done))

    def release(self, subscription: str, queue: Queue, upto: int) -> Completion[Settled]:
        """Return every leased message with a delivery number below `upto` to the queue and void the numbers;
        resolved when durable.
        """
        self._services.require_ready()
        found = self._find(subscription, queue)
        if found is None:
            return Completion.of(Settled(0, 0))
        self._touch(found)
        return self._ask(found, lambda done: self._put_back(found, upto, done))

    def renew(self, subscription: str) -> None:
        """Extend all leases of a subscription, because its reader has just made a call."""
        for holder in self._all():
            if holder.subscription == subscription:
                self._extend(holder)

    # ---- for others

    def holders(self) -> dict[int, str]:
        """Returns the owner numbers with which leased messages are locked: owner number → subscription
        name.
        """
        return {holder.owner: holder.subscription for holder in self._all() if holder.held}

    def listed(self) -> list[Holding]:
        """Returns all leases."""
        now = self._services.monotonic()
        return [
            Holding(holder.subscription, holder.queue, holder.start, holder.next, max(holder.due - now, 0.0))
            for holder in self._all()
        ]

    @property
    def held(self) -> int:
        """How many delivery numbers are neither acknowledged nor void, over all leases."""
        return sum(holder.held for holder in self._all())

    def forget(self, queue: Queue) -> None:
        """Delete the leases of a queue that is deleted in the current batch."""
        for holder in self._holders.pop(queue.ordinal, {}).values():
            holder.gone = True
            holder.delete()

    # ---- holders

    def _find(self, subscription: str, queue: Queue) -> LeaseHolder | None:
        found = self._holders.get(queue.ordinal, {}).get(check_name(subscription))
        if found is not None and found.held and not found.jobs and found.due <= self._services.monotonic():
            self._end(found)
        return found

    def _new(self, subscription: str, queue: Queue) -> LeaseHolder:
        if sum(map(len, self._holders.values())) >= MOST_HOLDERS:
            idle = [one for one in self._all() if not one.held and not one.jobs]
            if not idle:
                raise InsufficientResources(f"there are {MOST_HOLDERS} leases; that is the limit")
            oldest = min(idle, key=lambda holder: holder.used)
            del self._holders[oldest.queue.ordinal][oldest.subscription]
            oldest.delete()
            # A holder that returns acknowledges earlier numbers: they must not be given to other messages.
            self._floor = max(self._floor, oldest.next)
            self._records.set_meta(MetaName.LEASE_FLOOR, self._floor)
        owner = self._ledger.new_owner(lease=True)
        holder = LeaseHolder(subscription, queue, owner, self._records, self._go_on)
        holder.start = holder.next = self._floor
        self._holders.setdefault(queue.ordinal, {})[subscription] = holder
        return holder

    def _touch(self, holder: LeaseHolder) -> None:
        holder.used = self._ledger.now_s
        self._extend(holder)
        self.renew(holder.subscription)

    def _extend(self, holder: LeaseHolder) -> None:
        holder.due = self._services.monotonic() + holder.seconds
        if holder.held:
            self._due = min(self._due, holder.due)

    # ---- work in stretches: a job yields NEXT between two of them, WAIT until what it wrote is durable

    def _ask(self, holder: LeaseHolder, job: Callable[[Completion[T]], Iterator[bool]]) -> Completion[T]:
        done: Completion[T] = Completion()
        holder.jobs.append(_guarded(job(done), done))
        if len(holder.jobs) == 1:
            self._step(holder)  # small work is done at once
        return done

    def _step(self, holder: LeaseHolder) -> None:
        """Run the next slice of the holder's first job. If the holder has more work and does not wait for the
        store, put the holder into the list of holders with work.
        """
        awaited = next(holder.jobs[0], None)
        if awaited is None:
            holder.jobs.popleft()
            self._extend(holder)
        if holder.jobs and awaited is not WAIT:
            self._busy.append(holder)

    def _go_on(self, holder: LeaseHolder) -> None:
        """Continue the first job of a holder, because the holder's writes are durable or have failed."""
        if holder.jobs and holder not in self._busy:
            self._step(holder)

    def _durable(self, holder: LeaseHolder) -> Generator[bool, None, int]:
        """Wait until the holder's writes are durable or have failed; returns 0 or the status of the first
        failure.
        """
        while holder.flying:
            yield WAIT
        status = holder.take_failure()
        if status:
            self._mend = min(self._mend, self._services.monotonic() + RETRY)
        return status

    def _gather(self, holder: LeaseHolder, rows: int, size: int, done: Completion[Leased]) -> Iterator[bool]:
        first, core = holder.next, holder.queue.core
        rows = min(rows, MOST_HELD - self.held)
        if rows <= 0:
            raise InsufficientResources(f"{MOST_HELD} messages are leased; that is the limit")
        self._orderly(holder)
        try:
            while rows > 0 and not holder.gone and not holder.failure:
                keys, taken = lock(core, holder.owner, min(rows, CHUNK), size, holder.next == first)
                if not keys:
                    break
                rows -= len(keys)
                size = max(size - taken, 0)
                chunk = holder.give(keys)
                with self._services.store.unit():
                    holder.write(chunk)
                if rows > 0:
                    yield NEXT
            status = yield from self._durable(holder)
            if status:
                raise storage_error(status)
        except Exception:
            core.release(holder.take_back(first), holder.owner)
            yield from self._mended(holder)
            raise
        if holder.gone:
            raise QueueDeleted("the queue is deleted")
        done.resolve(Leased(first, holder.next))

    def _receive(
        self, holder: LeaseHolder, upto: int, caller: int, done: Completion[Settled]
    ) -> Iterator[bool]:
        removed = gone = 0
        _check_last(holder, upto)
        if holder.broken or upto > holder.start:
            self._orderly(holder)
        if holder.broken and upto <= holder.start:
            yield from self._mended(holder)
        while holder.start < upto and not holder.gone:
            keys = holder.front(upto, ACK_STEP)
            with self._services.store.unit() as writer:
                received = settle(holder.queue.core, keys, holder.owner, caller)
                writer.on_roll_back(holder.snapshot())
                holder.advance(len(keys))
                holder.write()
            removed += received
            gone += len(keys) - received
            if holder.start < upto:
                yield NEXT
        status = yield from self._durable(holder)
        if status:
            raise storage_error(status)
        done.resolve(Settled(removed, gone + max(upto - holder.start, 0)))

    def _put_back(self, holder: LeaseHolder, upto: int, done: Completion[Settled]) -> Iterator[bool]:
        self._orderly(holder)
        before = holder.start
        released = 0
        parts = holder.void(upto)
        # The records first: no other reader may get a message that a start would take for leased.
        written = True
        if holder.start > before or holder.broken:
            written = self._write(holder)
        for part in parts:
            if not holder.gone:
                released += holder.queue.core.release(part, holder.owner)
            yield NEXT
        status = yield from self._durable(holder)
        if status or not written:
            raise storage_error(status or ENOSPC)
        done.resolve(Settled(released, holder.start - before - released))

    def _mended(self, holder: LeaseHolder) -> Iterator[bool]:
        """Write the holder's records again after a failed write."""
        written = self._write(holder)
        status = yield from self._durable(holder)
        if status or not written:
            raise storage_error(status or ENOSPC)

    def _write(self, holder: LeaseHolder) -> bool:
        """Write the records of a holder in a unit of its own. If the store rejects the write, schedules a
        retry and returns False.
        """
        if holder.gone:
            return True
        try:
            with self._services.store.unit():
                holder.write()
        except StoreError:
            self._mend = min(self._mend, self._services.monotonic() + RETRY)
            return False
        return True

    def _orderly(self, holder: LeaseHolder) -> None:
        """Raises MESSAGE_STORAGE_FAILED if the store has rejected a removal of messages that is still to be
        retried. Until then the lease records must not be written: they would count messages as acknowledged
        that are still in the store.
        """
        if holder.broken and self._ledger.pending_deletes:
            raise MessageStorageFailed("the store is full: retrying to remove the acknowledged messages")

    # ---- time

    def _end(self, holder: LeaseHolder) -> None:
        """End a lease that has expired: void its numbers and return its messages to the queue."""
        self.ended += 1
        done: Completion[Settled] = Completion()
        holder.jobs.append(_guarded(self._put_back(holder, holder.next, done), done))
        self._step(holder)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never."""
        if self._busy:
            return self._services.monotonic()
        due = min(self._due, self._mend)
        return None if due == math.inf else due

    def expire(self, now: float) -> None:
        """End the leases that have expired, retry failed writes of records, and continue the work on leases
        for a limited time.
        """
        if self._due <= now:
            for holder in [one for one in self._all() if one.held and not one.jobs and one.due <= now]:
                self._isolated(holder, self._end)
            idle = (one.due for one in self._all() if one.held and not one.jobs)
            self._due = min(idle, default=math.inf)
        if self._mend <= now:
            self._mend = math.inf
            self._write_again(now)
        while self._busy:
            self._isolated(self._busy.popleft(), self._step)
            if self._services.monotonic() >= now + SLICE:
                return

    def _isolated(self, holder: LeaseHolder, step: Callable[[LeaseHolder], None]) -> None:
        """Call `step(holder)`. An unexpected exception stops only the holder's current job."""
        try:
            step(holder)
        except Exception as error:
            self._services.faults.note("a lease", error)
            if holder.jobs:
                holder.jobs.popleft()
            self._extend(holder)

    def _write_again(self, now: float) -> None:
        for holder in [one for one in self._all() if one.broken and not one.gone and not one.jobs]:
            if self._ledger.pending_deletes:
                self._mend = now + RETRY
                return
            done: Completion[None] = Completion()
            holder.jobs.append(_guarded(self._mended(holder), done))
            self._step(holder)

    # ---- recovery

    def recover(self) -> None:
        """Restore the stored leases, each with its full duration. Leased messages that no longer exist will
        count as `Settled.gone`.

        A lease with damaged records ends. Call inside a unit.
        """
        floor = self._records.meta(MetaName.LEASE_FLOOR, 1)
        self._floor = max(floor, 1) if isinstance(floor, int) else 1
        queues = {queue.ordinal: queue for queue in self._registry.queues()}
        for (ordinal, name), found in stored_leases(self._records).items():
            queue = queues.get(ordinal)
            if queue is None:
                continue
            try:
                self._restore(name, queue, found)
            except (ValueError, TypeError, KeyError) as error:
                self._services.report_corrupt(
                    "lease", f"the lease of {quoted(name)} on {queue.name} is damaged: {error!r}"
                )
                for record in found.names:
                    self._records.delete_meta(record)

    def _restore(self, name: str, queue: Queue, found: Stored) -> None:
        owner = self._ledger.new_owner(lease=True)
        holder = LeaseHolder(check_name(name), queue, owner, self._records, self._go_on)
        holder.restore(found)
        self._holders.setdefault(queue.ordinal, {})[name] = holder
        for chunk in holder.chunks:
            lock_again(queue.core, chunk.part(holder.start, holder.next), holder.owner)
        self._extend(holder)


def _check_last(holder: LeaseHolder, upto: int) -> None:
    """Raises LeaseLost if the number before `upto` is void or was never assigned."""
    if upto > holder.start or any(first < upto <= stop for first, stop in holder.voids):
        holder.check(upto - 1, upto)


def _never_given(subscription: str, queue: Queue, upto: int, floor: int) -> Completion[Settled]:
    done: Completion[Settled] = Completion()
    if upto > floor:
        done.fail(LeaseLost(f"the subscription {subscription} has never leased messages of {queue.name}"))
    else:
        done.resolve(Settled(0, 0))
    return done


def _guarded(job: Iterator[bool], done: Completion[T]) -> Iterator[bool]:
    """Run a job; if it raises, `done` fails with the error."""
    try:
        yield from job
    except StoreError as error:
        done.fail(MessageStorageFailed(str(error)))
    except Exception as error:
        done.fail(error)

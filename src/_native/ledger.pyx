# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The ledger of all queues; see ledger.pxd."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free
from msmq_fast._native.batch cimport Callback, also
from msmq_fast._native.ledgerbase cimport REASON_NONE, ROLE_NONE, ROLE_OUTGOING, LedgerBase, PendingDelete, log_reaped, slot_of
from msmq_fast._native.positions cimport NO_TIMER, STATE_AVAILABLE, Slot
from msmq_fast._native.reading cimport QueueReading
from msmq_fast._native.removal cimport DeferredDelete, Drain
from msmq_fast._native.wheel cimport Timer


cdef enum:
    EXPIRED_TOLD = 8            # expired messages that one call of `expire` names


cdef class Ledger(LedgerBase):
    """``Ledger(guid, writer, reader, seed=0)``: `guid` is the GUID of the queue manager, 16 bytes as on the wire; `seed` is random."""

    @property
    def pending_deletes(self) -> int:
        """The number of messages of purged or deleted queues, or with a failed removal, that may still be in the store."""
        cdef Drain drain
        cdef uint64_t count = self._pending_count + self._reaped + self._deleting
        for drain in self._drains:
            count += drain._positions.live
        return count

    def reap(self, size_t limit=1000, sink=None) -> int:
        """Deletes up to `limit` messages whose removal was deferred, in one unit (DU-08). Returns how many are left.

        `sink(status)` is called when the deletions are durable. Until then another call has no effect, so that the deletions of a large
        queue never delay other commits for long. Packets that side effects need are read first, in smaller numbers.
        """
        cdef PendingDelete entry
        cdef DeferredDelete deferred = None
        cdef Drain drain
        cdef size_t done = 0, drained = 0, tail = self.removals._tail
        cdef Slot slot
        if self.reaping or not (self._pending_count or self._drains):
            return self.pending_deletes
        while done < limit and self._pending_count and self._pending[self._pending_count - 1].has_side_effects:
            if deferred is None:
                deferred = DeferredDelete.__new__(DeferredDelete)
                deferred._ledger = self
            if not deferred.add(&self._pending[self._pending_count - 1]):
                break
            self._pending_count -= 1
            done += 1
        if deferred is not None:
            self.reaping = True
            self._deleting = done
            deferred.start(sink)
            return self.pending_deletes
        self.writer.begin_unit()
        try:
            while done < limit and self._pending_count and not self._pending[self._pending_count - 1].has_side_effects:
                entry = self._pending[self._pending_count - 1]
                log_reaped(self, &entry)
                self._pending_count -= 1
                slot_of(&slot, &entry)
                self._delete_stored(entry.queue, ROLE_NONE, &slot, entry.event, REASON_NONE, False)
                if self.feed and entry.event:
                    self.event(entry.event, entry.queue, entry.role == ROLE_OUTGOING, &slot, False, entry.reason)
                self.sources.release(entry.source)
                done += 1
            while done < limit and not self._pending_count and drained < len(self._drains):
                drain = self._drains[drained]
                done += drain.run(limit - done)
                drained += drain._positions.live == 0
            if self.removals._tail != tail:
                self.removals.watch()
                self.writer.notify(Callback(self._reap_ended(sink)), 0)
        except BaseException:
            self.writer.roll_back()
            raise
        self.writer.keep_unit()
        del self._drains[:drained]
        if self.removals._tail != tail:
            self._reaped = self.removals._tail - tail
            self.reaping = True
        if self._pending_count == 0:
            free(self._pending)
            self._pending = NULL
            self._pending_capacity = 0
        return self.pending_deletes

    @property
    def returned(self) -> int:
        """The number of messages that `requeue` could not put back: they are in no queue until return_again() succeeds."""
        return len(self._returned)

    def return_again(self) -> None:
        """Puts the messages counted by `returned` back into their queues. A message for which that raises is kept for the next call, and
        does not affect the others; the exception is raised at the end.
        """
        cdef QueueReading core
        cdef object fault = None
        returned, self._returned = self._returned, []
        for core, message in returned:
            try:
                core.requeue([message])
            except Exception as error:
                fault = also(fault, error)      # requeue has put it into the list again
        if fault is not None:
            raise fault

    def serve(self) -> None:
        """Calls `ready` of every queue that got messages since the last call. An exception in one of these calls, or in `on_poison`, does
        not keep the others from being made, and is raised at the end.
        """
        cdef QueueReading core
        cdef object fault = None
        while self._dirty:
            dirty, self._dirty = self._dirty, []
            for core in dirty:
                core._dirty = False
                try:
                    if core._poisoned:
                        keys, core._poisoned = core._poisoned, []
                        self.on_poison(core.ordinal, keys)
                except Exception as error:
                    fault = also(fault, error)
                try:
                    if core.interested and core.ready is not None:
                        core.ready()
                except Exception as error:
                    fault = also(fault, error)
        if fault is not None:
            raise fault

    def expire(self, uint32_t limit=1000) -> int:
        """Removes up to `limit` expired messages (DM-213, X-04). Returns how many timers have fired, at most `limit`.

        A message whose removal raises is retried after EXPIRE_AGAIN seconds and does not delay others. The exception is raised at the end.
        `on_expired` is called with the first EXPIRED_TOLD messages.
        """
        cdef object fault = None
        cdef list told = None
        cdef tuple message = None
        cdef uint32_t more = 0
        cdef Timer timer
        cdef QueueReading core
        cdef Slot* slot = NULL
        cdef uint32_t fired = 0
        self.wheel.advance(self.now_s)
        while fired < limit and self.wheel.pop_due(&timer):
            fired += 1
            core = self._cores.get(timer.first)
            slot = core.positions.find(timer.second) if core is not None else NULL
            if slot == NULL:
                self._disarm(timer.first, timer.second)
                continue
            slot.timer = NO_TIMER
            message = None
            if slot.state != STATE_AVAILABLE or self.on_expired is None:
                pass    # a locked message expires when it is unlocked
            elif told is not None and len(told) == EXPIRED_TOLD:
                more += 1
            else:
                message = (timer.first, PyBytes_FromStringAndSize(<const char*>self.sources.guid(slot.source), 16), slot.ordinal)
            try:
                core._expire(slot)
                if message is not None:
                    told = [] if told is None else told
                    told.append(message)
            except Exception as error:
                fault = also(fault, error)
                core._expire_later(timer.second)
                if self.writer.failed:
                    break   # the others would raise as well
        if told is not None:
            self.on_expired(told, more)
        if fault is not None:
            raise fault
        return fired

    def _disarm(self, uint32_t queue, uint64_t key):
        """Clears the timer of a message in the Drain that deletes the message; called when the timer fires and the message is no longer in
        its queue.
        """
        cdef Drain drain
        cdef Slot* slot = NULL
        for drain in self._drains:
            if drain._queue == queue:
                slot = drain._positions.find(key)
                if slot != NULL:
                    slot.timer = NO_TIMER

    def core(self, uint32_t ordinal) -> "QueueReading | None":
        """Returns the queue with this ordinal, or None."""
        return self._cores.get(ordinal)

    def totals(self) -> tuple:
        """Returns (number of messages, bytes of their packets) of all queues."""
        cdef QueueReading core
        cdef uint64_t messages = 0, size = 0
        for core in self._cores.values():
            messages += core.messages
            size += core.bytes
        return messages, size

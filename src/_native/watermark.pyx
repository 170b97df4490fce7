# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The watermark of bulk readers: no new message appears below this arrival sequence."""

from libc.stdint cimport uint64_t
from msmq_fast._native.ledger cimport Ledger


cdef class VisibilityWatermark:
    """``VisibilityWatermark(ledger)``: updates `Ledger.watermark`, below which no new message appears, except moved and returned ones.

    A message gets its arrival sequence when it joins a batch, and batches end in order. Therefore, when a batch has ended, every message
    whose sequence was issued before `look` was called for that batch is available or rejected. A ledger has one watermark.
    """

    def __init__(self, Ledger ledger not None):
        self._ledger = ledger
        self._asked = self._reached = 0
        self._sinks = []

    def look(self, sink=None) -> int:
        """Makes the watermark rise above all sequences issued so far, when the current batch ends. Returns the present watermark.

        `sink()` is called when the watermark has risen; before this returns if it need not rise.
        """
        cdef Ledger ledger = self._ledger
        cdef uint64_t wanted = ledger.sequence + 1
        if wanted != self._asked:
            ledger.writer.notify(self, wanted)
            self._asked = wanted
        if sink is not None:
            if ledger.watermark >= wanted:
                sink()
            else:
                self._sinks.append((wanted, sink))
        return ledger.watermark

    cdef int committed(self, uint64_t token, int status) except -1:
        self._reached = max(self._reached, token)
        return 0

    cdef int settled(self) except -1:
        self._ledger.watermark = self._reached
        due = [sink for wanted, sink in self._sinks if wanted <= self._reached]
        self._sinks = [entry for entry in self._sinks if entry[0] > self._reached]
        for sink in due:
            sink()
        return 0

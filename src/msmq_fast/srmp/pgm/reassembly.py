"""Reassembles APDUs from the data of consecutive packets (RFC 3208, 9.2.3)."""

from __future__ import annotations

from msmq_fast.srmp.pgm.model import ReceiverStatistics
from msmq_fast.srmp.pgm.options import Fragment
from msmq_fast.srmp.pgm.settings import APDU_LIMIT


class Reassembly:
    """Takes the packets of one session in order; holds one incomplete APDU of at most 65,536 octets."""

    def __init__(self, statistics: ReceiverStatistics) -> None:
        self._statistics = statistics
        self._open: Fragment | None = None  # the first fragment of the unfinished APDU
        self._octets = bytearray()

    def take(self, sequence: int, data: bytes, fragment: Fragment | None) -> bytes | None:
        """Take the packet with the 32-bit number `sequence`; return the APDU that ends with this packet, None
        if no APDU does.

        If a fragment does not continue the incomplete APDU, both are dropped. Then all data up to the
        beginning of the next APDU is dropped too.
        """
        if fragment is None:
            self.interrupt()
            return data or None
        if fragment.offset == 0:
            self.interrupt()
            if not data or fragment.first != sequence or fragment.length > APDU_LIMIT:
                self._statistics.apdus_dropped += 1
                return None
            self._open = fragment
        elif self._open is None:
            return None  # the middle of an APDU whose beginning was not received
        elif not data or self._open != fragment._replace(offset=0) or fragment.offset != len(self._octets):
            self.interrupt()
            return None
        self._octets += data
        if len(self._octets) < fragment.length:
            return None
        apdu = bytes(self._octets)
        self._close()
        return apdu

    def interrupt(self) -> None:
        """Drop the incomplete APDU because packets are missing."""
        if self._open is not None:
            self._statistics.apdus_dropped += 1
            self._close()

    def _close(self) -> None:
        self._open = None
        self._octets = bytearray()

"""APDUs put together from the data of consecutive packets (RFC 3208, 9.2.3)."""

from __future__ import annotations

from msmq_fast.srmp.pgm.model import ReceiverStatistics
from msmq_fast.srmp.pgm.options import Fragment
from msmq_fast.srmp.pgm.settings import APDU_LIMIT


class Reassembly:
    """Takes the packets of one session in their order; holds one unfinished APDU of at most 65,536 octets."""

    def __init__(self, statistics: ReceiverStatistics) -> None:
        self._statistics = statistics
        self._open: Fragment | None = None  # the first fragment of the unfinished APDU
        self._octets = bytearray()

    def take(self, sequence: int, data: bytes, fragment: Fragment | None) -> bytes | None:
        """The APDU that ends with this packet (`sequence`: its 32 bits); None where none does.

        What does not fit together is dropped, and everything up to the beginning of the next APDU with it.
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
        """Packets are missing here: the unfinished APDU is dropped."""
        if self._open is not None:
            self._statistics.apdus_dropped += 1
            self._close()

    def _close(self) -> None:
        self._open = None
        self._octets = bytearray()

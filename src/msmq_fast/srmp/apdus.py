"""Finds the messages in the APDUs of a PGM session.

An APDU usually holds one message, but no document requires that (A-75).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from msmq_fast.srmp.compound import read_text
from msmq_fast.srmp.model import Nonconforming
from msmq_fast.srmp.pgm.settings import APDU_LIMIT

__all__ = ["Texts"]

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\nContent-Length:[ \t]*(\d{1,9})[ \t]*\r\n", re.IGNORECASE)
_BEGINNING: Final = b"POST "
_MOST: Final = 4 * APDU_LIMIT  # octets of a message that is spread over several APDUs
_SESSIONS: Final = 64  # sessions that have such a message begun


class Texts:
    """Cuts the APDUs of PGM sessions into messages, with the Content-Length in the head of each message."""

    def __init__(self) -> None:
        self._begun: OrderedDict[Hashable, bytes] = OrderedDict()
        self.dropped = 0
        """Number of messages that were dropped because they did not become complete."""

    def feed(self, session: Hashable, apdu: bytes) -> list[bytes]:
        """Return the messages that are complete with this APDU of a session.

        An APDU without a Content-Length counts as one message. If an APDU holds only complete messages, the
        incomplete message of an earlier APDU is dropped.
        """
        begun = self._begun.pop(session, b"")
        found, rest = _cut(apdu)
        if not begun:
            return self._kept(session, found, rest)
        if found and not rest and apdu.startswith(_BEGINNING):
            self.dropped += 1
            return found
        if len(begun) + len(apdu) > _MOST:
            self.dropped += 1
            return []
        found, rest = _cut(begun + apdu)
        return self._kept(session, found, rest)

    def _kept(self, session: Hashable, found: list[bytes], rest: bytes) -> list[bytes]:
        if rest and _complete(rest):  # its head lies about the length, which counts for nothing (footnote 2)
            return [*found, rest]
        if rest:
            self._begun[session] = rest
            if len(self._begun) > _SESSIONS:
                self._begun.popitem(last=False)
                self.dropped += 1
        return found


def _cut(text: bytes) -> tuple[list[bytes], bytes]:
    """Return the complete messages in `text`, and the beginning of the next one."""
    found: list[bytes] = []
    at = 0
    while at < len(text):
        end = text.find(_HEAD_END, at)
        length = None if end < 0 else _LENGTH.search(text, at, end + 2)
        if length is None:
            if end < 0 and text.startswith(_BEGINNING, at):
                return found, text[at:]
            return [*found, text[at:]], b""
        stop = end + len(_HEAD_END) + int(length[1])
        if stop > len(text):
            return found, text[at:]
        found.append(text[at:stop])
        at = stop
    return found, b""


def _complete(text: bytes) -> bool:
    try:
        read_text(text)
    except Nonconforming:
        return False
    return True

"""Reads envelopes of one sender that differ in a few texts only, without an XML parser.

1. An envelope that the parser has read can become a pattern: its bytes, split at the texts of action, id,
   expiresAt, sentAt and TTrq. It becomes one only if it has no entity, comment, CDATA section or processing
   instruction, if `<` and `>` only begin and end tags, and if each of these elements occurs once, so that its
   text lies between its start tag and the next `<`.
2. Another envelope with the same bytes around these texts, and with plain characters in them, has the same
   tree with other texts: whether it is well-formed, its depth, its names and its attributes depend only on
   the bytes that are equal.
3. The texts are converted by the same functions as after parsing. An envelope that does not match, or whose
   texts are invalid, is passed to the parser; only the parser refuses envelopes.

Patterns are used only for user messages that have no stream and no signature: receipts and signed messages
have few bytes in common.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from msmq_fast.srmp.model import LABEL_PREFIX, Envelope
from msmq_fast.srmp.reading import MAX_LABEL, read_envelope
from msmq_fast.srmp.values import Nonconforming, read_date, read_message_id

__all__ = ["EnvelopePatterns", "Pattern"]

MOST_PATTERNS: Final = 256
MOST_BYTES: Final = 8192
"""The size in bytes of the largest envelope that becomes a pattern or is read with one."""

_DECLARATION: Final = b"<?xml "
_NAME: Final = rb"<(?:[^\s<>/:]+:)?(action|id|expiresAt|sentAt|TTrq)"
_START = re.compile(_NAME + rb"(?=[\s/>])")
_VARYING = re.compile(_NAME + rb"(?=[\s>])[^<>]*(?<!/)>([^<>]*)(?=<)")
_LABEL_END: Final = MAX_LABEL + len(LABEL_PREFIX)
_PLAIN: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz:@-._/"


class Pattern:
    """The bytes that some envelopes have in common, and the first of these envelopes."""

    __slots__ = ("_envelope", "_last", "_names", "_pieces")

    def __init__(self, pieces: list[bytes], names: list[str], envelope: Envelope) -> None:
        """`pieces`: the bytes before, between and after the texts of the elements `names`, in order.

        `envelope` is the first of the envelopes that have these bytes in common.
        """
        self._pieces = pieces[:-1]
        self._last = pieces[-1]
        self._names = names
        self._envelope = envelope

    @classmethod
    def of(cls, xml: bytes, envelope: Envelope) -> Pattern | None:
        """Return the pattern of the envelope that the parser has read from `xml`; None if the envelope is
        not suitable for a pattern.
        """
        parts = envelope.stream, envelope.signature, envelope.is_receipt or None
        if len(xml) > MOST_BYTES or any(part is not None for part in parts):
            return None
        if b"&" in xml or b"<!" in xml or xml.count(b"<") != xml.count(b">"):
            return None
        if xml.count(b"<?") != xml.startswith(_DECLARATION):
            return None
        found = list(_VARYING.finditer(xml))
        texts = {match[1].decode(): match[2].decode() for match in found}
        expected = {"action", "id", "expiresAt"}
        expected |= {"sentAt"} if envelope.sent_at is not None else set()
        expected |= {"TTrq"} if envelope.msmq is not None else set()
        if texts.keys() != expected or len(_START.findall(xml)) != len(expected):
            return None
        if (texts["action"], texts["id"]) != (envelope.action, envelope.id):
            return None  # white space around them
        cuts = [0, *(place for match in found for place in match.span(2)), len(xml)]
        pieces = [xml[begin:end] for begin, end in zip(cuts[::2], cuts[1::2], strict=True)]
        return cls(pieces, list(texts), envelope)

    def read(self, xml: bytes) -> Envelope | None:
        """Return the envelope in `xml`; None if it does not match this pattern or is invalid."""
        if len(xml) > MOST_BYTES:
            return None
        at = 0
        texts: list[bytes] = []
        for piece in self._pieces:
            if not xml.startswith(piece, at):
                return None
            at += len(piece)
            end = xml.find(b"<", at)
            if end < 0:
                return None
            texts.append(xml[at:end])
            at = end
        if xml[at:] != self._last or b"".join(texts).translate(None, _PLAIN):
            return None
        found = dict(zip(self._names, texts, strict=True))
        action, identifier = found["action"].decode(), found["id"].decode()
        if action.startswith(LABEL_PREFIX) and len(action) > _LABEL_END:
            return None
        first = self._envelope
        msmq, sent = first.msmq, found.get("sentAt")
        try:
            expires_at = read_date(found["expiresAt"].decode())
            sent_at = None if sent is None else read_date(sent.decode())
            if msmq is not None:
                read_message_id(identifier)
                ttrq = read_date(found["TTrq"].decode())
                if ttrq != msmq.ttrq:
                    msmq = replace(msmq, ttrq=ttrq)
        except Nonconforming:
            return None
        return Envelope(
            action=action,
            to=first.to,
            id=identifier,
            expires_at=expires_at,
            sent_at=sent_at,
            via=first.via,
            durable=first.durable,
            services=first.services,
            delivery_to=first.delivery_to,
            commitment_to=first.commitment_to,
            positive_only=first.positive_only,
            negative_only=first.negative_only,
            msmq=msmq,
        )


class _Sender:
    """The latest pattern of one sender, and the number of envelopes of this sender since the latest one that
    matched a pattern.
    """

    __slots__ = ("_misses", "_pattern")

    def __init__(self) -> None:
        self._pattern: Pattern | None = None
        self._misses = 0

    def read(self, xml: bytes) -> Envelope:
        """Return the envelope in `xml`. Raises Nonconforming if the envelope is invalid."""
        if self._pattern is not None:
            envelope = self._pattern.read(xml)
            if envelope is not None:
                self._misses = 0
                return envelope
        envelope = read_envelope(xml)
        self._misses += 1
        if self._misses & (self._misses - 1) == 0:  # 1, 2, 4, 8 …: where patterns never help, few are made
            self._pattern = Pattern.of(xml, envelope)
        return envelope


class EnvelopePatterns:
    """The latest pattern of each sender."""

    def __init__(self) -> None:
        self._senders: dict[int, _Sender] = {}

    def read(self, xml: bytes, key: int) -> Envelope:
        """Return the envelope in `xml`. `key` identifies its sender and its destination.

        The key may be a hash: if two senders have the same key, the pattern of one does not match the
        envelopes of the other, and the parser reads them. Raises Nonconforming if the envelope is invalid.
        """
        sender = self._senders.get(key)
        if sender is not None:
            return sender.read(xml)
        sender = _Sender()
        envelope = sender.read(xml)
        if len(self._senders) >= MOST_PATTERNS:
            self._senders.clear()
        self._senders[key] = sender
        return envelope

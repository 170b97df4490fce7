"""Trace contexts of messages: where a message carries one, and which one it has without carrying any.

A trace context names a span of a trace (W3C Trace Context). A message can have it from three places, which
`creation_context` tries in this order:

1. The extension holds our own format: the magic `MQTC`, version, flags, length of the trace state, trace id,
   span id, trace state.
2. The extension holds headers of NServiceBus (`NServiceBus.TraceParent`, else `traceparent`) or of Rebus
   (`rbs-ot-tracestate`, which holds a traceparent; else `traceparent`).
3. Neither: the context is derived from the message identifier by SHA-256, so that every queue manager and
   every program computes the same one. Nothing is added to the message.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.headers import extension_headers

MAX_STATE: Final = 512  # characters of a trace state that are kept, as the W3C recommends

_MAGIC: Final = b"MQTC"
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<4sBBH16s8s")  # magic, version, flags, length of the state, trace id, span id
_SAMPLED: Final = 1
_PARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_STATE: Final = re.compile(r"[\x20-\x7e]*")
_NAMES: Final = ("nservicebus.traceparent", "rbs-ot-tracestate", "traceparent")
_SPREAD: Final = 2_654_435_761  # 2**32 divided by the golden ratio: spreads consecutive numbers evenly
_SIGNS: Final = tuple(sign.encode(code) for sign in ("trace", "Trace") for code in ("utf-8", "utf-16-le"))


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A span of a trace. `trace_id` has 16 bytes and `span_id` 8; neither is all zeros. `state` is the
    `tracestate` of the W3C, at most MAX_STATE printable ASCII characters.
    """

    trace_id: bytes
    span_id: bytes
    sampled: bool = False
    state: str = ""

    @property
    def traceparent(self) -> str:
        """The value of a `traceparent` header."""
        return f"00-{self.trace_id.hex()}-{self.span_id.hex()}-{int(self.sampled):02x}"

    def to_extension(self) -> bytes:
        """Return the extension of a message that carries this context and nothing else."""
        state = self.state.encode("ascii")
        head = _HEAD.pack(_MAGIC, _VERSION, int(self.sampled), len(state), self.trace_id, self.span_id)
        return head + state


def parse_traceparent(text: str, state: str = "") -> TraceContext | None:
    """Return the context of a `traceparent` header; None if the header is not valid. An invalid or overlong
    `state` is left out.
    """
    matched = _PARENT.fullmatch(text.strip()[:256])
    if matched is None or matched[1] == "ff" or (matched[1] == "00" and matched[5]):
        return None
    sampled = bool(int(matched[4], 16) & _SAMPLED)
    return _valid(bytes.fromhex(matched[2]), bytes.fromhex(matched[3]), sampled, state)


def derived_context(message_id: bytes) -> TraceContext:
    """Return the context that the 20 bytes of a message identifier determine: the first 16 bytes of their
    SHA-256 are the trace id, the next 8 the span id.
    """
    digest = sha256(message_id).digest()
    return TraceContext(digest[:16], digest[16:24])


def is_own_extension(extension: bytes) -> bool:
    """Whether an extension holds our own format, and may therefore be replaced by another context."""
    return extension.startswith(_MAGIC)


def carried_context(extension: bytes) -> TraceContext | None:
    """Return the context that an extension holds; None without one, and for anything that is not valid."""
    if not extension:
        return None
    if is_own_extension(extension):
        return _own(extension)
    if not any(sign in extension for sign in _SIGNS):
        return None  # before the headers are parsed: most messages have none
    try:
        headers = {name.lower(): text for name, text in extension_headers(extension).items()}
    except BodyError:
        return None
    for name in _NAMES:
        if name in headers:
            return parse_traceparent(headers[name], headers.get("tracestate", ""))
    return None


def creation_context(message_id: bytes, extension: bytes) -> TraceContext:
    """Return the context in which a message was created: the one that its extension holds, else the derived
    one.
    """
    return carried_context(extension) or derived_context(message_id)


def chosen(ordinals: Sequence[int], ratio: float) -> list[int]:
    """Return the positions of those messages in a list that belong to the share `ratio` (0 to 1) of all
    messages. The list has the last four bytes of message identifiers as numbers; these alone decide, so that
    all computers with the same ratio choose the same messages.
    """
    limit = int(ratio * (1 << 32))
    return [index for index, ordinal in enumerate(ordinals) if ordinal * _SPREAD & 0xFFFF_FFFF < limit]


def _own(extension: bytes) -> TraceContext | None:
    # Trailing zeros of an extension can be lost on the way.
    found = _HEAD.unpack_from(extension.ljust(_HEAD.size, b"\0"))
    _, version, flags, length, trace_id, span_id = found
    if version != _VERSION:
        return None
    state = extension[_HEAD.size : _HEAD.size + length].decode("latin-1")
    return _valid(trace_id, span_id, bool(flags & _SAMPLED), state)


def _valid(trace_id: bytes, span_id: bytes, sampled: bool, state: str) -> TraceContext | None:
    if not any(trace_id) or not any(span_id):
        return None
    if len(state) > MAX_STATE or _STATE.fullmatch(state) is None:
        state = ""
    return TraceContext(trace_id, span_id, sampled, state)

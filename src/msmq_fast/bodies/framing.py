""".NET Message Framing (MC-NMF) as NetMsmqBinding writes it into bodies: the records before the envelope."""

from __future__ import annotations

from typing import Final, NamedTuple

from msmq_fast.bodies.errors import BodyError

_VERSION, _MODE, _VIA, _ENCODING, _EXTENSIBLE, _UNSIZED, _SIZED, _END, _FAULT = range(9)
_UPGRADE, _UPGRADED, _PREAMBLE_ACK, _PREAMBLE_END = range(9, 13)

_MODES: Final = {1: "singleton_unsized", 2: "duplex", 3: "simplex", 4: "singleton_sized"}
_ENCODINGS: Final = {
    0: "text/xml; charset=utf-8",
    1: "text/xml; charset=utf-16",
    2: "text/xml; charset=unicode-le",
    3: "application/soap+xml; charset=utf-8",
    4: "application/soap+xml; charset=utf-16",
    5: "application/soap+xml; charset=unicode-le",
    6: "multipart/related",
    7: "application/soap+msbin1",
    8: "application/soap+msbinsession1",
}


class Framing(NamedTuple):
    """The contents of the records before the first envelope. `envelope` is the offset of the envelope from
    the first byte of the body.
    """

    version: str
    mode: str
    via: str | None
    encoding: str | None
    envelope: int | None
    envelope_size: int | None


def framing(body: bytes) -> Framing:
    """Return the framing records of a body. Raises BodyError if the body does not begin with framing, or a
    record is invalid.
    """
    version, mode, via, encoding = "", "", None, None
    at = 0
    while at < len(body):
        record, at = body[at], at + 1
        if not version and record != _VERSION:
            raise BodyError("the body is not framed: it must begin with a version record")
        if record == _VERSION:
            need(body, at, 2)
            version, at = f"{body[at]}.{body[at + 1]}", at + 2
        elif record == _MODE:
            need(body, at, 1)
            if body[at] not in _MODES:
                raise BodyError(f"framing mode {body[at]} is not known")
            mode, at = _MODES[body[at]], at + 1
        elif record == _VIA:
            via, at = _string(body, at)
        elif record == _ENCODING:
            need(body, at, 1)
            if body[at] not in _ENCODINGS:
                raise BodyError(f"envelope encoding {body[at]} is not known")
            encoding, at = _ENCODINGS[body[at]], at + 1
        elif record == _EXTENSIBLE:
            encoding, at = _string(body, at)
        elif record == _SIZED:
            size, at = _size(body, at)
            need(body, at, size)
            return Framing(version, mode, via, encoding, at, size)
        elif record == _UNSIZED:
            return Framing(version, mode, via, encoding, at, None)
        elif record == _UPGRADE:
            _, at = _string(body, at)
        elif record in (_END, _UPGRADED, _PREAMBLE_ACK, _PREAMBLE_END):
            continue
        elif record == _FAULT:
            fault, at = _string(body, at)
            raise BodyError(f"the sender ended the framing with the fault {fault[:60]!a}")
        else:
            raise BodyError(f"framing record {record} is not known")
        # The one message of the sized mode follows its encoding without a head of its own.
        if mode == "singleton_sized" and encoding is not None:
            return Framing(version, mode, via, encoding, at, len(body) - at)
    if not version:
        raise BodyError("the body is not framed: it must begin with a version record")
    return Framing(version, mode, via, encoding, None, None)


def need(data: bytes, at: int, size: int) -> None:
    """Raise BodyError unless `data` holds `size` bytes from offset `at`."""
    if size > len(data) - at:
        raise BodyError(f"{size} bytes are needed at byte {at}, but the data ends at byte {len(data)}")


def _size(data: bytes, at: int) -> tuple[int, int]:
    """Read a MultiByteInt31 (MC-NMF 2.2.2.1): seven bits per byte, least significant first. Returns (value,
    offset of the next byte).
    """
    value = 0
    for shift in range(0, 35, 7):
        need(data, at, 1)
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            if value > 0x7FFFFFFF:
                break
            return value, at
    raise BodyError(f"the size before byte {at} is longer than 31 bits")


def _string(data: bytes, at: int) -> tuple[str, int]:
    size, at = _size(data, at)
    need(data, at, size)
    try:
        return data[at : at + size].decode(), at + size
    except UnicodeDecodeError as error:
        raise BodyError(f"the string at byte {at} is not UTF-8") from error

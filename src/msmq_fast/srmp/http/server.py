"""The server side of HTTP/1.1 for SRMP, without IO: takes bytes, returns complete requests, and builds an
answer for each.

This module parses heads in the plain form that most senders write. h11 parses everything else that is legal
(chunked bodies, Expect, HTTP/1.0), and also a folded Content-Type, which the examples of MC-MQSRM contain.
Other folded lines close the connection: a proxy may interpret them differently. A sender drops its message
after a 400 (A-02), so this module answers 400 only to a body that is too long; data that is not HTTP closes
the connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import h11

from msmq_fast.srmp.http.request import HttpRequest

__all__ = ["BadRequest", "Limits", "Refused", "ServerConnection"]

_HEAD_END = re.compile(rb"\n\r?\n")
_LINE = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7E]+) HTTP/1\.1")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH = re.compile(rb"[0-9]{1,10}")
_VALUE = re.compile(rb"[\x20-\x7E\x80-\xFF\t]*")
_BESIDE: Final = frozenset((b"transfer-encoding", b"expect", b"connection", b"upgrade"))
_TWO_LENGTHS: Final = frozenset((b"content-length", b"transfer-encoding"))
"""If both are present, Transfer-Encoding delimits the body (RFC 9112 6.1). A proxy may have used
Content-Length and take the following bytes for a part of this body, so the connection is closed after the
answer.
"""
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one connection, in bytes unless noted. `spare(n)` returns whether the bodies of all
    connections together may take n more bytes of memory.
    """

    head: int = 64 << 10
    fields: int = 200  # header lines
    body: int = (4 << 20) + (80 << 10)  # a message of 4 MiB, its envelope, the MIME boundaries
    small: int = 64 << 10  # bodies up to this are let in without asking
    chunks: int = 1000  # of one body, and one more for each `chunk` bytes of it
    chunk: int = 256
    spare: Callable[[int], bool] = lambda _: True


class BadRequest(Exception):
    """The data is not HTTP, so the connection must be closed. The text of the exception is for people."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that is refused at once with `status`. `close`: its body is not read, and the connection is
    closed after the answer.
    """

    status: int
    reason: str
    close: bool = False


_TOO_LONG: Final = Refused(400, "the body is too long", close=True)
_TOO_MUCH: Final = Refused(500, "too many requests are under way", close=True)
_METHOD: Final = Refused(405, "the method is not POST")
_PATH: Final = Refused(404, "the path does not begin with /msmq")


@dataclass(slots=True)
class _Head:
    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    raw: bytes
    length: int


class ServerConnection:
    """The server side of one connection. After `next` has returned a request, `next` returns None until
    `answer` was called.
    """

    def __init__(self, limits: Limits, peer: str = "", *, tls: bool = False) -> None:
        self._limits = limits
        self._peer = peer
        self._tls = tls
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._last: _Head | None = None  # heads of one sender are mostly the same
        self._raw = b""
        self._h11: h11.Connection | None = None
        self._body = bytearray()  # of a body that h11 reads
        self._chunks = 0
        self._announced = 0  # bytes of the body of the request that is under way
        self._scanned = 0  # bytes of the buffer in which no head ends
        self._refused: Refused | None = None
        self._keep = True
        self._output: list[bytes] = []
        self.waiting = False
        """Whether a request waits for its answer."""
        self.ended = False
        """Whether no more requests are read from the connection."""

    @property
    def arrived(self) -> int:
        """The received bytes that are not part of a returned request yet."""
        return len(self._buffer) + len(self._body)

    @property
    def held(self) -> int:
        """The bytes of memory that this connection needs: received bytes, the announced rest of a body, and
        the request that waits for its answer.
        """
        return max(self.arrived, self._announced)

    @property
    def idle(self) -> bool:
        """Whether no request is under way: none has started to arrive, and none waits for its answer."""
        return not (self.waiting or self._buffer or self._head or self._h11)

    def receive(self, data: bytes | bytearray | memoryview) -> None:
        """Take received bytes. After the last request they are discarded."""
        if not self.ended:
            self._buffer += data

    def take_output(self) -> bytes:
        """Return the bytes to write now, apart from answers."""
        output = b"".join(self._output)
        self._output.clear()
        return output

    def next(self) -> HttpRequest | Refused | None:
        """Return the next complete request, or a request that is refused at once.

        None if there is no such request, or if the previous one waits for its answer. Raises BadRequest.
        """
        if self.waiting or self.ended or self.idle:
            return None
        if self._h11 is None and self._head is None and not self._read_head():
            return None
        if self._h11 is not None:
            return self._by_h11()
        head = self._head
        if head is None:  # refused before its body
            return self._refuse()
        if len(self._buffer) < head.length:
            return None
        body = bytes(self._buffer[: head.length])
        del self._buffer[: head.length]
        self._head = None
        return self._request(head, body)

    def last_one(self) -> None:
        """Close the connection after the answer to the request under way."""
        self._keep = False

    def answer(self, status: int, fixed: bytes) -> bytes:
        """Return the bytes of the answer to the request that `next` returned. `fixed`: the header lines that
        every answer has.
        """
        self.waiting = False
        self._announced = 0
        keep, self._keep = self._keep, True
        if not keep:
            self.ended = True
            self._buffer.clear()
        allow = b"Allow: POST\r\n" if status == HTTPStatus.METHOD_NOT_ALLOWED else b""
        close = b"" if keep else b"Connection: close\r\n"
        phrase = _PHRASES.get(status, b"Status")
        return b"HTTP/1.1 %d %b\r\n%bContent-Length: 0\r\n%b%b\r\n" % (status, phrase, fixed, allow, close)

    # ---- heads

    def _read_head(self) -> bool:
        """Return whether a complete head has arrived. If so, it is in `_head`, passed to h11, or refused."""
        buffer, limits = self._buffer, self._limits
        while buffer.startswith(b"\r\n"):  # RFC 9112 2.2
            del buffer[:2]
        last = self._last
        if last is not None and buffer.startswith(last.raw):
            del buffer[: len(last.raw)]
            self._scanned = 0
            self._announced = last.length
            self._head = last
            return True
        if buffer and buffer[0] < 0x21 and buffer != b"\r":  # a TLS session, for one
            raise BadRequest("the request line is missing")
        end = _HEAD_END.search(buffer, self._scanned, limits.head)
        if end is None:
            if len(buffer) >= limits.head:
                raise BadRequest("the header does not end")
            self._scanned = max(len(buffer) - 2, 0)
            return False
        self._scanned = 0
        raw = bytes(buffer[: end.end()])
        if raw.count(b"\n") > limits.fields:
            raise BadRequest("too many header lines")
        head = _plain(raw)
        if head is None:
            if _is_folded(raw):
                raise BadRequest("a header line other than Content-Type is folded")
            self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head)
            self._raw = raw
            return True
        del buffer[: len(raw)]
        if head.length > limits.body:
            self._refused = _TOO_LONG
        elif head.length > limits.small and not limits.spare(head.length):
            self._refused = _TOO_MUCH
        else:
            self._announced = head.length
            self._head = head
            self._last = head if head.length <= limits.small else None
        return True

    def _refuse(self) -> Refused | None:
        refused, self._refused = self._refused, None
        if refused is not None:
            self.waiting = True
            self._keep = self._keep and not refused.close
        return refused

    # ---- whole requests

    def _request(self, head: _Head, body: bytes) -> HttpRequest | Refused | None:
        if head.method != "POST" or not _is_ours(head.target):
            self._refused = _METHOD if head.method != "POST" else _PATH
            return self._refuse()
        self.waiting = True
        return HttpRequest(head.method, head.target, head.headers, body, self._peer, self._tls, head.raw)

    def _by_h11(self) -> HttpRequest | Refused | None:
        connection = self._h11
        assert connection is not None  # noqa: S101 - by the caller
        if self._buffer:
            connection.receive_data(bytes(self._buffer))
            self._buffer.clear()
        try:
            while True:
                event = connection.next_event()
                if isinstance(event, h11.Request):
                    method = event.method.decode("ascii")
                    self._head = _Head(method, event.target, list(event.headers), self._raw, 0)
                elif isinstance(event, h11.Data):
                    self._body += event.data
                    self._chunks += event.chunk_end
                    if self._chunks > self._limits.chunks + len(self._body) // self._limits.chunk:
                        raise BadRequest("the chunks are too small")
                    if len(self._body) > self._limits.body:
                        return self._stop(_TOO_LONG)
                elif isinstance(event, h11.EndOfMessage):
                    return self._whole(connection)
                elif event is h11.NEED_DATA:
                    return self._more(connection)
                else:
                    raise BadRequest("the connection ended within a request")
        except h11.RemoteProtocolError as error:
            raise BadRequest(str(error)) from None

    def _more(self, connection: h11.Connection) -> Refused | None:
        """Check the size of a request whose body is incomplete. If it is within the limits, let a client that
        waits for 100 Continue send the body; otherwise refuse the request.
        """
        head, limits = self._head, self._limits
        if head is None:
            return None
        fields = dict(head.headers)
        chunked = b"transfer-encoding" in fields  # Content-Length says nothing beside it
        length = 0 if chunked else int(fields.get(b"content-length", b"0"))
        if length > limits.body:
            return self._stop(_TOO_LONG)
        size = max(length, len(self._body))
        if size > limits.small and not limits.spare(size - self.held):
            return self._stop(_TOO_MUCH)
        self._announced = length
        if connection.they_are_waiting_for_100_continue:
            connection.send(h11.InformationalResponse(status_code=100, headers=[]))
            self._output.append(_CONTINUE)
        return None

    def _stop(self, refused: Refused) -> Refused | None:
        self._forget()
        self._refused = refused
        return self._refuse()

    def _whole(self, connection: h11.Connection) -> HttpRequest | Refused | None:
        head, body = self._head, bytes(self._body)
        assert head is not None  # noqa: S101 - its request came before
        names = {name for name, _ in head.headers}
        self._keep = (
            connection.their_http_version == b"1.1"
            and not any(name == b"connection" and b"close" in value.lower() for name, value in head.headers)
            and not names.issuperset(_TWO_LENGTHS)
        )
        self._buffer += connection.trailing_data[0]
        self._forget()
        self._announced = len(body)
        return self._request(head, body)

    def _forget(self) -> None:
        self._h11 = self._head = None
        self._body = bytearray()
        self._chunks = 0


_PHRASES: Final = {int(status): status.phrase.encode() for status in HTTPStatus}


def _is_ours(target: bytes) -> bool:
    """Return whether the path of a request target is below /msmq.

    In a request to a proxy, the target is a complete URL (RFC 9112 3.2.2).
    """
    path = target.lower().replace(b"\\", b"/")
    if path.startswith((b"http://", b"https://")):
        path = b"/" + path.split(b"/", 3)[3] if path.count(b"/") > 2 else b"/"
    return path.startswith(b"/msmq/")


def _is_folded(raw: bytes) -> bool:
    """Return whether a header field other than Content-Type is folded over several lines (RFC 9112 5.2)."""
    name = b""
    for line in raw.split(b"\n"):
        if not line.startswith((b" ", b"\t")):
            name = line.partition(b":")[0]
        elif name.lower() != b"content-type":
            return True
    return False


def _plain(raw: bytes) -> _Head | None:
    """Parse a head in the plain form that most senders write; None if h11 must parse the head."""
    lines = raw.split(b"\r\n")
    found = _LINE.fullmatch(lines[0])
    if found is None or lines[-2:] != [b"", b""]:
        return None
    headers: list[tuple[bytes, bytes]] = []
    length = -1
    host = False
    for line in lines[1:-2]:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            return None
        name, value = name.lower(), value.strip(b" \t")
        if name in _BESIDE:
            return None
        if name == b"content-length":
            if length >= 0 or not _LENGTH.fullmatch(value):
                return None
            length = int(value)
        elif name == b"host":
            if host:
                return None
            host = True
        headers.append((name, value))
    if not host:
        return None
    return _Head(found[1].decode("ascii"), found[2], headers, raw, max(length, 0))

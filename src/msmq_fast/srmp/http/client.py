"""The client side of HTTP/1.1 for SRMP, without IO: one request after the other on a connection (RFC 9112).

SRMP uses only the status of an answer. A short body is skipped; after a long one the connection must be
closed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import h11

__all__ = ["Answer", "BadAnswer", "ClientConnection"]

_HEAD: Final = 64 << 10  # bytes of the head of an answer
_BODY: Final = 1 << 20  # bytes of a body that is read over; behind that, the connection is given up

Headers = Iterable[tuple[bytes, bytes]]


class BadAnswer(Exception):
    """The received data is not a valid answer; the text of the exception is for people."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. `keep`: whether the connection can take another request."""

    status: int
    keep: bool


class ClientConnection:
    """One connection to a server."""

    def __init__(self) -> None:
        self._http = h11.Connection(our_role=h11.CLIENT, max_incomplete_event_size=_HEAD)
        self._status = 0
        self._read_over = 0
        self.answers = 0  # that came
        self.silent = True  # nothing has come since the latest request

    def request(self, target: bytes, headers: Headers, body: bytes) -> list[bytes]:
        """Return the bytes to send for a POST. `headers` must include Host and Content-Length.

        Raises BadAnswer if this connection cannot take further requests, ValueError if a header
        cannot be sent.
        """
        head = self._send(h11.Request(method="POST", target=target, headers=list(headers)))
        pieces = [head, *self._body(body)]
        return [piece for piece in pieces if piece]

    def tunnel(self, authority: bytes, headers: Headers = ()) -> bytes:
        """Return the bytes that request a tunnel to `authority`, `host:port`, from a proxy. After an answer
        with status 2xx, the connection is the tunnel, and this object must not be used any more.
        """
        fields = [(b"Host", authority), *headers]
        head = self._send(h11.Request(method="CONNECT", target=authority, headers=fields))
        return head + b"".join(self._body(b""))

    def _send(self, event: h11.Request) -> bytes:
        self.silent, self._status, self._read_over = True, 0, 0
        try:
            return self._http.send(event) or b""
        except h11.LocalProtocolError as error:
            raise ValueError(str(error)) from None

    def _body(self, body: bytes) -> list[bytes]:
        pieces: list[bytes] = []
        if body:
            pieces += self._http.send_with_data_passthrough(h11.Data(data=body)) or []
        pieces += self._http.send_with_data_passthrough(h11.EndOfMessage()) or []
        return pieces

    def receive(self, data: bytes) -> Answer | None:
        """Take received data; b"" is the end of the stream. Returns the answer as soon as it is complete,
        otherwise None.

        Raises BadAnswer if the data is not an answer, or if the connection ends before the end of the answer.
        """
        if data:
            self.silent = False
        elif self.silent and self._http.our_state is not h11.DONE:
            raise BadAnswer("the connection was closed")
        try:
            self._http.receive_data(data)
            return self._read()
        except h11.RemoteProtocolError as error:
            raise BadAnswer(str(error)) from None

    def _read(self) -> Answer | None:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Response):
                self._status = event.status_code
            elif isinstance(event, h11.Data):
                self._read_over += len(event.data)
                if self._read_over > _BODY:
                    return self._complete(keep=False)
            elif isinstance(event, h11.EndOfMessage):
                return self._complete(keep=True)
            elif event is h11.PAUSED and self._status:  # a tunnel
                return self._complete(keep=False)
            elif isinstance(event, h11.ConnectionClosed):
                raise BadAnswer("the connection was closed")
            elif event in (h11.NEED_DATA, h11.PAUSED):
                return None

    def _complete(self, *, keep: bool) -> Answer:
        self.answers += 1
        http = self._http
        keep = keep and http.our_state is h11.DONE and http.their_state is h11.DONE
        keep = keep and not http.trailing_data[0]
        if keep:
            http.start_next_cycle()
        return Answer(self._status, keep)

"""HTTP to one queue manager: connections, retries, JSON answers, streamed bodies. All calls block."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from msmq_fast.client.bulk.errors import BulkError, Unavailable, error_of

__all__ = ["ARROW_TYPE", "DEFAULT_PORT", "Endpoint", "Link"]

DEFAULT_PORT: Final = 1802
ARROW_TYPE: Final = "application/vnd.apache.arrow.stream"
_PREFIX: Final = "/v1/bulk"
_SCHEMES: Final = {"msmq+bulk": False, "http": False, "https": True}
_MAX_JSON: Final = 64 << 20  # bytes of an answer; a broken server must not fill the memory
_TOKEN, _TOKEN_FILE = "MSMQ_FAST_TOKEN", "MSMQ_FAST_TOKEN_FILE"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of one queue manager, with the token, time-outs and retries. The object holds no socket and
    may be pickled.

    `token` and `token_file` take precedence over the variables MSMQ_FAST_TOKEN and MSMQ_FAST_TOKEN_FILE,
    which are read in the process that connects, so that an executor may have a token of its own. Times are in
    milliseconds (None: without limit); `retries` is the number of attempts after the first one.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    ca_file: str | None = None  # https: certificates to trust; None: those of the system
    timeout_ms: int | None = 120_000
    retries: int = 3
    retry_interval_ms: int = 500

    def __post_init__(self) -> None:
        self.address()

    def address(self) -> tuple[str, int, bool]:
        """Return (host, port, whether TLS is used). Raises ValueError with one line that says what is
        wrong.
        """
        parts = urlsplit(self.url)
        try:
            port = parts.port or DEFAULT_PORT
        except ValueError:
            port = 0
        wrong = not parts.hostname or not port or parts.path.strip("/") or parts.query or parts.fragment
        if parts.scheme not in _SCHEMES or wrong or parts.username is not None or parts.password is not None:
            shown = self.url.rpartition("@")[2]  # what stands before may be a password
            raise ValueError(
                f"{shown!r} is not a valid address of a queue manager: use msmq+bulk://host:port, "
                "http://host:port or https://host:port, and pass the token separately"
            )
        return str(parts.hostname), port, _SCHEMES[parts.scheme]

    def secret(self) -> str | None:
        """Return the token to send; None without one. Raises ValueError if the token file cannot be read, or
        the token holds a character that HTTP does not allow.
        """
        token, file = self.token, self.token_file
        if token is None and file is None:
            token, file = os.environ.get(_TOKEN) or None, os.environ.get(_TOKEN_FILE) or None
        if token is None and file is not None:
            try:
                token = Path(file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ValueError(f"the token file {file} cannot be read: {error}") from None
        if token is not None and (not token.isascii() or not token.isprintable() or " " in token):
            raise ValueError("the token is invalid: only printable ASCII without blanks is allowed")
        return token


class Link:
    """Calls to one queue manager over one kept-alive connection. Only one thread may use the object at a
    time.
    """

    def __init__(self, endpoint: Endpoint, pause: Callable[[float], None] = time.sleep) -> None:
        self.endpoint = endpoint
        self.incarnation: int | None = None  # sent along if set: another one is an error then
        self._pause = pause
        self._kept: http.client.HTTPConnection | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "incarnation": self.incarnation}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["endpoint"])  # type: ignore[misc]
        self.incarnation = state["incarnation"]

    def close(self) -> None:
        """Close the connection; the next call opens another one."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    # ---- calls

    def call(self, method: str, path: str, content: object = None, *, repeat: bool) -> Any:
        """Make one call with JSON in both directions. `repeat`: the call is idempotent and may be retried.

        Raises BulkError; Unavailable if all attempts failed.
        """
        body = None if content is None else json.dumps(content).encode()
        where = f"{method} {path.partition('?')[0]}"

        def attempt() -> Any:
            connection = self._connection(fresh=not repeat)
            with self._guarded(connection, where):
                headers = self._headers({"Content-Type": "application/json"} if body is not None else {})
                connection.request(method, _PREFIX + path, body, headers)
                answer = _read_json(connection.getresponse(), where)
            return answer

        return self._persist(attempt, where, repeat=repeat)

    def open(self, path: str, content: object = None) -> http.client.HTTPResponse:
        """Return the response to a GET, or to a POST of `content` as JSON, to be read as a stream; the caller
        closes it or reads it to its end.

        The response has a connection of its own. Raises as `call`. Retries until the response begins; reading
        it is not retried.
        """
        method, body = ("GET", None) if content is None else ("POST", json.dumps(content).encode())
        where = f"{method} {path.partition('?')[0]}"
        extra = {"Connection": "close"} | ({} if body is None else {"Content-Type": "application/json"})

        def attempt() -> http.client.HTTPResponse:
            connection = self._connect()
            with self._guarded(connection, where):
                connection.request(method, _PREFIX + path, body, self._headers(extra))
                response = connection.getresponse()
                if response.status != 200:
                    _read_json(response, where)
                return response

        return self._persist(attempt, where, repeat=True)

    def upload(self, path: str, parts: Callable[[], Iterable[bytes | memoryview]], *, repeat: bool) -> Any:
        """Send an Arrow stream by POST while `parts` produces it; returns the JSON answer.

        `repeat`: `parts` can be called again, so that a broken upload is retried; the server discards what it
        received of the broken one. Without `repeat`, only connecting is retried. Raises as `call`, and
        whatever `parts` raises.
        """
        where = f"POST {path.partition('?')[0]}"
        connected = self._connect if repeat else lambda: self._persist(self._connect, where, repeat=False)

        def attempt() -> Any:
            connection = connected()
            with contextlib.closing(connection), self._guarded(connection, where):
                connection.putrequest("POST", _PREFIX + path)
                headers = {"Content-Type": ARROW_TYPE, "Transfer-Encoding": "chunked", "Connection": "close"}
                for name, value in self._headers(headers).items():
                    connection.putheader(name, value)
                connection.endheaders()
                complete = _send_chunks(connection, parts())
                answer = _read_json(connection.getresponse(), where)
                if not complete:
                    raise Unavailable(
                        f"{self.endpoint.url}: {where}: the server answered before the upload was complete"
                    )
                return answer

        return self._persist(attempt, where, repeat=True) if repeat else attempt()

    # ---- inside

    def _headers(self, extra: dict[str, str]) -> dict[str, str]:
        headers = {"Accept": f"application/json, {ARROW_TYPE}", **extra}
        token = self.endpoint.secret()
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if self.incarnation is not None:
            headers["X-MSMQ-Incarnation"] = str(self.incarnation)
        return headers

    def _connection(self, *, fresh: bool) -> http.client.HTTPConnection:
        """Return the kept connection; with `fresh`, a new one, for a call that must not be repeated: the
        server may be closing the kept connection.
        """
        if fresh:
            self.close()
        if self._kept is None:
            self._kept = self._connect()
        return self._kept

    def _connect(self) -> http.client.HTTPConnection:
        endpoint = self.endpoint
        host, port, tls = endpoint.address()
        seconds = None if endpoint.timeout_ms is None else endpoint.timeout_ms / 1000
        connection: http.client.HTTPConnection
        if tls:
            try:
                context = ssl.create_default_context(cafile=endpoint.ca_file)
            except OSError as error:
                raise ValueError(f"the CA file {endpoint.ca_file} cannot be read: {error}") from None
            connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=seconds)
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            raise BulkError(
                f"{endpoint.url}: the certificate of the server is not trusted: {error.verify_message}"
            ) from None
        except OSError as error:
            raise _Unreachable(f"{endpoint.url}: {error.strerror or error}") from None
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    @contextlib.contextmanager
    def _guarded(self, connection: http.client.HTTPConnection, where: str) -> Any:
        """Turn connection errors into Unavailable. Close the connection after these and after any unexpected
        exception.
        """
        try:
            yield
        except BulkError as error:
            if isinstance(error, Unavailable):
                self._drop(connection)
            raise
        except (OSError, http.client.HTTPException) as error:
            self._drop(connection)
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Unavailable(f"{self.endpoint.url}: {where}: {reason}") from None
        except BaseException:
            self._drop(connection)
            raise

    def _drop(self, connection: http.client.HTTPConnection) -> None:
        connection.close()
        if connection is self._kept:
            self._kept = None

    def _persist(self, attempt: Callable[[], T], where: str, *, repeat: bool) -> T:
        """Run `attempt` until it succeeds, with at most `Endpoint.retries` retries.

        An attempt that did not reach the server, or that the server declined as not ready, is always retried.
        An attempt whose connection broke off is retried only with `repeat`.
        """
        left = self.endpoint.retries
        while True:
            try:
                return attempt()
            except Unavailable as error:
                harmless = isinstance(error, _Unreachable) or error.details.get("error") == Unavailable.code
                if left <= 0 or not (repeat or harmless):
                    if isinstance(error, _Unreachable):
                        raise Unavailable(f"{error} ({where})") from None
                    raise
            left -= 1
            self._pause(self.endpoint.retry_interval_ms / 1000)


class _Unreachable(Unavailable):
    """No connection was established, so the server has not received the call."""


def _read_json(response: http.client.HTTPResponse, where: str) -> Any:
    """Read an answer to its end and return its JSON content. Raises the error that the answer states."""
    text = response.read(_MAX_JSON + 1)
    if len(text) > _MAX_JSON:
        raise Unavailable(f"{where}: the JSON answer has more than {_MAX_JSON} bytes")
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if response.status != 200:
        raise error_of(response.status, answer, where)
    if answer is None:
        raise Unavailable(f"{where}: the answer is not JSON; is this the admin port of msmq-fast?")
    return answer


def _send_chunks(connection: http.client.HTTPConnection, parts: Iterable[bytes | memoryview]) -> bool:
    """Send the body in chunks; returns whether all of it was sent.

    If the server rejects the request, it stops reading early. The caller must read the answer of the server
    in either case.
    """
    for part in parts:
        size = len(part)
        if not size:
            continue  # an empty chunk would be the end
        try:
            connection.send(b"%x\r\n" % size)
            connection.send(part)
            connection.send(b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            return False
    try:
        connection.send(b"0\r\n\r\n")
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True

"""An independent reader of what we send by SRMP, and a plain HTTP server that records it.

Written from MC-MQSRM and RFC 2616 alone: nothing of the package is imported, and only the standard library is
used. The reader is strict: what it accepts is what a sender may write, in the order of 3.1.7.2.4.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.parsers import expat

SE = "http://schemas.xmlsoap.org/soap/envelope/"
RP = "http://schemas.xmlsoap.org/rp/"
SRMP = "http://schemas.xmlsoap.org/srmp/"
MSMQ = "msmq.namespace.xml"
DS = "http://www.w3.org/2000/02/xmldsig#"

# Every element that may be sent, in the order in which it may be sent (3.1.7.2.4); "!": with mustUnderstand.
_ORDER = """
se:Envelope
se:Envelope/se:Header
! H/rp:path
H/rp:path/rp:action
H/rp:path/rp:to
H/rp:path/rp:id
H/rp:path/rp:rev
H/rp:path/rp:rev/rp:via
! H/srmp:properties
H/srmp:properties/srmp:expiresAt
H/srmp:properties/srmp:sentAt
! H/srmp:services
H/srmp:services/srmp:durable
H/srmp:services/srmp:deliveryReceiptRequest
H/srmp:services/srmp:deliveryReceiptRequest/srmp:sendTo
H/srmp:services/srmp:commitmentReceiptRequest
H/srmp:services/srmp:commitmentReceiptRequest/srmp:sendTo
H/srmp:services/srmp:commitmentReceiptRequest/srmp:positiveOnly
H/srmp:services/srmp:commitmentReceiptRequest/srmp:negativeOnly
! H/srmp:Stream
H/srmp:Stream/srmp:streamId
H/srmp:Stream/srmp:current
H/srmp:Stream/srmp:previous
H/srmp:Stream/srmp:start
H/srmp:Stream/srmp:start/srmp:sendReceiptsTo
H/srmp:streamReceipt
H/srmp:streamReceipt/srmp:streamId
H/srmp:streamReceipt/srmp:lastOrdinal
H/srmp:deliveryReceipt
H/srmp:deliveryReceipt/srmp:receivedAt
H/srmp:deliveryReceipt/srmp:id
H/srmp:commitmentReceipt
H/srmp:commitmentReceipt/srmp:decidedAt
H/srmp:commitmentReceipt/srmp:decision
H/srmp:commitmentReceipt/srmp:id
H/msmq:Msmq
H/msmq:Msmq/msmq:Class
H/msmq:Msmq/msmq:Priority
H/msmq:Msmq/msmq:Journal
H/msmq:Msmq/msmq:DeadLetter
H/msmq:Msmq/msmq:Correlation
H/msmq:Msmq/msmq:Trace
H/msmq:Msmq/msmq:ConnectorType
H/msmq:Msmq/msmq:App
H/msmq:Msmq/msmq:BodyType
H/msmq:Msmq/msmq:HashAlgorithm
H/msmq:Msmq/msmq:Eod
H/msmq:Msmq/msmq:Eod/msmq:First
H/msmq:Msmq/msmq:Eod/msmq:Last
H/msmq:Msmq/msmq:Eod/msmq:ConnectorId
H/msmq:Msmq/msmq:Provider
H/msmq:Msmq/msmq:Provider/msmq:Type
H/msmq:Msmq/msmq:Provider/msmq:Name
H/msmq:Msmq/msmq:SourceQmGuid
H/msmq:Msmq/msmq:DestinationMqf
H/msmq:Msmq/msmq:AdminMqf
H/msmq:Msmq/msmq:ResponseMqf
H/msmq:Msmq/msmq:TTrq
H/ds:Signature
H/ds:Signature/ds:SignedInfo
H/ds:Signature/ds:SignedInfo/ds:SignatureMethod
H/ds:Signature/ds:SignedInfo/ds:Reference
H/ds:Signature/ds:SignedInfo/ds:Reference/ds:DigestMethod
H/ds:Signature/ds:SignedInfo/ds:Reference/ds:DigestValue
H/ds:Signature/ds:SignatureValue
se:Envelope/se:Body
"""
_PREFIXES = {SE: "se", RP: "rp", SRMP: "srmp", MSMQ: "msmq", DS: "ds"}
_LINES = [line.replace("H/", "se:Envelope/se:Header/") for line in _ORDER.split("\n") if line]
_PLACE = {line.removeprefix("! "): place for place, line in enumerate(_LINES)}
_UNDERSTOOD = {line.removeprefix("! ") for line in _LINES if line.startswith("! ")}
_REPEATED = "ds:Reference"

_DATE = r"\d{8}T\d{6}"
_GUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FORMS = {
    "rp:action": r"(MSMQ:.{0,249})?",
    "rp:to": r"(https?://\S+|MSMQ:MULTICAST=\d+\.\d+\.\d+\.\d+:\d+)",
    "rp:path/rp:id": rf"uuid:\d+@{_GUID}",
    "srmp:expiresAt": _DATE,
    "srmp:sentAt": _DATE,
    "srmp:sendTo": r"https?://\S+",
    "srmp:sendReceiptsTo": r"https?://\S+",
    "srmp:streamId": rf"uid:{_GUID}\\\d+",
    "srmp:current": r"[1-9]\d*",
    "srmp:previous": r"[1-9]\d*",
    "srmp:lastOrdinal": r"[1-9]\d*",
    "srmp:receivedAt": _DATE,
    "srmp:decidedAt": _DATE,
    "srmp:decision": r"positive|negative",
    "msmq:Class": r"\d+",
    "msmq:Priority": r"[0-7]",
    "msmq:Correlation": r"[A-Za-z0-9+/]{27}=",
    "msmq:ConnectorType": _GUID,
    "msmq:App": r"\d+",
    "msmq:BodyType": r"\d+",
    "msmq:HashAlgorithm": r"\d+",
    "msmq:ConnectorId": _GUID,
    "msmq:SourceQmGuid": _GUID,
    "msmq:TTrq": _DATE,
}


class Misread(Exception):
    """Something that a sender must not write."""


@dataclass
class Request:
    """One HTTP request, whole."""

    raw: bytes
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    at: float = 0.0  # time.monotonic() when its last byte was there

    def header(self, name: str) -> str:
        found = [value for each, value in self.headers if each.lower() == name.lower()]
        if len(found) != 1:
            raise Misread(f"{len(found)} headers {name}")
        return found[0]


@dataclass
class Sent:
    """One SRMP message as we sent it. `fields`: texts by path below the header, such as `path/to`, without
    prefixes; elements without text are there with an empty one.
    """

    request: Request
    envelope: bytes
    fields: dict[str, str]
    order: list[str]
    namespaces: dict[str, str]
    attachments: dict[str, bytes] = field(default_factory=dict)

    @property
    def body(self) -> bytes | None:
        return self._attachment("body@")

    @property
    def extension(self) -> bytes | None:
        return self._attachment("extension@")

    def _attachment(self, kind: str) -> bytes | None:
        found = [content for name, content in self.attachments.items() if name.startswith(kind)]
        return found[0] if found else None


def split_head(raw: bytes) -> tuple[list[bytes], bytes] | None:
    """Lines of the head, and what is behind it; None while it is not there."""
    head, separator, rest = raw.partition(b"\r\n\r\n")
    return (head.split(b"\r\n"), rest) if separator else None


def read_request(raw: bytes) -> Request:
    """A request as bytes; exactly one, with a Content-Length."""
    split = split_head(raw)
    if split is None:
        raise Misread("no end of the head")
    (line, *fields), body = split
    found = re.fullmatch(rb"([A-Z]+) (\S+) HTTP/1\.1", line)
    if found is None:
        raise Misread(f"request line {line!r}")
    headers = []
    for each in fields:
        name, separator, value = each.partition(b":")
        if not separator or not re.fullmatch(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise Misread(f"header {each!r}")
        headers.append((name.decode("ascii"), value.strip().decode("latin-1")))
    request = Request(raw, found[1].decode(), found[2].decode(), headers, body)
    if request.header("Content-Length") != str(len(body)):
        raise Misread(f"Content-Length {request.header('Content-Length')} of {len(body)} bytes")
    return request


def read(request: Request) -> Sent:
    """The message of a request. Misread: it is not written as 2.1, 2.2 and 3.1.7.2.4 say."""
    if request.method != "POST":
        raise Misread(request.method)
    for name, value in (("SOAPAction", '"MSMQMessage"'), ("Proxy-Accept", "NonInteractiveClient")):
        if request.header(name) != value:
            raise Misread(f"{name}: {request.header(name)}")
    request.header("Host")
    kind = request.header("Content-Type")
    if kind == "text/xml":
        return _sent(request, request.body, {})
    found = re.fullmatch(r'multipart/related; boundary="([^"]{1,70})"; type=text/xml', kind)
    if found is None:
        raise Misread(f"Content-Type: {kind}")
    return _compound(request, found[1].encode())


def _compound(request: Request, boundary: bytes) -> Sent:
    """By the law of the examples: no line end before a delimiter, one behind the last (1.1)."""
    delimiter, rest = b"--" + boundary, request.body
    parts: list[tuple[dict[str, str], bytes]] = []
    while True:
        if not rest.startswith(delimiter):
            raise Misread(f"no delimiter but {rest[:60]!r}")
        rest = rest[len(delimiter) :]
        if rest == b"--\r\n":
            break
        if not rest.startswith(b"\r\n"):
            raise Misread(f"behind a delimiter {rest[:60]!r}")
        split = split_head(rest[2:])
        if split is None:
            raise Misread("a part without headers")
        headers = {}
        for line in split[0]:
            name, _, value = line.decode("ascii").partition(": ")
            headers[name] = value
        length = int(headers["Content-Length"])
        parts.append((headers, split[1][:length]))
        rest = split[1][length:]
    if len(parts) < 2:
        raise Misread("a multipart message of one part")
    headers, envelope = parts[0]
    if list(headers.items()) != [
        ("Content-Type", "text/xml; charset=UTF-8"),
        ("Content-Length", str(len(envelope))),
    ]:
        raise Misread(f"headers of the envelope: {headers}")
    attachments = {}
    for headers, content in parts[1:]:
        if list(headers) != ["Content-Type", "Content-Length", "Content-Id"]:
            raise Misread(f"headers of an attachment: {headers}")
        if headers["Content-Type"] != "application/octet-stream":
            raise Misread(headers["Content-Type"])
        if not re.fullmatch(rf"(body|extension)@{_GUID}", headers["Content-Id"]):
            raise Misread(headers["Content-Id"])
        attachments[headers["Content-Id"]] = content
    if len(attachments) != len(parts) - 1:
        raise Misread("two attachments of one name")
    return _sent(request, envelope, attachments)


def _sent(request: Request, envelope: bytes, attachments: dict[str, bytes]) -> Sent:
    paths, texts, understood, namespaces = _elements(envelope)
    last = -1
    for path in paths:
        place = _PLACE.get(path)
        if place is None:
            raise Misread(f"{path} is never sent")
        if place <= last and _REPEATED not in path:
            raise Misread(f"{path} out of order, or twice")
        last = place
    if understood != [path for path in paths if path in _UNDERSTOOD]:
        raise Misread(f"mustUnderstand of {understood}")
    for path, text in zip(paths, texts, strict=True):
        for end, form in _FORMS.items():
            if path.endswith(f"/{end}") and not re.fullmatch(form, text):
                raise Misread(f"{path}: {text!r}")
    header = "se:Envelope/se:Header/"
    order = [re.sub(r"\w+:", "", path.removeprefix(header)) for path in paths if path.startswith(header)]
    shown = [text for path, text in zip(paths, texts, strict=True) if path.startswith(header)]
    fields = dict(zip(order, shown, strict=True))
    for needed in ("path/action", "path/to", "path/id", "properties/expiresAt"):
        if needed not in fields:
            raise Misread(f"no {needed}")
    if paths[-1] != "se:Envelope/se:Body" or texts[-1]:
        raise Misread("the SOAP body is not empty, or not there")
    if "Msmq" in fields:
        for needed in ("Class", "Priority", "BodyType", "SourceQmGuid", "TTrq"):
            if f"Msmq/{needed}" not in fields:
                raise Misread(f"no Msmq/{needed}")
    return Sent(request, envelope, fields, order, namespaces, attachments)


def _elements(envelope: bytes) -> tuple[list[str], list[str], list[str], dict[str, str]]:
    """Paths in the order of the document, their texts, those with mustUnderstand, prefixes."""
    parser = expat.ParserCreate("UTF-8", "}")
    parser.ordered_attributes = True
    paths: list[str] = []
    texts: list[str] = []
    understood: list[str] = []
    namespaces: dict[str, str] = {}
    stack: list[int] = []

    def start(name: str, attributes: list[str]) -> None:
        space, _, local = name.rpartition("}")
        if space not in _PREFIXES:
            raise Misread(f"an element {local} of {space!r}")
        above = paths[stack[-1]] + "/" if stack else ""
        if stack and texts[stack[-1]]:
            raise Misread(f"text beside {local}")
        stack.append(len(paths))
        paths.append(f"{above}{_PREFIXES[space]}:{local}")
        texts.append("")
        if f"{SE}}}mustUnderstand" in attributes:
            if attributes[attributes.index(f"{SE}}}mustUnderstand") + 1] != "1":
                raise Misread("mustUnderstand of another value")
            understood.append(paths[-1])

    def text(data: str) -> None:
        if any(path.startswith(f"{paths[stack[-1]]}/") for path in paths[stack[-1] :]):
            raise Misread(f"text behind elements in {paths[stack[-1]]}")
        texts[stack[-1]] += data

    def refuse(*_: object) -> None:
        raise Misread("a document type, a processing instruction, or a comment")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.CharacterDataHandler = text
    parser.StartNamespaceDeclHandler = lambda prefix, uri: namespaces.__setitem__(prefix or "", uri)
    parser.StartDoctypeDeclHandler = refuse
    parser.ProcessingInstructionHandler = refuse
    parser.CommentHandler = refuse
    parser.Parse(envelope, True)
    return paths, texts, understood, namespaces


class Sink:
    """A plain HTTP server that keeps whatever is sent to it. `answers`: statuses in the order of the
    requests, then 200 for ever; None ends the connection without an answer.
    """

    def __init__(self, answers: Iterable[int | None] = (), *, tls: ssl.SSLContext | None = None) -> None:
        self._answers = list(answers)
        self._tls = tls
        self._lock = threading.Condition()
        self.requests: list[Request] = []
        self.connections = 0
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is listened to any more; connections end."""
        self._listener.close()
        with self._lock:
            for each in self._open:
                shut_down(each)
            self._open.clear()

    def url(self, queue: str, host: str = "127.0.0.1") -> str:
        """The URL of a queue here, such as `private$/q`."""
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}/msmq/{queue}"

    def wait(self, count: int, timeout: float = 10.0) -> list[Request]:
        """The requests, when there are so many. Fails after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        with self._lock:
            while len(self.requests) < count:
                left = deadline - time.monotonic()
                assert left > 0, f"{len(self.requests)} of {count} requests within {timeout} s"
                self._lock.wait(left)
            return list(self.requests)

    def sent(self, count: int, timeout: float = 10.0) -> list[Sent]:
        """The same, read."""
        return [read(request) for request in self.wait(count, timeout)]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with self._lock:
                self.connections += 1
                self._open.add(connection)
            pending = b""
            while True:
                request, pending = _next_request(connection, pending)
                if request is None:
                    return
                with self._lock:
                    status = self._answers.pop(0) if self._answers else 200
                    self.requests.append(request)
                    self._lock.notify_all()
                if status is None:
                    return
                connection.sendall(f"HTTP/1.1 {status} Status\r\nContent-Length: 0\r\n\r\n".encode())
        except OSError:
            return
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()


def shut_down(connection: socket.socket) -> None:
    """End a connection that another thread may be reading."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _next_request(connection: socket.socket, pending: bytes) -> tuple[Request | None, bytes]:
    while True:
        split = split_head(pending)
        if split is not None:
            lengths = [line[15:] for line in split[0] if line.lower().startswith(b"content-length:")]
            size = len(pending) - len(split[1]) + int(lengths[0] if lengths else 0)
            if len(pending) >= size:
                request = read_request(pending[:size])
                request.at = time.monotonic()
                return request, pending[size:]
        data = connection.recv(65536)
        if not data:
            return None, b""
        pending += data


def post(port: int, raw: bytes, *, timeout: float = 10.0) -> tuple[int, list[bytes]]:
    """Send one request to a server on this machine; the status and the header lines of the answer, whose body
    must be empty.
    """
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.sendall(raw)
        return answer(connection)


def answer(connection: socket.socket) -> tuple[int, list[bytes]]:
    """Read one answer without a body."""
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(65536)
        assert data, f"the connection ended behind {received!r}"
        received += data
    (line, *headers), rest = split_head(received) or ([b""], b"")
    assert rest == b"", rest
    assert b"content-length: 0" in [header.lower() for header in headers], headers
    return int(line.split()[1]), headers

"""A partner that speaks SRMP: the examples of MC-MQSRM brought to today, and requests from a template."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from msmq_fast.client import sync
from msmq_fast.protocol.errors import IOTimeout
from tests.support.processes.servers import Server

__all__ = ["EXAMPLES", "Program", "date", "posted", "request", "restamped"]

EXAMPLES: dict[str, bytes] = {
    each["name"]: base64.b64decode(each["wire_b64"])
    for each in json.loads(
        Path(__file__).parents[2].joinpath("srmp", "vectors").joinpath("examples.json").read_text()
    )
}
_NEVER = b"20380119T031407"
_BOUNDARY = "MSMQ - SOAP boundary, 53287"


def date(seconds: float) -> str:
    """YYYYMMDDThhmmss, UTC."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))


def restamped(name: str, *, replace: dict[str, str] | None = None, now: float | None = None) -> bytes:
    """An example sent today: sentAt is now, other dates a day later, the lengths as they must be. `replace`:
    texts of its envelope that are others.
    """
    now = time.time() if now is None else now
    head, _, body = EXAMPLES[name].partition(b"\r\n\r\n")
    start, end = body.index(b"<se:Envelope"), body.index(b"</se:Envelope>") + len(b"</se:Envelope>")
    envelope = body[start:end]
    for element, moment in (("expiresAt", now + 86400), ("sentAt", now), ("TTrq", now + 86400)):
        stamp = f"<{element}>{date(moment)}</".encode()
        envelope = re.sub(
            rb"<%b>(\d{8}T\d{6})</" % element.encode(),
            lambda found, stamp=stamp: found[0] if found[1] == _NEVER else stamp,  # type: ignore[misc]
            envelope,
        )
    for old, new in (replace or {}).items():
        assert old.encode() in envelope, old
        envelope = envelope.replace(old.encode(), new.encode())
    before = body[:start]
    if before:
        before = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(envelope), before)
    body = before + envelope + body[end:]
    head = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(body), head)
    return head + b"\r\n\r\n" + body


def posted(target: str, content_type: str, content: bytes, host: str = "localhost") -> bytes:
    """A request around a body."""
    return (
        f"POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {content_type}\r\n"
        f'Content-Length: {len(content)}\r\nSOAPAction: "MSMQMessage"\r\n'
        "Proxy-Accept: NonInteractiveClient\r\n\r\n"
    ).encode() + content


def request(
    to: str,
    body: bytes | None = b"hello",
    *,
    headers: str = "",
    tail: str = "",
    label: str = "",
    number: int = 1,
    sender: UUID | None = None,
    extension: bytes | None = None,
    flags: str = "",
    now: float | None = None,
) -> bytes:
    """A request for a message to the URL `to`. `headers` stand before Msmq, `flags` in it behind Priority,
    `tail` behind it; without `sender` it is a new one.
    """
    now = time.time() if now is None else now
    sender = sender or uuid4()
    envelope = (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        f'<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1"><action>MSMQ:{label}</action>'
        f"<to>{to}</to><id>uuid:{number}@{sender}</id></path>"
        '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
        f"<sentAt>{date(now)}</sentAt></properties>{headers}"
        f'<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority>{flags}'
        f"<BodyType>0</BodyType><SourceQmGuid>{sender}</SourceQmGuid>"
        f"<TTrq>{date(now + 345_600)}</TTrq></Msmq>{tail}"
        "</se:Header><se:Body></se:Body></se:Envelope>"
    ).encode()
    target = "/" + to.split("/", 3)[3]
    attachments = [(f"body@{sender}", body), (f"extension@{sender}", extension)]
    if all(content is None for _, content in attachments):
        return posted(target, "text/xml", envelope)
    pieces = [_part("text/xml; charset=UTF-8", envelope)]
    pieces += [
        _part("application/octet-stream", content, f"Content-Id: {name}\r\n")
        for name, content in attachments
        if content is not None
    ]
    whole = b"".join(pieces) + f"--{_BOUNDARY}--\r\n".encode()
    return posted(target, f'multipart/related; boundary="{_BOUNDARY}"; type=text/xml', whole)


def _part(kind: str, content: bytes, more: str = "") -> bytes:
    head = f"--{_BOUNDARY}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{more}\r\n"
    return head.encode() + content


class Program:
    """A program of the server's computer: one connection, queues that are opened once."""

    def __init__(self, server: Server) -> None:
        self.connection = sync.connect(server.endpoint)
        self._queues: dict[str, sync.Queue] = {}

    def close(self) -> None:
        self.connection.close()

    def messages(self, name: str, timeout: float = 0) -> list[dict[str, Any]]:
        """Receive what is there, the first within `timeout` seconds."""
        queue = self._queues.get(name) or self._queues.setdefault(
            name, self.connection.open(name, sync.Access.RECEIVE)
        )
        found: list[dict[str, Any]] = []
        try:
            while True:
                found.append(queue.receive(0 if found else timeout).to_json())
        except IOTimeout:
            return found

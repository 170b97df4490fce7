"""The client of `bench.srmp`: `python -m bench.srmpload HOST:PORT …`, a process of its own.

Each connection has one request under way and is kept alive; every request is the bytes of the one before with
another message identifier, so that nothing but the sockets costs time here. The times go to stdout as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import socket
import sys
import time
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from bench.machine import quantile

__all__ = ["main", "request"]

SENDER: Final = UUID("5a1b1e5c-2c1d-4b7e-9a53-1f3e0f1f7a11")
_DIGITS: Final = 10
_PLACE: Final = b"#" * _DIGITS
_OK: Final = b"HTTP/1.1 200 "
_BOUNDARY: Final = "MSMQ - SOAP boundary, 53287"


def request(host: str, queue: str, size: int, now_s: float, *, durable: bool = True) -> bytes:
    """A request as a Windows sender writes it, with `##########` in the place of the identifier."""

    def date(seconds: float) -> str:
        return time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))

    url = f"http://{host}/msmq/private$/{queue}"
    services = '<services se:mustUnderstand="1"><durable/></services>' if durable else ""
    envelope = (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1"><action>MSMQ:bench</action>'
        f"<to>{url}</to><id>uuid:{_PLACE.decode()}@{SENDER}</id></path>"
        '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
        f"<sentAt>{date(now_s)}</sentAt></properties>{services}"
        '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority>'
        "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation><App>0</App><BodyType>0</BodyType>"
        f"<HashAlgorithm>32772</HashAlgorithm><SourceQmGuid>{SENDER}</SourceQmGuid>"
        f"<TTrq>{date(now_s + 345_600)}</TTrq></Msmq></se:Header><se:Body></se:Body></se:Envelope>"
    ).encode()
    body = os.urandom(size)
    content = (
        f"--{_BOUNDARY}\r\nContent-Type: text/xml; charset=UTF-8\r\nContent-Length: {len(envelope)}\r\n\r\n"
    ).encode() + envelope
    content += (
        f"--{_BOUNDARY}\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n"
        f"Content-Id: body@{SENDER}\r\n\r\n"
    ).encode()
    content += body + f"--{_BOUNDARY}--\r\n".encode()
    head = (
        f"POST /msmq/private$/{queue} HTTP/1.1\r\nHost: {host}\r\n"
        f'Content-Type: multipart/related; boundary="{_BOUNDARY}"; type=text/xml\r\n'
        f'Content-Length: {len(content)}\r\nSOAPAction: "MSMQMessage"\r\n'
        "Proxy-Accept: NonInteractiveClient\r\n\r\n"
    )
    return head.encode() + content


class Connection:
    """One request after the other."""

    def __init__(self, address: tuple[str, int], template: bytes) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._bytes = bytearray(template)
        self._at = template.index(_PLACE)
        self._begun = 0.0

    def send(self, number: int) -> None:
        """The next request."""
        self._bytes[self._at : self._at + _DIGITS] = b"%0*d" % (_DIGITS, number)
        self._begun = time.perf_counter()
        self.socket.sendall(self._bytes)

    def answered(self) -> float:
        """Take the answer; seconds since the request."""
        answer = self.socket.recv(4096)
        if not answer.startswith(_OK) or not answer.endswith(b"\r\n\r\n"):
            raise SystemExit(f"srmpload: an answer of another kind: {answer[:200]!r}")
        return time.perf_counter() - self._begun


def _run(connections: dict[int, Connection], first: int, count: int) -> list[float]:
    """Send `count` messages, numbered from `first`; the time of each answer."""
    times: list[float] = []
    number, end = first, first + count
    with contextlib.closing(select.epoll()) as poll:
        for descriptor, connection in connections.items():
            poll.register(descriptor, select.EPOLLIN)
            connection.send(number)
            number += 1
        while len(times) < count:
            for descriptor, _ in poll.poll():
                connection = connections[descriptor]
                times.append(connection.answered())
                if number < end:
                    connection.send(number)
                    number += 1
    return times


def main(arguments: Sequence[str]) -> int:
    """Prints one line of JSON when the load begins, one when it has ended."""
    parser = argparse.ArgumentParser(prog="python -m bench.srmpload", description=__doc__)
    parser.add_argument("address", metavar="HOST:PORT")
    parser.add_argument("--queue", default="bench")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--count", type=int, default=30_000)
    parser.add_argument("--warmup", type=int, default=3_000)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--express", action="store_true")
    options = parser.parse_args(arguments)
    host, _, port = options.address.rpartition(":")
    template = request(options.address, options.queue, options.size, time.time(), durable=not options.express)
    made = [Connection((host, int(port)), template) for _ in range(options.connections)]
    connections = {each.socket.fileno(): each for each in made}
    first = int(time.time() * 1000) % 2_000_000_000  # no message of an earlier run on the same server
    if options.warmup:
        _run(connections, first, options.warmup)
        first += options.warmup
    print(json.dumps({"event": "start"}), flush=True)
    begin, cpu = time.perf_counter(), time.process_time()
    times = _run(connections, first, options.count)
    elapsed = time.perf_counter() - begin
    used = time.process_time() - cpu
    times.sort()
    print(
        json.dumps(
            {
                "event": "stop",
                "in_per_s": options.count / elapsed,
                "p50_us": quantile(times, 0.5) * 1e6,
                "p99_us": quantile(times, 0.99) * 1e6,
                "generator_cores": used / elapsed,
                "request_bytes": len(template),
            }
        ),
        flush=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

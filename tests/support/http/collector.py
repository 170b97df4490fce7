"""A collector of spans: takes OTLP over HTTP, as JSON from servers and as protobuf from SDKs."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

Span = dict[str, Any]


class Collector:
    """What a collector got. `status` is that of its answers; `url` its endpoint."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def spans(self) -> list[Span]:
        """All spans, each with the attributes of its resource as `resource`, and its own as a dict."""
        return [
            {
                **span,
                "attributes": _plain(span.get("attributes", ())),
                "resource": _plain(resource["resource"]["attributes"]),
            }
            for request in self.requests
            for resource in request["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    def named(self, name: str) -> list[Span]:
        """The spans with a name."""
        return [span for span in self.spans if span["name"] == name]


def _plain(attributes: Any) -> dict[str, Any]:
    return {entry["key"]: next(iter(entry["value"].values())) for entry in attributes}


@contextmanager
def collector() -> Iterator[Collector]:
    """Run a collector in a thread."""
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if found.status == 200:
                found.headers.append(dict(self.headers))
                found.requests.append(_decoded(body, self.headers["Content-Type"]))
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _decoded(body: bytes, content_type: str) -> dict[str, Any]:
    if content_type.startswith("application/json"):
        request = json.loads(body)
        _check(request)
        return dict(request)
    return dict(MessageToDict(ExportTraceServiceRequest.FromString(body)))


def _check(request: dict[str, Any]) -> None:
    """Raise AssertionError unless each span has what the JSON encoding of OTLP demands."""
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                assert len(bytes.fromhex(span["traceId"])) == 16
                assert len(bytes.fromhex(span["spanId"])) == 8
                assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])

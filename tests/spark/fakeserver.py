"""The bulk API over `fakequeues`, in a thread of the test, with faults on demand."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import DELIVERY_SEQUENCE, Column, chosen, chosen_events
from tests.spark.fakequeues import FakeManager, Refusal, refuse

BATCH_ROWS = 4096
_OF_ONE_QUEUE = ("/plan", "/lease", "/ack", "/release")


def to_batches(rows: list[dict[str, Any]], columns: list[Column]) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """What the model does not know is null."""
    schema = arrow_schema(columns)
    return schema, [
        pa.record_batch(
            [
                pa.array([row.get(c.name) for row in rows[i : i + BATCH_ROWS]], kind)
                for c, kind in zip(columns, schema.types, strict=True)
            ],
            schema=schema,
        )
        for i in range(0, len(rows), BATCH_ROWS)
    ]


class FakeServer:
    """`manager` may be changed directly while no request is under way, else inside `with server.lock`."""

    def __init__(
        self, manager: FakeManager | None = None, *, port: int = 0, token: str | None = None
    ) -> None:
        self.manager = manager or FakeManager()
        self.lock = threading.RLock()
        self.token = token
        self.requests: list[str] = []
        self._faults: list[tuple[re.Pattern[str], str]] = []
        handler = type("Handler", (_Handler,), {"fake": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._http.daemon_threads = True
        self.port: int = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"msmq+bulk://127.0.0.1:{self.port}"

    def fault(self, path: str, kind: str, times: int = 1) -> None:
        """The next `times` requests whose method and target match `path`: 'refuse' answers 503, 'drop' closes
        before anything is done, 'lose' closes when it is done, 'cut' ends a stream in its middle."""
        with self.lock:
            self._faults += [(re.compile(path), kind)] * times

    @property
    def faults(self) -> list[str]:
        """The paths of those that nothing has met yet."""
        return [pattern.pattern for pattern, _ in self._faults]

    def take_fault(self, target: str) -> str:
        with self.lock:
            self.requests.append(target)
            for index, (pattern, kind) in enumerate(self._faults):
                if pattern.search(target):
                    del self._faults[index]
                    return kind
        return ""

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    fake: FakeServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def do_PUT(self) -> None:
        self._handle("PUT")

    def do_DELETE(self) -> None:
        self._handle("DELETE")

    def _handle(self, method: str) -> None:
        body = self._read_body()
        fault = self.fake.take_fault(f"{method} {self.path}")
        if fault == "drop":
            self.close_connection = True
            return
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        try:
            if fault == "refuse":
                refuse("NOT_READY", "the server is not ready")
            if self.fake.token and self.headers.get("Authorization") != f"Bearer {self.fake.token}":
                self._json(401, {"error": "UNAUTHORIZED", "message": "a token is needed"})
                return
            with self.fake.lock:
                self._check_incarnation()
                answer = self._route(method, unquote(parts.path).removeprefix("/v1/bulk"), query, body)
        except Refusal as error:
            self._json(error.status, error.body)
            return
        if fault == "lose":
            self.close_connection = True
        elif callable(answer):
            self._stream(answer(), cut=fault == "cut")
        else:
            self._json(200, answer)

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = bytearray()
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return bytes(body)

    def _check_incarnation(self) -> None:
        wanted = self.headers.get("X-MSMQ-Incarnation")
        have = self.fake.manager.incarnation
        if wanted is not None and int(wanted) != have:
            refuse("INCARNATION", f"the store is at incarnation {have}, the request is for {wanted}")

    def _route(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> Any:
        manager = self.fake.manager
        one = {name: values[-1] for name, values in query.items()}
        if (method, path) == ("GET", "/bounds"):
            numbers = {name: int(one[name]) for name in ("since", "seen", "removals") if name in one}
            missing = one.get("missing", "error")
            content = one.get("content", "messages")
            return manager.bounds(
                query.get("queue", []), one.get("pattern"), content, missing=missing, **numbers
            )
        if (method, path) == ("GET", "/rows"):
            return self._rows(one)
        if (method, path) == ("POST", "/stage"):
            table = pa.ipc.open_stream(body).read_all()
            return manager.stage(one["writer"], one.get("queue"), table.to_pylist())
        if path.startswith("/subscriptions"):
            return self._subscriptions(method, path.split("/")[2:], body)
        values = json.loads(body or b"{}")
        if (method, path) == ("POST", "/bounds"):
            return manager.bounds(
                values.pop("queue", []), values.pop("pattern", None), values.pop("content"), **values
            )
        if (method, path) == ("POST", "/rows"):
            return self._rows_of_many(values)
        if "queues" in values:
            common = {name: value for name, value in values.items() if name != "queues"}
            return {"answers": [self._item(path, {**common, **item}) for item in values["queues"]]}
        if method == "POST" and path in _OF_ONE_QUEUE:
            return self._of_one_queue(path, values)
        if (method, path) == ("POST", "/publish"):
            names = ("writer", "epoch", "batch", "stages", "origin", "remember")
            return manager.publish(*(values[name] for name in names))
        if (method, path) == ("POST", "/discard"):
            return manager.discard(values["stages"])
        refuse("BAD_REQUEST", f"no such call: {method} {path}")

    def _item(self, path: str, values: dict[str, Any]) -> Any:
        """The answer for one of many queues; what is wrong with the request ends all of it."""
        try:
            return self._of_one_queue(path, values)
        except Refusal as error:
            if error.code == "BAD_REQUEST":
                raise
            return error.body

    def _of_one_queue(self, path: str, values: dict[str, Any]) -> Any:
        manager = self.fake.manager
        if path == "/plan":
            return manager.plan(
                values.get("queue", ""),
                values.get("content", "messages"),
                values["from"],
                values["to"],
                values.get("max_rows") or 0,
                values.get("max_bytes") or 0,
                values.get("parts") or 1,
            )
        if path == "/lease":
            return manager.lease(
                values["subscription"],
                values["queue"],
                values.get("max_rows") or 0,
                values.get("max_bytes") or 0,
                values.get("lease_ms", 900_000) / 1000,
            )
        call = manager.ack if path == "/ack" else manager.release
        return call(values["subscription"], values["queue"], values["upto"])

    def _rows_of_many(self, values: dict[str, Any]) -> Callable[[], Iterator[bytes]]:
        common = {name: str(value) for name, value in values.items() if name != "queues"}
        parts = [
            self._range_rows({**common, **{n: str(v) for n, v in item.items()}}) for item in values["queues"]
        ]
        return lambda: _ipc([rows for rows, _ in parts], parts[0][1], apart=True)

    def _rows(self, one: dict[str, str]) -> Callable[[], Iterator[bytes]]:
        rows, columns = self._range_rows(one)
        return lambda: _ipc([rows], columns)

    def _range_rows(self, one: dict[str, str]) -> tuple[list[dict[str, Any]], list[Column]]:
        manager = self.fake.manager
        start, stop = int(one["from"]), int(one["to"])
        if one.get("content") == "events":
            columns = list(chosen_events(one.get("columns", "all")))
            rows = manager.feed(start, stop)
        else:
            columns = list(
                chosen(
                    one.get("columns", "core"),
                    body=one.get("body", "1") == "1",
                    raw=one.get("raw", "0") == "1",
                    security=one.get("security", "0") == "1",
                )
            )
            queue = manager.look_up(one["queue"], one.get("content", "messages"))
            if "subscription" in one:
                pairs = manager.delivery(one["subscription"], one["queue"], start, stop)
                rows = manager.message_rows(queue, [held for _, held in pairs])
                for (number, _), row in zip(pairs, rows, strict=True):
                    row["delivery_seq"] = number
                columns.insert(0, DELIVERY_SEQUENCE)
            else:
                rows = manager.message_rows(queue, queue.rows(start, stop))
        return rows, columns

    def _subscriptions(self, method: str, words: list[str], body: bytes) -> Any:
        known = self.fake.manager.subscriptions
        values = json.loads(body or b"{}")
        if not words:
            return {"subscriptions": [{"name": name, **entry} for name, entry in known.items()]}
        name = words[0]
        if method == "PUT":
            found = known.setdefault(name, {"position": self.fake.manager.events_first})
            found |= values
            return {"name": name, **found}
        if name not in known:
            refuse("SUBSCRIPTION_NOT_FOUND", f"no subscription {name!r}")
        if known[name]["position"] < self.fake.manager.events_first:
            refuse("SLOT_DROPPED", f"the subscription {name!r} lost its place")
        if words[1:] == ["commit"]:
            known[name]["position"] = max(known[name]["position"], values["position"])
        elif method == "DELETE":
            return {"name": name, **known.pop(name)}
        return {"name": name, **known[name]}

    def _json(self, status: int, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _stream(self, parts: Iterator[bytes], *, cut: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.apache.arrow.stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        everything = [part for part in parts if part]
        if cut:
            everything = [*everything[:-2], everything[-2][: len(everything[-2]) // 2]]
        for part in everything:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        if cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")


def _ipc(
    ranges: list[list[dict[str, Any]]], columns: list[Column], *, apart: bool = False
) -> Iterator[bytes]:
    """The parts of an Arrow stream: schema, batches, end. `apart`: an empty batch behind each range."""
    schema, _ = to_batches([], columns)
    sink = io.BytesIO()

    def taken() -> bytes:
        value = sink.getvalue()
        sink.seek(0)
        sink.truncate()
        return value

    with pa.ipc.new_stream(sink, schema) as writer:
        yield taken()
        for rows in ranges:
            batches = to_batches(rows, columns)[1]
            for batch in [*batches, pa.RecordBatch.from_pylist([], schema=schema)][: None if apart else -1]:
                writer.write_batch(batch)
                yield taken()
    yield taken()


@contextmanager
def serving(**options: Any) -> Iterator[FakeServer]:
    server = FakeServer(**options)
    try:
        yield server
    finally:
        server.close()

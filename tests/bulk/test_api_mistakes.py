"""What the bulk API answers to requests that are wrong, and to those that mean harm."""

from __future__ import annotations

import random
import socket
import struct
from urllib.parse import quote

import pyarrow as pa
import pytest

from msmq_fast.bulk.errors import refusal_of
from msmq_fast.bulk.patterns import NamePattern
from msmq_fast.client.bulk.client import BulkClient, WrongIncarnation
from msmq_fast.packet.malformed import Malformed
from tests.support.http import bulk as api
from tests.support.processes.servers import Server

HUGE = 1 << 63
FAR = 10**400

WRONG_READS = [
    ("/rows?queue=orders&from=0", "to is missing"),
    ("/rows?from=0&to=1", "queue is missing"),
    ("/rows?queue=orders&from=5&to=1", "must not be less"),
    ("/rows?queue=orders&from=-1&to=1", "from must be a whole number from 0"),
    ("/rows?queue=orders&from=1e3&to=2", "from must be a whole number"),
    (f"/rows?queue=orders&from=0&to={HUGE}", "to must be a whole number"),
    (f"/rows?queue=orders&from=0&to={FAR}", "to must be a whole number"),
    ("/rows?queue=orders&from=%D9%A1&to=9", "from must be a whole number"),  # an Arabic digit
    ("/rows?queue=orders&from=0&to=1&to=2", "given twice"),
    ("/rows?queue=orders&from=0&to=1&colums=all", "unknown parameter 'colums'; known here: body, columns"),
    ("/rows?queue=orders&from=0&to=1&columns=body,nothing", "no column 'nothing'"),
    ("/rows?queue=orders&from=0&to=1&columns=body,body", "named twice"),
    ("/rows?queue=orders&from=0&to=1&body=maybe", "body must be 1 or 0"),
    ("/rows?queue=orders&from=0&to=1&content=letters", "content must be one of messages"),
    ("/rows?queue=or%00ders&from=0&to=1", "cannot be printed"),
    ("/rows?queue=&from=0&to=1", "queue must be a text"),
    ("/rows?queue=" + "q" * 3000 + "&from=0&to=1", "queue must be a text of 1 to 2048"),
    ("/rows?content=events&queue=orders&from=0&to=1", "unknown parameter 'queue'"),
    ("/rows?subscription=s&queue=orders&content=journal&from=1&to=2", "content must be messages"),
    ("/rows?subscription=%20&queue=orders&from=1&to=2", "is not a valid subscription name"),
    ("/bounds?pattern=(", "not a pattern for names"),
    ("/bounds?pattern=.*&queue=orders", "either queue or pattern"),
    ("/bounds?content=events&queue=orders", "neither queue nor pattern"),
    ("/bounds?content=deadletter&pattern=.*", "does not match dead-letter queues"),
    ("/bounds?queue=DIRECT=OS:", "DIRECT=OS:"),
]


@pytest.mark.parametrize(("path", "words"), WRONG_READS, ids=[words for _, words in WRONG_READS])
def test_a_wrong_read_gets_one_line_that_says_what_is_wrong(
    bulk_server: Server, path: str, words: str
) -> None:
    api.refused(api.ask(bulk_server, "GET", path), 400, "BAD_REQUEST", words)


PLAN = {"queue": "orders", "from": 0, "to": 10}
WRONG_WRITES = [
    ("/plan", {**PLAN, "parts": 0}, "parts must be a whole number from 1"),
    ("/plan", {**PLAN, "parts": 10**9}, "parts must be a whole number from 1 to 10000"),
    ("/plan", {**PLAN, "parts": True}, "parts must be"),
    ("/plan", {**PLAN, "max_rows": -5}, "max_rows must be"),
    ("/plan", {**PLAN, "max_bytes": 1.5}, "max_bytes must be"),
    ("/plan", {**PLAN, "to": "10"}, "to must be"),
    ("/plan", {**PLAN, "queue": ["orders"]}, "queue must be a text"),
    ("/plan", {"from": 0, "to": 1}, "queue is missing"),
    ("/plan", [1, 2], "must be a JSON object"),
    ("/lease", {"subscription": "s", "queue": "orders", "max_rows": HUGE}, "max_rows must be"),
    ("/lease", {"subscription": "s", "queue": "orders", "lease_ms": 1}, "lease_ms must be"),
    ("/lease", {"subscription": "../x", "queue": "orders"}, "is not a valid subscription name"),
    ("/ack", {"subscription": "s", "queue": "orders", "upto": -1}, "upto must be"),
    ("/release", {"subscription": "s", "queue": "orders"}, "upto is missing"),
    ("/publish", {"writer": "w", "epoch": 1, "batch": 1, "stages": "x"}, "stages must be a list"),
    ("/publish", {"writer": "w", "epoch": 1, "batch": 1, "stages": ["x"]}, "hexadecimal"),
    ("/publish", {"writer": "w", "epoch": 1, "batch": 1, "stages": [7]}, "stages must hold texts"),
    ("/publish", {"writer": "", "epoch": 1, "batch": 1, "stages": []}, "writer must be"),
    ("/publish", {"writer": "w", "epoch": HUGE, "batch": 1, "stages": []}, "epoch must be"),
    ("/discard", {"stages": ["00" * 16] * 10_001}, "at most 10000"),
    ("/subscriptions/x/commit", {"position": "5"}, "position must be"),
    ("/snapshot", {"directory": "relative"}, "is not a full path"),
    ("/snapshot", {"directory": "/x", "bytes_per_second": 1}, "bytes_per_second must be"),
    ("/snapshot", {}, "directory is missing"),
]


@pytest.mark.parametrize(
    ("path", "content", "words"), WRONG_WRITES, ids=[words for _, _, words in WRONG_WRITES]
)
def test_a_wrong_call_gets_one_line_that_says_what_is_wrong(
    bulk_server: Server, path: str, content: object, words: str
) -> None:
    api.refused(api.ask(bulk_server, "POST", path, content), 400, "BAD_REQUEST", words)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"null", b"[" * 100_000, b'{"from": 1' + b"0" * 5000 + b"}"]
)
def test_what_is_not_json(bulk_server: Server, body: bytes) -> None:
    answer = api.ask(bulk_server, "POST", "/plan", body=body, headers={"Content-Type": "application/json"})
    api.refused(answer, 400, "BAD_REQUEST")


def test_a_request_has_an_end(bulk_server: Server) -> None:
    body = b'{"queue": "' + b"x" * (5 << 20) + b'"}'
    answer = api.ask(bulk_server, "POST", "/plan", body=body, headers={"Content-Type": "application/json"})
    api.refused(answer, 413, "TOO_LARGE", "4194304")
    answer = api.ask(bulk_server, "POST", "/plan", body=b"{}")
    api.refused(answer, 400, "BAD_REQUEST", "Content-Type: application/json")


def test_calls_that_do_not_exist(bulk_server: Server) -> None:
    api.refused(api.ask(bulk_server, "GET", "/nothing"), 404, "NOT_FOUND", "/v1/bulk/nothing")
    answer = api.ask(bulk_server, "DELETE", "/rows")
    api.refused(answer, 405, "METHOD_NOT_ALLOWED", "GET, POST")
    assert answer.headers["Allow"] == "GET, POST"
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/bounds?queue={}", "/rows?queue={}&from=0&to=1"])
@pytest.mark.parametrize("name", ["absent", r"private$\order_queue$", r"DIRECT=OS:elsewhere\private$\x"])
def test_queues_that_are_not_there_for_readers(bulk_server: Server, path: str, name: str) -> None:
    answer = api.ask(bulk_server, "GET", path.format(quote(name)))
    api.refused(answer, 404, "QUEUE_NOT_FOUND")


def test_another_incarnation_is_refused_with_both_numbers(bulk_server: Server, bulk: BulkClient) -> None:
    here = bulk.bounds().incarnation
    assert bulk.with_incarnation(here).bounds().incarnation == here
    other = bulk.with_incarnation(here + 41)
    with pytest.raises(WrongIncarnation) as wrong:
        other.rows("orders", 0, 1)
    assert wrong.value.incarnation == here
    assert wrong.value.details["given"] == here + 41
    answer = api.ask(bulk_server, "GET", "/bounds", headers={"X-MSMQ-Incarnation": "one"})
    api.refused(answer, 400, "BAD_REQUEST", "X-MSMQ-Incarnation")


# ---- Arrow streams that are none


STAGE = "/stage?writer=w&batch=1&part=0&attempt=0&queue=empty"
GOOD = api.stream_of([(b"x" * 100, "label")] * 50)


def stage(server: Server, body: bytes, path: str = STAGE) -> api.Answer:
    return api.ask(server, "POST", path, body=body, headers={"Content-Type": api.ARROW})


def test_a_stage_of_something_else(bulk_server: Server) -> None:
    api.refused(api.ask(bulk_server, "POST", STAGE, body=GOOD), 400, "BAD_REQUEST", api.ARROW)
    for body in (
        b"",
        b"hello",
        b"\xff\xff\xff\xff\0\0\0\0",
        GOOD[: len(GOOD) // 2],
        GOOD[:-8],
        GOOD + b"more",
    ):
        api.refused(stage(bulk_server, body), 400, "BAD_REQUEST")
    for path in (
        "/stage",
        STAGE + "&queue=orders",
        STAGE + "&priority=8",
        STAGE + "&nonsense=1",
        STAGE.replace("batch=1", "batch=-1"),
    ):
        api.refused(stage(bulk_server, GOOD, path), 400, "BAD_REQUEST")
    wrong = api.stream_of([], schema=pa.schema([("body", pa.binary()), ("nothing", pa.string())]))
    api.refused(stage(bulk_server, wrong), 400, "BAD_REQUEST", "unknown column 'nothing'")


def test_streams_with_wrong_bytes_stage_nothing_that_was_not_sent(bulk_server: Server) -> None:
    """Whatever is broken: an answer, a server that goes on, and rows only where the stream is still one."""
    draw = random.Random(17)
    seen = set()
    for _ in range(60):
        body = bytearray(GOOD)
        for _ in range(draw.randrange(1, 6)):
            body[draw.randrange(len(body))] = draw.randrange(256)
        answer = stage(bulk_server, bytes(body))
        seen.add(answer.status)
        if answer.status == 200:
            assert answer.content["rows"] <= 50
            api.ask(bulk_server, "POST", "/discard", {"stages": [answer.content["stage"]]})
        else:
            assert answer.status in (400, 413), answer
    assert 400 in seen
    assert stage(bulk_server, GOOD).content["rows"] == 50


# ---- HTTP that is none


JSON = "Content-Type: application/json\r\n"
PLANNED = b'{"queue": "empty", "from": 0, "to": 10}'


def raw(server: Server, request: bytes, *, reset: bool = False, wait: bool = False) -> bytes:
    """Send bytes, and close at once, or when something comes."""
    with socket.create_connection(("127.0.0.1", server.port("admin")), timeout=10) as connection:
        connection.sendall(request)
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return connection.recv(65536) if wait else b""


def head(line: str, headers: str = "") -> bytes:
    method, path = line.split(" ", 1)
    return f"{method} /v1/bulk{path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode()


def test_clients_that_leave_in_the_middle_are_no_fault_of_the_server(bulk_server: Server) -> None:
    arrow = f"Content-Type: {api.ARROW}\r\n"
    for reset in (False, True):
        raw(bulk_server, head("POST /plan", JSON + "Content-Length: 100\r\n") + b"{", reset=reset)
        raw(bulk_server, head("POST /plan", JSON + "Transfer-Encoding: chunked\r\n") + b"5\r\n{", reset=reset)
        raw(bulk_server, head("POST " + STAGE, arrow + "Content-Length: 9999\r\n") + GOOD[:-100], reset=reset)
        raw(bulk_server, head("GET /rows?queue=orders&from=0&to=100000"), reset=reset)
        raw(bulk_server, head("GET /rows?content=events&from=1&to=100000"), reset=reset)
    assert stage(bulk_server, GOOD).status == 200
    assert "Traceback" not in bulk_server.log.read_text()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (head("POST /plan", JSON + "Transfer-Encoding: chunked\r\n") + b"zz\r\n", 400),
        (head("POST /plan", JSON + "Content-Encoding: gzip\r\nContent-Length: 4\r\n") + b"abcd", 400),
        (head("POST /plan", JSON + "Content-Length: -4\r\n") + b"abcd", 400),
        (head("GET /%2e%2e/%00"), 404),
        (head("GET /bounds?queue=%ff%fe"), 400),
        (head("PUT /subscriptions/a%2Fb", JSON + "Content-Length: 2\r\n") + b"{}", 400),
        (head("GET /bounds", "Authorization: Bearer \xe4\r\n"), 401),
        (b"GET /v1/bulk/bounds HTTP/1.1\r\nHost: [::1\r\n\r\n", 403),
        (b"GET /v1/bulk/bounds HTTP/1.0\r\n\r\n", 200),
    ],
)
def test_requests_at_the_edge_of_http(bulk_server: Server, request_: bytes, status: int) -> None:
    assert raw(bulk_server, request_, wait=True).split()[1] == b"%d" % status
    assert "Traceback" not in bulk_server.log.read_text()


def test_requests_with_wrong_bytes_do_no_harm(bulk_server: Server) -> None:
    draw = random.Random(3)
    good = head("POST /plan", f"{JSON}Content-Length: {len(PLANNED)}\r\n") + PLANNED
    for _ in range(150):
        request = bytearray(good)
        for _ in range(draw.randrange(1, 5)):
            request[draw.randrange(len(request))] = draw.randrange(256)
        raw(bulk_server, bytes(request))
    assert raw(bulk_server, good, wait=True).startswith(b"HTTP/1.1 200")
    assert "Traceback" not in bulk_server.log.read_text()


# ---- patterns that mean harm


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a?){90}a{90}", "(((a{6}){6}){3}){1,2}"])
def test_a_pattern_takes_no_longer_than_its_size_allows(pattern: str) -> None:
    """Python's own matcher would take years for the first three."""
    assert not NamePattern(pattern).matches("a" * 100 + "c")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("((((((){9999}){9999}){9999}){9999}){9999}){9999}", "too large"),
        ("a{9999}", "too large"),
        ("(" * 100 + ")" * 100, "nested too deeply"),
        ("x" * 2000, "the limit is 1024"),
        (r"host\private", "bad escape"),
        (r"private$\\orders", "can never match"),
        ("(?=a)", "unsupported kind"),
        (r"(a)\1", "cannot be used"),
        ("a**", "nothing to repeat"),
        ("a)", "unmatched )"),
        ("(a", "unmatched ("),
        ("[a", "unterminated"),
        ("a{3,2}", "below its minimum"),
    ],
)
def test_patterns_that_cannot_be_used(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match="pattern") as wrong:
        NamePattern(pattern)
    assert words in str(wrong.value)


def test_only_what_is_meant_for_the_client_reaches_it() -> None:
    """Any other ValueError is a fault of the server: it is logged, and answered without its text."""
    told = refusal_of(Malformed("the column 'x' comes twice"))
    assert told is not None
    assert (told.code, str(told)) == ("BAD_REQUEST", "the column 'x' comes twice")
    assert refusal_of(ValueError("invalid literal for int() with base 10")) is None

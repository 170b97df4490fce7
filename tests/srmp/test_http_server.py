"""The engine of the HTTP server without sockets: what is read, what is refused, and that both ways to read a
head say the same.
"""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.srmp.http.request import HttpRequest
from msmq_fast.srmp.http.server import BadRequest, Limits, Refused, ServerConnection, _plain

HEAD = b"POST /msmq/private$/q HTTP/1.1\r\nHost: a\r\n"


def feed(raw: bytes, limits: Limits | None = None, *, step: int = 0) -> list[object]:
    """What comes of bytes, at once or by so many; each request is answered with 200, the rest as it is."""
    engine = ServerConnection(limits or Limits(), "10.0.0.1")
    found: list[object] = []
    for at in range(0, len(raw), step or len(raw)):
        engine.receive(raw[at : at + (step or len(raw))])
        try:
            while (item := engine.next()) is not None:
                found.append(item)
                engine.answer(item.status if isinstance(item, Refused) else 200, b"")
        except BadRequest:
            return [*found, BadRequest]
    return found


def length(body: bytes, more: bytes = b"") -> bytes:
    return HEAD + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunked(*chunks: bytes) -> bytes:
    return (
        HEAD
        + b"Transfer-Encoding: chunked\r\n\r\n"
        + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    )


@pytest.mark.parametrize("step", [0, 1, 7])
@pytest.mark.parametrize(
    ("raw", "bodies"),
    [
        (length(b"abc"), [b"abc"]),
        (length(b"abc") * 3, [b"abc"] * 3),
        (length(b"abc") + chunked(b"de", b"f") + length(b"g"), [b"abc", b"def", b"g"]),
        (length(b"abc", b"Content-Type: multipart/related;\r\n type=text/xml\r\n") * 2, [b"abc"] * 2),
        (length(b"abc", b"Content-Length: 3\r\n"), [b"abc"]),
        (b"\r\n" + length(b"abc"), [b"abc"]),
        (length(b"abc").replace(b"\r\n", b"\n"), [b"abc"]),
        (length(b""), [b""]),
        (HEAD + b"\r\n", [b""]),
    ],
)
def test_requests_are_cut_out_of_what_comes(raw: bytes, bodies: list[bytes], step: int) -> None:
    found = feed(raw, step=step)
    assert all(isinstance(each, HttpRequest) for each in found), found
    assert [each.body for each in found if isinstance(each, HttpRequest)] == bodies


def test_a_folded_line_is_one_again() -> None:
    (found,) = feed(length(b"abc", b'Content-Type: multipart/related;\r\n\tboundary="MSMQ - SOAP, 1"\r\n'))
    assert isinstance(found, HttpRequest)
    assert found.header(b"content-type") == b'multipart/related; boundary="MSMQ - SOAP, 1"'
    assert found.raw_head.endswith(b"\r\n\r\n")
    assert found.raw_head.startswith(HEAD)


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",  # TLS where none is
        b"POST /msmq/q\r\n\r\n",
        b"POST /msmq/q HTTP/1.1\r\n\r\n",  # no Host
        length(b"abc", b"Content-Length: 2\r\n"),
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n",
        HEAD + b"Content-Length : 3\r\n\r\nabc",
        HEAD + b"Transfer-Encoding: gzip\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\n",
        HEAD + b"No colon\r\n\r\n",
        HEAD + b"X: a\x00b\r\n\r\n",
        HEAD + b"X: y\r\n" * 300 + b"\r\n",
        HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1100,
        HEAD + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Content-Length:\r\n\t3\r\n\r\nabc",
        HEAD + b"X: a\r\n b\r\nContent-Length: 3\r\n\r\nabc",
        HEAD + b"Content-Type: a\r\nX: b\n c\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
def test_what_is_no_http_ends_the_connection_and_is_never_answered_with_400(raw: bytes, step: int) -> None:
    found = feed(raw, step=step)
    assert found[-1:] == [BadRequest] or (
        # A length that nobody can mean is one that is too long.
        b"9999" in raw and isinstance(found[0], Refused)
    )


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET /msmq/q HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (b"POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 404),
        (b"POST /msmqx/q HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 404),
        (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (HEAD + b"Content-Length: 5000000\r\n\r\n", 400),
        (HEAD + b"Expect: 100-continue\r\nContent-Length: 5000000\r\n\r\n", 400),
        (chunked(*[bytes(1 << 20)] * 5), 400),
    ],
)
def test_what_nobody_has_to_look_at(raw: bytes, status: int) -> None:
    found = feed(raw)
    assert isinstance(found[0], Refused)
    assert found[0].status == status


@pytest.mark.parametrize("path", [b"/MSMQ/q", b"http://a/msmq/q", b"HTTPS://a:1/Msmq/q", b"/msmq\\q"])
def test_paths_of_messages(path: bytes) -> None:
    (found,) = feed(b"POST %b HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" % path)
    assert isinstance(found, HttpRequest)
    assert found.target == path


def test_a_large_body_needs_room_that_is_there() -> None:
    asked: list[int] = []

    def spare(size: int) -> bool:
        asked.append(size)
        return False

    limits = Limits(spare=spare)
    assert isinstance(feed(length(bytes(60_000)), limits)[0], HttpRequest)
    assert asked == []
    (found,) = feed(length(bytes(70_000)), limits)
    assert isinstance(found, Refused)
    assert (found.status, found.close, asked) == (500, True, [70_000])
    (found,) = feed(chunked(*[bytes(1000)] * 100), limits, step=1000)
    assert isinstance(found, Refused)
    assert found.status == 500


def test_what_is_announced_counts_until_the_answer() -> None:
    engine = ServerConnection(Limits())
    raw = length(bytes(100_000))
    engine.receive(raw[:500])
    assert engine.next() is None
    assert engine.held == 100_000
    engine.receive(raw[500:])
    assert isinstance(engine.next(), HttpRequest)
    assert (engine.held, engine.arrived) == (100_000, 0)
    engine.answer(200, b"")
    assert engine.held == 0


def test_expect_is_answered_before_the_body() -> None:
    engine = ServerConnection(Limits())
    engine.receive(HEAD + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
    assert engine.next() is None
    assert engine.take_output() == b"HTTP/1.1 100 Continue\r\n\r\n"
    engine.receive(b"abc")
    found = engine.next()
    assert isinstance(found, HttpRequest)
    assert found.body == b"abc"


@pytest.mark.parametrize(
    ("raw", "closes"),
    [
        (length(b"a"), False),
        (length(b"a", b"Connection: keep-alive\r\n"), False),
        (length(b"a", b"Connection: close\r\n"), True),
        (length(b"a").replace(b"HTTP/1.1", b"HTTP/1.0"), True),
    ],
)
def test_the_answer(raw: bytes, closes: bool) -> None:
    engine = ServerConnection(Limits())
    engine.receive(raw)
    assert engine.next() is not None
    answer = engine.answer(200, b"Server: x\r\n")
    assert (b"Connection: close\r\n" in answer, engine.ended) == (closes, closes)
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="POST", target="/", headers=[("Host", "a"), ("Content-Length", "0")]))
    client.send(h11.EndOfMessage())
    client.receive_data(answer)
    response = client.next_event()
    assert isinstance(response, h11.Response)
    assert (response.status_code, dict(response.headers)[b"content-length"]) == (200, b"0")
    assert isinstance(client.next_event(), h11.EndOfMessage)


@pytest.mark.parametrize("step", [0, 1])
def test_nothing_is_read_behind_a_request_with_two_lengths(step: int) -> None:
    """What one host takes for the next request, a proxy may have taken for the rest of this body."""
    inner = length(b"smuggled")
    chunks = b"Transfer-Encoding: chunked\r\n"
    outer = HEAD + chunks + b"Content-Length: %d\r\n\r\n0\r\n\r\n" % (5 + len(inner))
    found = feed(outer + inner, step=step)
    assert [each.body for each in found if isinstance(each, HttpRequest)] == [b""]
    engine = ServerConnection(Limits())
    engine.receive(outer)
    assert engine.next() is not None
    assert b"Connection: close\r\n" in engine.answer(200, b"")
    assert engine.ended


@pytest.mark.parametrize("step", [0, 1, 40])
def test_the_length_of_a_chunked_body_is_that_of_its_chunks(step: int) -> None:
    """Whatever Content-Length says beside: a 400, by which a sender forgets a message, does not follow."""
    lie = b"Content-Length: 4294967295\r\nTransfer-Encoding: chunked\r\n\r\n"
    (found,) = feed(HEAD + lie + b"3\r\nabc\r\n0\r\n\r\n", step=step)
    assert isinstance(found, HttpRequest)
    assert found.body == b"abc"


NAMES = st.sampled_from([b"Host", b"Content-Type", b"X-a_b", b"soapaction", b"X y", b"", b"X\x00", b"\xe9"])
VALUES = st.one_of(
    st.sampled_from(
        [b"a", b"", b'"MSMQMessage"', b"a  b\t", b" \t", b"\x00", b"\x7f", b"a\rb", b"\xff", b"a\x0b"]
    ),
    st.binary(max_size=6),
)
LINES = st.builds(
    lambda name, blank, value: name + b":" + blank + value,
    NAMES,
    st.sampled_from([b"", b" ", b"\t "]),
    VALUES,
)
TARGETS = st.sampled_from(
    [b"/msmq/q", b"/msmq/private$/a%20b?c", b"*", b"/\xe9", b"/a b", b"http://h/msmq/q"]
)


@given(
    st.sampled_from([b"POST", b"GET", b"post", b"P\x00"]),
    TARGETS,
    st.sampled_from([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/11"]),
    st.lists(LINES, max_size=5),
    st.sampled_from([b"Host: a", b"Host:a\r\nhost: a", b"X: y"]),
    st.sampled_from([b"", b"Content-Length: 3\r\n", b"Content-Length:3 \r\n", b"Content-Length: +3\r\n"]),
)
def test_both_ways_to_read_a_head_say_the_same(
    method: bytes, target: bytes, version: bytes, lines: list[bytes], host: bytes, size: bytes
) -> None:
    """The plain way is a filter: what it takes, h11 takes, and says the same of it."""
    raw = b"%b %b %b\r\n%b\r\n%b%b\r\n" % (
        method,
        target,
        version,
        host,
        b"".join(line + b"\r\n" for line in lines),
        size,
    )
    head = _plain(raw)
    if head is None:
        return
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(raw)
    event = connection.next_event()
    assert isinstance(event, h11.Request)
    assert (head.method.encode(), head.target, head.headers) == (
        event.method,
        event.target,
        list(event.headers),
    )
    assert event.http_version == b"1.1"
    assert head.length == next((int(value) for name, value in event.headers if name == b"content-length"), 0)
    assert connection.states[h11.CLIENT] is (h11.SEND_BODY)

"""HTTP from the sending side: requests as bytes, answers of every form, and what is no answer."""

from __future__ import annotations

import pytest

from msmq_fast.srmp.http.client import Answer, BadAnswer, ClientConnection

HEADERS = [(b"Host", b"server.test"), (b"Content-Type", b"text/xml"), (b"Content-Length", b"4")]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def sent(connection: ClientConnection, body: bytes = b"text") -> bytes:
    headers = [*HEADERS[:-1], (b"Content-Length", str(len(body)).encode())]
    return b"".join(connection.request(b"/msmq/private$/q", headers, body))


@pytest.fixture
def connection() -> ClientConnection:
    made = ClientConnection()
    sent(made)
    return made


@pytest.mark.rule("SR-001")
def test_the_bytes_of_a_request() -> None:
    expected = b"POST /msmq/private$/q HTTP/1.1\r\nHost: server.test\r\nContent-Type: text/xml\r\n"
    expected += b"Content-Length: 4\r\n\r\ntext"
    assert sent(ClientConnection()) == expected


def test_one_connection_carries_many_requests(connection: ClientConnection) -> None:
    for _ in range(3):
        assert connection.receive(OK) == Answer(200, keep=True)
        sent(connection)
    assert connection.answers == 3


def test_an_answer_in_single_bytes(connection: ClientConnection) -> None:
    answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\nServer: x\r\n\r\nabc"
    heard = [connection.receive(answer[at : at + 1]) for at in range(len(answer))]
    assert heard[:-1] == [None] * (len(answer) - 1)
    assert heard[-1] == Answer(400, keep=True)


@pytest.mark.parametrize(
    ("answer", "status", "keep"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, True),
        (b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 503, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 200, False),
        (OK + OK, 200, False),  # more than was asked for
        (b"HTTP/1.1 500 Error\r\nContent-Length: 9000000\r\n\r\n" + bytes(2 << 20), 500, False),
    ],
)
def test_answers(connection: ClientConnection, answer: bytes, status: int, keep: bool) -> None:
    assert connection.receive(answer) == Answer(status, keep=keep)


def test_an_answer_that_ends_with_the_connection(connection: ClientConnection) -> None:
    assert connection.receive(b"HTTP/1.0 200 OK\r\n\r\nwhatever") is None
    assert connection.receive(b"") == Answer(200, keep=False)


@pytest.mark.rule("SR-192")
@pytest.mark.parametrize(
    "came",
    [
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * (1 << 20),
    ],
)
def test_what_is_no_answer(connection: ClientConnection, came: bytes) -> None:
    def receive() -> None:
        if came:
            connection.receive(came)
        connection.receive(b"")

    with pytest.raises(BadAnswer):
        receive()


def test_a_tunnel() -> None:
    connection = ClientConnection()
    asked = connection.tunnel(b"server.test:443", [(b"Proxy-Accept", b"NonInteractiveClient")])
    expected = b"CONNECT server.test:443 HTTP/1.1\r\nHost: server.test:443\r\n"
    expected += b"Proxy-Accept: NonInteractiveClient\r\n\r\n"
    assert asked == expected
    assert connection.receive(b"HTTP/1.1 200 Connection established\r\n\r\n") == Answer(200, keep=False)
    refused = ClientConnection()
    refused.tunnel(b"server.test:443")
    answer = refused.receive(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    assert answer is not None
    assert answer.status == 407

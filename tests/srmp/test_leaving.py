"""Messages that leave a server process by HTTP, at a plain socket that is no server of ours."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.srmp.certificates import issue
from tests.support.processes.servers import Server, data_directory, until
from tests.support.srmp.independent import Sink
from tests.support.srmp.partner import posted

CONFIG = """
[server]
name = "SENDER"

[srmp]
public_host = "127.0.0.1"
outbound = ["http://far.example/* -> http://127.0.0.1:{port}/"]
outbound_exceptions = ["http://far.example/msmq/private$/direct"]
retry_interval = 1.0
idle_timeout = 2.0
ca_file = "{ca}"
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with data_directory() as data:
        yield data


@pytest.fixture
def gateway() -> Iterator[Sink]:
    """Where messages for another host are taken to."""
    with Sink() as sink:
        yield sink


@pytest.fixture
def server(folder: Path, gateway: Sink) -> Iterator[Server]:
    issue(folder.parent / "pki", "localhost")
    config = folder.parent / "server.toml"
    config.write_text(CONFIG.format(ca=folder.parent / "pki" / "authority.pem", port=gateway.port))
    running = Server(folder, "--http-port", "0", "--config", str(config))
    try:
        running.start()
        yield running
    finally:
        running.kill()


def send(server: Server, url: str, body: str, *more: str) -> None:
    server.ok("send", f"DIRECT={url}", "--body", body, *more)


def outgoing(server: Server) -> dict[str, Any]:
    """The outgoing queue of the server, as the command line shows it."""
    (found,) = server.ok("outgoing", "list")
    return dict(found)


def receipt(server: Server, stream: str, last: int) -> None:
    """A stream receipt, as its receiver writes it."""
    port = server.port("http")
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    envelope = (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
        f"<action>MSMQ:QM Ordering Ack</action><to>http://127.0.0.1:{port}/msmq/private$/order_queue$</to>"
        "<id>uuid:9@4ba8cea2-a5b7-4564-baa9-f4ec1c78a3f4</id></path>"
        f'<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt><sentAt>{stamp}</sentAt>'
        f"</properties><streamReceipt><streamId>{stream}</streamId><lastOrdinal>{last}</lastOrdinal>"
        '</streamReceipt><Msmq xmlns="msmq.namespace.xml"><Class>255</Class><Priority>3</Priority>'
        "<BodyType>0</BodyType><SourceQmGuid>4ba8cea2-a5b7-4564-baa9-f4ec1c78a3f4</SourceQmGuid>"
        "<TTrq>20380119T031407</TTrq></Msmq></se:Header><se:Body></se:Body></se:Envelope>"
    )
    raw = posted("/msmq/private$/order_queue$", "text/xml", envelope.encode())
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(raw)
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")


@pytest.mark.rule("SR-039", "SR-195", "SR-208", "SR-221", "SR-219", "SR-228", "SR-004")
def test_plain_messages_leave_over_one_connection(server: Server) -> None:
    with Sink() as sink:
        url = sink.url("private$/q")
        for number in range(3):
            send(server, url, f"body {number}", "--recoverable")
        requests, sent = sink.wait(3), sink.sent(3)
        assert sink.connections == 1
        assert [each.body for each in sent] == [b"body 0", b"body 1", b"body 2"]
        ordinals = [int(each.fields["path/id"].partition("@")[0].removeprefix("uuid:")) for each in sent]
        assert ordinals == list(range(ordinals[0], ordinals[0] + 3))
        for request in requests:
            assert request.header("SOAPAction") == '"MSMQMessage"'
            assert request.header("Proxy-Accept") == "NonInteractiveClient"
            assert request.header("Host") == f"127.0.0.1:{sink.port}"
            assert request.header("Content-Length")
            assert request.header("Content-Type").startswith("multipart/related")
        found = until(lambda: outgoing(server) if outgoing(server)["messages"] == 0 else None)
        assert found["state"] == "connected"
        assert server.ok("stats")[0]["srmp_http_support"] is True


@pytest.mark.rule("SR-058", "SR-125", "SR-126", "SR-210")
def test_after_a_500_the_same_message_comes_again_on_another_connection(server: Server) -> None:
    with Sink([500, None]) as sink:
        send(server, sink.url("private$/q"), "again", "--recoverable")
        requests = sink.wait(3)
        assert len({request.body for request in requests}) == 1
        assert sink.connections == 3
        assert 0.9 < requests[1].at - requests[0].at < 4


@pytest.mark.rule("SR-209", "SR-183")
def test_after_a_400_it_is_a_dead_letter(server: Server) -> None:
    with Sink([400, 400]) as sink:
        url = sink.url("private$/q")
        send(server, url, "kept", "--recoverable", "--deadletter")
        send(server, url, "dropped", "--recoverable")
        sink.wait(2)
        dead = until(lambda: server.messages(r".\system$;DEADLETTER"))
        assert len(dead) == 1
        until(lambda: outgoing(server)["messages"] == 0)
        assert len(sink.requests) == 2


@pytest.mark.rule("SR-061", "SR-074", "SR-076", "SR-115", "SR-122", "SR-197", "SR-168", "SR-205")
def test_a_stream_and_its_receipt(server: Server) -> None:
    with Sink() as sink:
        url = sink.url("private$/q")
        send(server, url, "m", "--xact", "--count", "3")
        sent = [each.fields for each in sink.sent(3)]
        assert outgoing(server)["messages"] == 3
        assert [each["Stream/current"] for each in sent] == ["1", "2", "3"]
        assert [each.get("Stream/previous") for each in sent] == [None, "1", "2"]
        assert [bool(each.get("Stream/start/sendReceiptsTo")) for each in sent] == [True, False, False]
        assert all("services/durable" in each for each in sent)
        assert len({each["Stream/streamId"] for each in sent}) == 1
        stream = sent[0]["Stream/streamId"]
        receipt(server, stream, 2)
        until(lambda: outgoing(server)["messages"] == 1)
        receipt(server, stream, 3)
        until(lambda: outgoing(server)["messages"] == 0)


@pytest.mark.rule("SR-062", "SR-133", "SR-130")
def test_killed_before_the_answer_it_sends_the_same_again(server: Server) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server.ok("send", f"DIRECT=http://127.0.0.1:{port}/msmq/private$/q", "--body", "once", "--recoverable")
    connection, _ = listener.accept()
    first = connection.recv(65536)
    assert b"once" in first
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGKILL)  # it has not heard of the message's fate
    server.process.wait()
    connection.close()
    server.kill()
    server.start()
    again, _ = listener.accept()
    assert again.recv(65536) == first
    again.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    until(lambda: outgoing(server)["messages"] == 0)
    listener.close()


@pytest.mark.rule("SR-222", "SR-223")
def test_redirected_messages_stay_as_they_are(server: Server, gateway: Sink) -> None:
    send(server, "http://far.example/msmq/private$/direct", "not here")
    send(server, "http://far.example/msmq/private$/q", "here")
    (sent,) = gateway.sent(1)
    assert sent.fields["path/to"] == "http://far.example/msmq/private$/q"
    assert gateway.requests[0].header("Host") == "far.example"
    assert [each.body for each in gateway.sent(1)] == [b"here"]


@pytest.mark.rule("SR-129", "SR-191")
def test_an_idle_connection_is_closed(server: Server) -> None:
    with Sink() as sink:
        send(server, sink.url("private$/q"), "m")
        sink.wait(1)
        until(lambda: outgoing(server)["state"] == "disconnected")
        until(lambda: not sink._open)


@pytest.mark.rule("SR-193", "SR-194", "SR-183")
def test_what_cannot_be_delivered_in_time_is_a_dead_letter(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/msmq/private$/q"
    send(server, url, "late", "--recoverable", "--deadletter", "--ttrq", "2")
    dead = until(lambda: server.messages(r".\system$;DEADLETTER"), 20)
    assert len(dead) == 1


@pytest.mark.rule("SR-003")
def test_https_is_verified(server: Server, folder: Path) -> None:
    """A server of our authority is sent to, one of another is not."""
    authority, good = issue(folder.parent / "pki2", "localhost")
    assert authority.exists()
    with Sink(tls=good) as impostor:
        send(server, impostor.url("private$/q", "localhost"), "secret")
        until(lambda: outgoing(server)["state"] == "inactive")
        time.sleep(1.5)
        assert impostor.requests == []

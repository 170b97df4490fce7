"""What the bulk API shows of messages that came: the request, its envelope, the parts of that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.captures.capture import Capture
from tests.support.http import bulk as api
from tests.support.mqqb import frames
from tests.support.mqqb.peer import Peer
from tests.support.processes.servers import Server
from tests.support.srmp.independent import post
from tests.support.srmp.partner import restamped
from tests.support.srmp.serving import serving

CONFIG = """
[server]
name = "MACHINE2"
[[queues]]
name = "simpleq"
[[queues]]
name = "q"
"""
COLUMNS = "body,arrived_time,compound_body,soap_envelope,soap_header,soap_body"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(CONFIG) as running:
        yield running


def row_of(server: Server, queue: str) -> dict[str, Any]:
    with api.client(server) as bulk:
        (row,) = api.table(bulk.rows(queue, 0, bulk.bounds().next, columns=COLUMNS)).to_pylist()
        return dict(row)


@pytest.mark.rule("SR-135")
def test_a_message_over_http(server: Server) -> None:
    raw = restamped("simple-with-msmq", replace={"<se:Body>": "<!-- <se:Body/> --><se:Body a='>'>"})
    before = time.time()
    assert post(server.port("http"), raw)[0] == 200
    after = time.time()
    row = row_of(server, "simpleq")
    assert before - 0.1 <= row["arrived_time"].timestamp() <= after + 0.1
    assert row["compound_body"] == raw
    assert len(row["body"]) > 9
    assert raw.count(row["body"] + b"\r\n--MSMQ") + raw.count(row["body"] + b"--MSMQ") == 1
    text = raw.decode()
    envelope = text[text.index("<se:Envelope") : text.index("</se:Envelope>") + len("</se:Envelope>")]
    assert row["soap_envelope"] == envelope
    header = envelope[envelope.index("<se:Header") : envelope.index("</se:Header>") + len("</se:Header>")]
    assert row["soap_header"] == header
    assert row["soap_body"] == "<se:Body a='>'></se:Body>"


@pytest.mark.rule("SR-135")
def test_a_message_with_a_soap_header_over_mqqb(server: Server) -> None:
    peer = Peer("127.0.13.1", Capture())
    try:
        line = peer.dial(server.host, server.port("mqqb"))
        line.say(peer.message("q", envelope=frames.soap("<h:seen xmlns:h='urn:é'/>", "<b>1</b>")))
        line.acked(1)
        line.close()
    finally:
        peer.close()
    row = row_of(server, "q")
    assert (row["soap_header"], row["soap_body"]) == ("<h:seen xmlns:h='urn:é'/>", "<b>1</b>")
    assert (row["compound_body"], row["soap_envelope"]) == (None, None)

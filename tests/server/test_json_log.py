"""The JSON log of a real server: each line is an object, and the line of a refused session names the peer."""

from __future__ import annotations

import json
import socket

from tests.support.processes.servers import Server, data_directory, until


def test_the_line_of_a_refused_session_has_the_peer() -> None:
    with data_directory() as data:
        server = Server(data, environment={"MSMQ_FAST_LOG__FORMAT": "json"}).start()
        try:
            with socket.create_connection((server.host, server.port("mqqb"))) as peer:
                peer.sendall(b"x" * 64)
                until(lambda: "refused session" in server.log.read_text(), what="the refusal")
        finally:
            server.kill()
        lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    (refused,) = (line for line in lines if line.get("what") == "session")
    assert (refused["logger"], refused["peer"]) == ("msmq_fast.refusals", server.host)
    assert refused["reason"]

"""Redirection from outside: servers that are processes, and recording ones beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.processes import Server, data_directory
from tests.srmp.independent import Sink, post, read_request
from tests.srmp.partner import Program, request

INNER = "http://localhost/msmq/private$/inner"


@contextlib.contextmanager
def serving(settings: str) -> Iterator[tuple[Server, Program]]:
    with data_directory() as data:
        config = data.parent / "server.toml"
        config.write_text(
            f'[server]\nname = "HERE"\n[srmp]\nretry_interval = 0.5\n{settings}\n[[queues]]\nname = "inner"\n'
        )
        server = Server(data, "--http-port", "0", "--config", str(config))
        try:
            server.start()
            with contextlib.closing(Program(server)) as program:
                yield server, program
        finally:
            server.kill()


@pytest.mark.rule("SR-145")
def test_messages_for_others_are_refused() -> None:
    with serving("") as (server, program):
        port = server.port("http")
        assert post(port, request("http://elsewhere.example/msmq/private$/inner"))[0] == 400
        assert post(port, request(f"http://localhost:{port}/msmq/private$/inner"))[0] == 200
        assert post(port, request(f"http://localhost:{port ^ 1}/msmq/private$/inner"))[0] == 400
        assert len(program.messages("inner")) == 1


@pytest.mark.rule("SR-147", "SR-222", "SR-223", "SR-206", "SR-207")
def test_every_kind_of_redirection(tmp_path: Path) -> None:
    with Sink() as sink, Sink() as relay:
        mapping = tmp_path / "mapping"
        mapping.mkdir()
        (mapping / "inbound.xml").write_text(
            '<redirections xmlns="msmq-queue-redirections.xml"><redirection>'
            f"<from>http://mapped.example/msmq/*</from><to>{INNER}</to></redirection></redirections>"
        )
        settings = f"""
inbound = [
    "http://public.example/msmq/orders -> {INNER}",
    "http://away.example/* -> {sink.url("private$/away")}",
]
outbound = ["http://partner.example/* -> http://127.0.0.1:{relay.port}"]
outbound_exceptions = ["http://partner.example/msmq/private$/direct"]
stream_receipts = ["http://partner.example/* -> http://nat.example/msmq/private$/order_queue$"]
mapping = "{mapping}"
"""
        with serving(settings) as (server, program):
            port = server.port("http")
            assert post(port, request("http://public.example/msmq/ORDERS", b"1"))[0] == 200
            assert post(port, request("http://mapped.example/msmq/anything", b"2"))[0] == 200
            found = program.messages("inner")
            assert [message["destination_queue"] for message in found] == [
                "DIRECT=http://public.example/msmq/ORDERS",
                "DIRECT=http://mapped.example/msmq/anything",
            ], "what was sent stays as it was"
            raw = request("http://away.example/msmq/q", b"\x00passed on")
            assert post(port, raw)[0] == 200
            (passed,) = sink.wait(1)
            assert passed.target == "/msmq/private$/away"
            assert passed.body == read_request(raw).body, "byte for byte"
            for queue in ("q", "direct"):
                server.ok(
                    "send",
                    f"DIRECT=HTTP://partner.example/msmq/private$/{queue}",
                    "--body",
                    "x",
                    "--ttrq",
                    "60",
                )
            (message,) = relay.sent(1)
            assert message.fields["path/to"] == "http://partner.example/msmq/private$/q"
            assert message.request.header("Host") == "partner.example"
            server.ok("send", "DIRECT=HTTP://partner.example/msmq/private$/tx", "--body", "x", "--xact")
            message = relay.sent(2)[1]
            assert (
                message.fields["Stream/start/sendReceiptsTo"]
                == "http://nat.example/msmq/private$/order_queue$"
            )
            server.ok("send", f"DIRECT={sink.url('private$/tx')}", "--body", "x", "--xact")
            message = sink.sent(2)[1]
            expected = f"http://here:{port}/MSMQ/PRIVATE$/order_queue$"
            assert message.fields["Stream/start/sendReceiptsTo"].lower() == expected.lower()
            assert len(relay.requests) == 2, "the exception does not come here"


def test_a_mapping_file_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "wrong.xml").write_text(
        "<redirections>\n<redirection><from>x</from></redirection></redirections>"
    )
    with data_directory() as data:
        server = Server(data, "--http-port", "0", environment={"MSMQ_FAST_SRMP__MAPPING": str(tmp_path)})
        with pytest.raises(AssertionError) as caught:
            server.start()
        assert f"{tmp_path}/wrong.xml: line 2: <redirection> needs one" in str(caught.value)
        assert "Traceback" not in server.log.read_text()

"""Redirection from outside: servers that are processes, and recording ones beside them."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.support.processes.servers import Server, data_directory, until
from tests.support.srmp.independent import Sink, post, read_request
from tests.support.srmp.partner import Program, request

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


@pytest.mark.long(seconds=6)
@pytest.mark.parametrize("known", [True, False])
def test_two_servers_that_lead_a_url_to_each_other(tmp_path: Path, known: bool) -> None:
    """What has an identifier goes round once; what has none goes round until it has too many hops."""
    ports = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports.append(free.getsockname()[1])
    text = request("http://nowhere.example/msmq/private$/q")
    if not known:
        text = re.sub(rb"<Msmq .*</Msmq>", lambda found: b" " * len(found[0]), text)
    with contextlib.ExitStack() as stack:
        servers = []
        for number, port in enumerate(ports):
            data = stack.enter_context(data_directory())
            config = data.parent / "server.toml"
            config.write_text(
                f'[server]\nname = "RELAY{number}"\n[srmp]\nstore_and_forward = true\n'
                f'outbound = ["http://nowhere.example/* -> http://127.0.0.1:{ports[1 - number]}"]\n'
            )
            server = Server(data, "--http-port", str(port), "--config", str(config))
            stack.callback(server.kill)
            servers.append(server.start())
        assert post(ports[0], text)[0] == 200

        def answers(status: int) -> int:
            """Requests that were answered so, by both."""
            found = 0
            for each in servers:
                with urlopen(f"http://127.0.0.1:{each.port('admin')}/metrics") as reply:
                    text = reply.read().decode()
                line = rf'^msmq_fast_http_answers_total\{{status="{status}"\}} (\d+)'
                found += sum(map(int, re.findall(line, text, re.MULTILINE)))
            return found

        until(lambda: answers(200) == (3 if known else 29))
        until(lambda: answers(400) == (not known))
        queues = [queue for each in servers for queue in each.ok("outgoing", "list")]
        assert [queue["messages"] for queue in queues] == [0, 0]

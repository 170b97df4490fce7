"""What docs/how-to/srmp.md shows is what happens, with the real curl."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.config.loading import load
from tests.support.processes.servers import Server, data_directory

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "srmp.md"


@pytest.fixture
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--http-port", "0")
        try:
            yield running.start()
        finally:
            running.kill()


@pytest.mark.long
@pytest.mark.rule("SR-002")
def test_the_one_curl_command_delivers_a_message(server: Server) -> None:
    (shown,) = re.findall(r"^\$ (curl .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown.count("http://localhost/") == 2
    server.ok("queue", "create", "orders")
    command = shown.replace("'http://localhost/", f"'http://127.0.0.1:{server.port('http')}/")
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body == b""
    (message,) = server.messages("orders")
    assert (message["label"], message["body_b64"], message["delivery"]) == (
        "from curl",
        "aGVsbG8=",
        "recoverable",
    )


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        file = tmp_path / "msmq.toml"
        file.write_text(block, encoding="utf-8")
        load(file, {}, {})

"""The programs of docs/how-to/python.md, one after the other at one server, as a reader tries them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.servers import Server, data_directory

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "python.md"
SHOWN = (
    "first b'hello'\nnothing left\n",
    "äöü\n",
    "42\n[1.5, 2.5]\näöü\n{'id': 7}\n",
    "10000\n",
    "b'7!'\n",
    "b'one'\n[b'one', b'two', b'three']\nb'two'\n1\n",
    "Orders 0 False\n",
    "b'0'\nb'1'\nb'2'\n",
)


@pytest.fixture
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data).start()
        try:
            yield running
        finally:
            running.kill()


def test_the_programs_do_what_they_say(server: Server) -> None:
    programs = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    environment = {**os.environ, "MSMQ_FAST_ENDPOINT": server.endpoint, "PYTHONIOENCODING": "utf-8"}
    for program, shown in zip(programs, SHOWN, strict=True):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            env=environment,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, shown), done.stderr

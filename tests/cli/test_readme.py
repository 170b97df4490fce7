"""The program and the configuration in the README work; tests/documents types its commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.servers import Server, data_directory

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data).start()
        try:
            yield running
        finally:
            running.kill()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_python_example_runs(server: Server) -> None:
    (example,) = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", example],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "MSMQ_FAST_ENDPOINT": server.endpoint},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "first b'hello'\n"), done.stderr


def test_the_configuration_example_is_valid(tmp_path: Path) -> None:
    for number, text in enumerate(blocks("toml")):
        file = tmp_path / f"{number}.toml"
        file.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "msmq_fast", "check-config", str(file)], capture_output=True, check=False
        )
        assert done.returncode == 0, done

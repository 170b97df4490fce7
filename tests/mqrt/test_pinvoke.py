"""P/Invoke of libmqrt from Mono and from .NET 8: one program, compiled once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.mqrt.building import Build
from tests.support.processes import dotnet
from tests.support.processes.servers import Server

SOURCE = Path(__file__).with_name("pinvoke.cs")
PRINTED = [
    "single Auftr\u00e4ge",
    "called back Auftr\u00e4ge",
    "committed Auftr\u00e4ge",
    "1 invoked",
    "callbacks",
    "The queue does not exist, or you have no permission to see it.",
]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dotnet.compile_program(None, [SOURCE], tmp_path_factory.mktemp("pinvoke") / "pinvoke.exe")


def _printed(runtime: str, transactions: str, built: Build, server: Server, program: Path) -> list[str]:
    command = [*dotnet.command_for(runtime, program), transactions]
    environment = built.environment(server.endpoint, **dotnet.SETTINGS, LC_ALL="C.UTF-8")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.needs("cc", "make", "mcs", "mono")
@pytest.mark.long(seconds=10)
@pytest.mark.parametrize("transactions", ["com", "pointers"])
def test_mono(built: Build, server: Server, program: Path, transactions: str) -> None:
    assert _printed(dotnet.MONO, transactions, built, server, program) == PRINTED


@pytest.mark.needs("cc", "make", "mcs")
@pytest.mark.long(seconds=20)
def test_net_8(built: Build, server: Server, program: Path) -> None:
    assert _printed(dotnet.NET, "pointers", built, server, program) == PRINTED

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import dotnet
from tests.support.processes.servers import Server, data_directory

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that the programs of one module share."""
    with data_directory() as data:
        server = Server(data).start()
        yield server
        server.kill()


@pytest.fixture(scope="session")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The program of all scenarios, compiled once for each name of the assembly."""
    built = {}
    for name in dotnet.NAMES:
        folder = tmp_path_factory.mktemp("dotnet")
        assembly = dotnet.build(name, folder)
        sources = sorted(PROGRAMS.glob("*.cs"))
        built[name] = dotnet.compile_program(assembly, sources, assembly.parent / "scenarios.exe")
    return built

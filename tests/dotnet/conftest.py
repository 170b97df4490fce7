from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
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
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that builds the assembly of a name, once, in a folder of its own; returns its file."""
    folder = tmp_path_factory.mktemp("dotnet")
    return functools.cache(lambda name: dotnet.build(name, folder))


@pytest.fixture(scope="session")
def scenarios(assembly: Callable[[str], Path]) -> dict[str, Path]:
    """The program of all scenarios, compiled once for each name of the assembly."""
    sources = sorted(PROGRAMS.glob("*.cs"))
    return {
        name: dotnet.compile_program(assembly(name), sources, assembly(name).parent / "scenarios.exe")
        for name in dotnet.NAMES
    }

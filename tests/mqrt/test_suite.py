"""The C suite against a real server: every function and every error, under the sanitizers of the compiler."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

import msmq_fast
from msmq_fast.protocol.frames import Frame
from tests.mqrt.building import Build
from tests.support.processes.servers import Server, until

PROGRAM = """
#include <mq.h>
int main(void) { return MQCloseQueue(0) == MQ_ERROR_INVALID_HANDLE ? 0 : 1; }
"""
PUBLIC = (("north\\a", "found"), ("north\\b", "found"), ("south\\c", "other"))


async def _publish(endpoint: str) -> None:
    async with msmq_fast.connect(endpoint) as connection:
        for computer in ("north", "south"):
            entry = {"object": "QueueManager", "ComputerName": computer}
            await connection.request(Frame.PUT_DIRECTORY, [entry, "create", False])
        for path, label in PUBLIC:
            entry = {"object": "Queue", "Pathname": path, "Label": label}
            await connection.request(Frame.PUT_DIRECTORY, [entry, "create", False])


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=60)
def test_all_cases(checked: Build, server: Server) -> None:
    cases = checked.cases()
    assert len(cases) > 30
    asyncio.run(_publish(server.endpoint))
    for name in cases:
        assert f"{name} passed" in checked.run(server.endpoint, [name])


class Talk:
    """A run of one case that asks for something; the answers are lines."""

    def __init__(self, build: Build, server: Server, name: str) -> None:
        self.server = server
        self.process = subprocess.Popen(
            [build.suite, name],
            env=build.environment(server.endpoint),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until_the_end(self) -> None:
        """Do what the case asks for."""
        assert self.process.stdout is not None
        assert self.process.stdin is not None
        with self.process:
            for line in self.process.stdout:
                if line == "kill_later\n":
                    until(self._two_wait)
                    self.server.kill()
                elif line in ("kill\n", "start\n"):
                    getattr(self.server, line.strip())()
                    self.process.stdin.write("done\n")
                    self.process.stdin.flush()
            assert self.process.stderr is not None
            problem = self.process.stderr.read()
        assert self.process.returncode == 0, problem

    def _two_wait(self) -> bool:
        """Whether the frames of the case have arrived: hello, create, open, and two reads."""
        (counters,) = self.server.ok("stats")
        frames: int = counters["app_frames"]
        return frames >= 5 + 2  # with the two of `stats` itself


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=20)
@pytest.mark.parametrize("name", ["reconnect", "killed_while_waiting"])
def test_a_killed_server(checked: Build, server: Server, name: str) -> None:
    Talk(checked, server, name).until_the_end()


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=5)
def test_a_fork(built: Build, server: Server) -> None:
    built.run(server.endpoint, ["forked"])


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=5)
def test_the_makefile_installs_the_library_its_links_and_the_headers(built: Build, tmp_path: Path) -> None:
    folder = Path(__file__).resolve().parents[2] / "contrib" / "mqrt"
    command = ["make", "-s", "-C", folder, f"BUILD={built.directory}", f"DESTDIR={tmp_path}", "install"]
    subprocess.run([*command, "CFLAGS=-O2 -Werror"], check=True, capture_output=True)
    library = tmp_path / "usr" / "local" / "lib"
    for name in ("libmqrt.so", "libkernel32.dll.so"):
        assert (library / name).resolve() == library / "libmqrt.dll.so"
    header = tmp_path / "usr" / "local" / "include" / "msmq-fast"
    flags = [f"-I{header}", f"-L{library}", "-lmqrt", f"-Wl,-rpath,{library}"]
    for compiler, suffix in (("cc", ".c"), ("c++", ".cc")):
        source = (tmp_path / "program").with_suffix(suffix)
        source.write_text(PROGRAM)
        program = str(tmp_path / compiler)
        subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", source, *flags, "-o", program], check=True)
        subprocess.run([program], check=True)

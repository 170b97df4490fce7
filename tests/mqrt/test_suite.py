"""The C suite against a real server: every function and every error, under the sanitizers of the compiler."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path

import pytest

import msmq_fast
from msmq_fast.protocol.frames import Frame
from tests.mqrt.building import LIBRARY, Build
from tests.support.processes.remotes import computers
from tests.support.processes.servers import Server, until

PAGE = LIBRARY.parents[1] / "docs" / "how-to" / "c-programs.md"
CPP = """
#include <mq.h>
int main() {
    QUEUEHANDLE queue = nullptr;
    ITransaction *transaction = nullptr;
    if (MQOpenQueue(u"orders", MQ_SEND_ACCESS, MQ_DENY_NONE, &queue) != MQ_ERROR_ILLEGAL_FORMATNAME) return 1;
    if (MQBeginTransaction(&transaction) == MQ_OK) return transaction->Commit(0, 0, 0);
    return MQCloseQueue(queue) != MQ_ERROR_INVALID_HANDLE;
}
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

    def __init__(self, build: Build, server: Server, name: str, owner: Server | None = None) -> None:
        self.server = server
        self.owner = owner or server
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
                elif line.split()[0] in ("kill", "start", "send"):
                    self._do(*line.split())
                    self.process.stdin.write("done\n")
                    self.process.stdin.flush()
            assert self.process.stderr is not None
            problem = self.process.stderr.read()
        assert self.process.returncode == 0, problem

    def _do(self, what: str, text: str = "") -> None:
        if what == "send":
            self.owner.ok("send", "orders", "--body", text, "--label", text)
        else:
            getattr(self.server, what)()

    def _two_wait(self) -> bool:
        """Whether the frames of the case have arrived: hello, create, open, and two reads."""
        (counters,) = self.server.ok("stats")
        frames: int = counters["app_frames"]
        return frames >= 5 + 2  # with the two of `stats` itself


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=20)
@pytest.mark.parametrize("name", ["reconnect", "killed_while_waiting", "walk"])
def test_a_killed_server(checked: Build, server: Server, name: str) -> None:
    Talk(checked, server, name).until_the_end()


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=15)
def test_a_queue_of_another_computer(checked: Build) -> None:
    with computers() as (owner, reader):
        Talk(checked, reader, "remote", owner).until_the_end()


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=5)
def test_a_fork(built: Build, server: Server) -> None:
    built.run(server.endpoint, ["forked"])


@pytest.fixture
def installed(built: Build, tmp_path: Path) -> Path:
    """The prefix below which the Makefile installs."""
    command = ["make", "-s", "-C", LIBRARY, f"BUILD={built.directory}", f"DESTDIR={tmp_path}", "install"]
    subprocess.run([*command, "CFLAGS=-O2 -g -Werror"], check=True, capture_output=True)
    return tmp_path / "usr" / "local"


def _compiled(installed: Path, compiler: str, source: Path) -> Path:
    program = source.with_suffix("")
    library = installed / "lib"
    places = [f"-I{installed / 'include' / 'msmq-fast'}", f"-L{library}", f"-Wl,-rpath,{library}"]
    command = [compiler, "-Wall", "-Wextra", "-Werror", *places, str(source), "-lmqrt", "-o", str(program)]
    subprocess.run(command, check=True)
    return program


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=5)
def test_the_page_for_c_programmers(built: Build, installed: Path, server: Server, tmp_path: Path) -> None:
    for name in ("libmqrt.so", "libkernel32.dll.so"):
        assert (installed / "lib" / name).resolve() == installed / "lib" / "libmqrt.dll.so"
    (found,) = re.findall(r"^```c\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    source = tmp_path / "program.c"
    source.write_text(found)
    program = _compiled(installed, "cc", source)
    server.ok("queue", "create", "orders")
    subprocess.run([program], env=built.environment(server.endpoint), check=True)
    (message,) = server.messages("orders")
    assert (message["label"], message["body_b64"]) == ("first", "aGVsbG8=")


@pytest.mark.needs("c++", "make")
@pytest.mark.long(seconds=5)
def test_a_program_in_cpp(installed: Path, tmp_path: Path) -> None:
    source = tmp_path / "program.cc"
    source.write_text(CPP)
    subprocess.run([_compiled(installed, "c++", source)], check=True)

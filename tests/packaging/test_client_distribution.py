"""msmq-fast-client: plain Python that works with msgpack alone, and talks to a server."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from tests.packaging.environments import make_environment, run
from tests.support.processes.servers import Server, data_directory
from tools.wheels import interpreters

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import asyncio, importlib, pkgutil, sys
import msmq_fast
from msmq_fast import Message, SINGLE_MESSAGE, errors, sync

def unavailable(name):
    assert name == "msmq_fast.client.telemetry", name  # needs the extra otel


found = pkgutil.walk_packages(msmq_fast.__path__, "msmq_fast.", unavailable)
for name in [module.name for module in found if not module.name.startswith("msmq_fast.client.telemetry")]:
    importlib.import_module(name)
foreign = {"lxml", "uvloop", "lmdb", "aiohttp", "cryptography", "pyarrow"} & set(sys.modules)
assert not foreign, foreign

with sync.connect(sys.argv[1]) as connection:
    connection.admin.queues.create("tx", transactional=True)
    connection.admin.queues.create("plain")
    with connection.open("tx") as queue, connection.transaction() as transaction:
        queue.send(Message.of([1, 2], "binary"), transaction=transaction)
    with connection.open("tx") as queue:
        print(queue.receive(5).value)
    with connection.open("plain") as queue:
        with queue.sender() as sender:
            for number in range(1000):
                sender.send(Message(b"%d" % number))
        with queue.subscribe() as messages:
            batch = messages.batch(10)
            messages.acknowledge(batch[0], batch[-1])
        try:
            queue.peek(limits=msmq_fast.MessageSizes(body=0))
        except errors.BufferTooSmall as error:
            print(error.needed[0])
        print(queue.purge())


async def main():
    async with msmq_fast.connect(sys.argv[1], reconnect=True) as connection:
        async with connection.open("plain") as queue:
            await queue.send(Message.of({"a": 1}, "json"))
            print((await queue.receive(5)).value)


asyncio.run(main())
print(msmq_fast.__file__)
"""
SHOWN = "[1, 2]\n2\n990\n{'a': 1}\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of an sdist, as an index would have it."""
    made = tmp_path_factory.mktemp("dist")
    run(
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        made,
        ROOT / "packaging" / "client",
        cwd=made,
    )
    (found,) = made.glob("*.whl")
    return found


@pytest.fixture
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data).start()
        try:
            yield running
        finally:
            running.kill()


def test_the_wheel_is_plain_python_for_every_system(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        about = email.message_from_bytes(archive.read(metadata))
    rooms = {name.split("/")[1] for name in names if name.startswith("msmq_fast/") and name.count("/") > 1}
    assert rooms == {"bodies", "client", "protocol"}
    assert about["Name"] == "msmq-fast-client"
    needed = [one for one in about.get_all("Requires-Dist") if "extra" not in one]
    assert [one.partition(">")[0] for one in needed] == ["msgpack"]
    assert "msmq_fast/py.typed" in names


def test_it_works_with_msgpack_alone(wheel: Path, server: Server, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "site" / "msgpack").symlink_to(Path(msgpack.__file__).parent)
    program = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{PROGRAM}"
    command = [sys.executable, "-I", "-S", "-c", program, server.endpoint]  # -S: no site-packages
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{SHOWN}{tmp_path}/site/msmq_fast/__init__.py\n"


@pytest.mark.long(seconds=15)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", interpreters())
def test_it_installs_without_a_compiler(wheel: Path, server: Server, tmp_path: Path, version: str) -> None:
    binaries = make_environment(interpreters()[version], tmp_path / "bare")
    without = {**os.environ, "CC": "/bin/false", "PATH": str(binaries)}
    command = [binaries / "pip", "install", "--quiet", "--only-binary", ":all:", wheel]
    done = subprocess.run(
        command, cwd=tmp_path, env=without, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    shown = run(binaries / "python", "-c", PROGRAM, server.endpoint, cwd=tmp_path)
    assert shown.startswith(SHOWN)
    assert Path(shown.splitlines()[-1]).is_relative_to(tmp_path)

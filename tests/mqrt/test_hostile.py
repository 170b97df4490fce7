"""libmqrt against servers that lie: nothing that they send does more than fail a call."""

from __future__ import annotations

import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.protocol.frames import Frame, pack_frame
from tests.mqrt.building import LIBRARY, Build
from tests.mqrt.lying import HELLO, LIES, Lie, lying, seeds, truth

RUNS = 12
FUZZED = 300_000


def _run(checked: Build, case: str, lie: Lie, seed: int, hello: bytes | None = None) -> None:
    with tempfile.TemporaryDirectory(prefix="msmq-") as folder:
        path = Path(folder) / "app.sock"
        with lying(path, lie, seed, hello):
            checked.run(f"unix:{path}", [case])


def _everything(checked: Build, lie: str, seed: int, hello: bytes | None = None) -> None:
    _run(checked, "everything", LIES[lie], seed, hello)


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=40)
@pytest.mark.parametrize("lie", LIES)
def test_replies_that_lie(checked: Build, lie: str) -> None:
    for seed in range(RUNS):
        _everything(checked, lie, seed)


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=5)
def test_a_commit_without_an_answer_is_in_doubt(checked: Build) -> None:
    _run(
        checked,
        "in_doubt",
        lambda draw, kind, number: None if kind == Frame.COMMIT else truth(draw, kind, number),
        0,
    )


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=5)
def test_a_queue_manager_without_a_key(checked: Build) -> None:
    _run(checked, "without_key", lambda _draw, _kind, number: pack_frame(Frame.REPLY, number, []), 0)


def _changed(**values: Any) -> bytes:
    hello = {**HELLO, **values}
    return pack_frame(Frame.REPLY, 1, {key: value for key, value in hello.items() if value is not None})


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=30)
@pytest.mark.parametrize(
    "hello",
    [
        _changed(guid=b"short"),
        _changed(guid="text"),
        _changed(name=None),
        _changed(name="x" * 300),
        _changed(server=None),
        _changed(max_frame=1),
        _changed(max_frame=2**40),
        _changed(max_frame="large"),
        _changed(version=2),
        pack_frame(Frame.REPLY, 2, HELLO),
        pack_frame(Frame.MESSAGE, 1, HELLO),
        pack_frame(Frame.ERROR, 1, [0xC00E0025, "MQ_ERROR_ACCESS_DENIED", "no"]),
        pack_frame(Frame.ERROR, 1, "no array"),
        b"\xff" * 64,
        b"\0\0\0\5\x80\0\0\0\1",
    ],
)
def test_hellos_that_lie(checked: Build, hello: bytes) -> None:
    _everything(checked, "truth", 0, hello)


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=60)
@pytest.mark.parametrize("checked", ["address,undefined"], indirect=True, ids=["asan"])
def test_the_readers_of_replies_survive_mutations(checked: Build, tmp_path: Path) -> None:
    program = tmp_path / "fuzz"
    flags = [
        "-std=c11",
        "-D_GNU_SOURCE",
        "-g",
        "-O1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ]
    include = [f"-I{LIBRARY / 'include'}", f"-I{LIBRARY / 'src'}"]
    source = Path(__file__).with_name("fuzz.c")
    objects = sorted(map(str, checked.directory.glob("*.o")))
    link = ["-pthread", "-lssl", "-lcrypto", "-o", program]
    subprocess.run(["cc", *flags, *include, source, *objects, *link], check=True)
    seed = random.randrange(2**32)
    command = [program, str(seed), str(FUZZED), *seeds(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-4000:]}"
    assert int(done.stdout.split()[0]) > FUZZED // 20

"""What a disk may hold after the power went out, from a record of writes and syncs (see powercut_shim.c)."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.faults.powercut_child import body

HERE = Path(__file__).parent
SECTOR = 512
_HEAD = struct.Struct("<cBQI")


def build_shim(directory: Path) -> Path:
    """Compiles the preloaded library."""
    shim = directory / "shim.so"
    source = HERE / "powercut_shim.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", shim, source, "-ldl", "-lpthread"], check=True)
    return shim


def run_child(
    shim: Path,
    directory: Path,
    seed: int,
    commits: int,
    *,
    log_size: int = 0,
    fail_after: int = 0,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Runs the load in `directory`/store, with a redo log of `log_size` bytes unless it is 0; `directory`/log
    holds the record afterwards.

    `more` are environment variables of the shim; what one of them names comes into being after `fail_after`
    commits.
    """
    (directory / "store").mkdir(parents=True)
    environment = {**os.environ, "LD_PRELOAD": str(shim), "SHIM_LOG": str(directory / "log"), **more}
    arguments = [directory / "store", str(seed), str(commits), directory / "ledger", str(log_size)]
    if fail_after:
        arguments += [str(fail_after), *more.values()]
    return subprocess.run(
        [sys.executable, HERE / "powercut_child.py", *arguments],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )


@dataclass
class Ledger:
    """What the load said to be durable, and what it was about to make so."""

    present: dict[int, int] = field(default_factory=dict)
    events: int = 0
    planned: dict[int, int] | None = None
    planned_events: int = 0
    acknowledged: int = 0

    def take(self, line: bytes) -> None:
        entry = json.loads(line)
        after = {message: size for message, size in self.present.items() if message not in entry["remove"]}
        after.update((message, size) for message, size in entry["add"])
        if not entry["done"]:
            self.planned, self.planned_events = after, entry["events"]
            return
        self.present, self.events, self.planned = after, entry["events"], None
        self.acknowledged += 1


def recover(shim: Path, store: Path, **environment: str) -> int:
    """Opens a store and ends at once; returns the exit code. `environment` is the shim's."""
    code = "import os, sys; from msmq_fast._native.lmdbstore import LmdbTables\n"
    code += "LmdbTables(sys.argv[1], map_size=1 << 30); os._exit(0)"
    more = {**os.environ, "LD_PRELOAD": str(shim), **environment}
    return subprocess.run([sys.executable, "-c", code, store], env=more, check=False, timeout=60).returncode


Images = dict[int, bytearray]
"""The files: 0 is data.mdb, N + 1 is segment-N of the redo log."""


class Disk:
    """Replays a record up to a cut: synced writes hold, others hold sector by sector or not."""

    def __init__(self, log: bytes, before: Images | None = None) -> None:
        self.records: list[tuple[bytes, int, int, bytes]] = []
        self.before = before or {}
        at = 0
        while at + _HEAD.size <= len(log):
            kind, file, offset, length = _HEAD.unpack_from(log, at)
            at += _HEAD.size
            self.records.append((kind, file, offset, log[at : at + length]))
            at += length

    def cut(self, rng: random.Random, earliest: int | None = None) -> tuple[Images, Ledger, int]:
        """(files, ledger, place of the cut) for a power cut at a random moment."""
        place = rng.randrange(
            len(self.records) // 20 if earliest is None else earliest, len(self.records) + 1
        )
        images, ledger = {file: bytearray(data) for file, data in self.before.items()}, Ledger()
        unsynced: dict[int, list[tuple[int, bytes | None]]] = {}
        for kind, file, offset, data in self.records[:place]:
            if kind in b"WT":
                unsynced.setdefault(file, []).append((offset, data if kind == b"W" else None))
            elif kind == b"D":  # the meta page, through its own descriptor: it alone is on the disk
                _put(images.setdefault(file, bytearray()), offset, data)
            elif kind == b"S":
                for at, written in unsynced.pop(file, []):
                    _put(images.setdefault(file, bytearray()), at, written)
            else:
                ledger.take(data)
        survival = rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        for file, writes in unsynced.items():
            rng.shuffle(writes)
            image = images.setdefault(file, bytearray())
            for offset, written in writes:
                for at in range(0, len(written or b"\0"), SECTOR):
                    if rng.random() < survival:
                        _put(image, offset + at, None if written is None else written[at : at + SECTOR])
        return images, ledger, place


def write_images(images: Images, store: Path) -> None:
    """Makes the store's directory of what a cut left."""
    store.mkdir()
    (store / "log").mkdir()  # made and synced before the data file says that there is a log
    for file, image in images.items():
        path = store / "data.mdb" if file == 0 else store / "log" / f"segment-{file - 1}"
        path.write_bytes(image)


def read_images(store: Path) -> Images:
    """What write_images made."""
    images = {0: bytearray((store / "data.mdb").read_bytes())}
    for path in (store / "log").iterdir():
        images[int(path.name.partition("-")[2]) + 1] = bytearray(path.read_bytes())
    return images


def _put(image: bytearray, offset: int, data: bytes | None) -> None:
    """Writes; with None the file is as long as `offset` says."""
    if data is None:
        del image[offset:]
        data = b""
    if len(image) < offset + len(data):
        image.extend(bytes(offset + len(data) - len(image)))
    image[offset : offset + len(data)] = data


def check_apart(directory: Path, ledger: Ledger) -> bool:
    """The same in a process of its own, since a damaged file may crash the one that reads it; True when all
    is well.
    """
    code = "import sys; from pathlib import Path; from tests.faults.powercut import Ledger, check_store\n"
    code += f"check_store(Path({str(directory)!r}), {ledger!r})"
    root = HERE.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, check=False, capture_output=True, timeout=60
    )
    return done.returncode == 0


def check_store(directory: Path, ledger: Ledger) -> None:
    """Asserts that a store holds just what the ledger says, and no half units.

    Afterwards the ledger says whether the commit that was under way was kept.
    """
    tables = LmdbTables(directory, map_size=1 << 30)
    try:
        found: dict[int, int] = {}
        for key, value in tables.scan(Table.POSITION, b"", None, 1 << 20):
            _queue, message = decode.position_key(key)
            record = decode.position(value)
            assert record.content_id == message
            found[message] = record.content_bytes
        # A commit that was under way is there as a whole or not at all.
        whole = found == ledger.planned
        assert whole or found == ledger.present, "not what was acknowledged"
        chunks = 0
        for message, size in found.items():
            assert tables.read_content(message, size) == body(message, size)
            chunks += decode.chunk_count(size)
        assert tables.count(Table.CONTENT) == chunks, "content without a position"
        number = 1
        for key, value in tables.scan(Table.FEED, b"", None, 1 << 20):
            events = decode.feed(key, value)
            assert events[0].number == number, "a hole in the feed"
            number = events[-1].number + 1
        assert number - 1 == (ledger.planned_events if whole else ledger.events)
        if whole:
            ledger.present, ledger.events = found, number - 1
        ledger.planned = None
    finally:
        tables.close()

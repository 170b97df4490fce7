"""Feeds damaged records to the decoder and to the loader: `python tests/faults/fuzz_store.py --seconds N`.

Whatever the bytes, the decoder raises DecodeError or returns. The native loader takes the records that the
decoder takes, with the same fields, and no others. Coverage-guided with atheris where it is installed, else
by random mutation of good records. `--native` fuzzes another build of the loader.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

sys.path.insert(0, str(Path(__file__).parents[2]))

from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.faults import fuzz_native
from tests.support.hostile.mutation import mutate

GOLDEN = Path(__file__).parent.parent / "store" / "golden" / "records-1.json"
_POSITION_ROW = 8 + decode.POSITION.size


def seeds() -> list[bytes]:
    """Good inputs: which reader, length of the key, key, value."""
    found = json.loads(GOLDEN.read_text())
    kinds = ("position", "content", "feed", "history", "queue", "meta", "outgoing_stream")
    also = {"position_numbered": "position", "feed_whole": "feed", "history_marked": "history"}
    return [
        bytes((kinds.index(also.get(name, name)), len(key) // 2)) + bytes.fromhex(key) + bytes.fromhex(value)
        for name, (key, value) in found.items()
    ]


def load_natively(key: bytes, value: bytes) -> None:
    """The loader of positions, and numbering, on tables that hold one record.

    The modules are looked up here, because `--native` puts another build in the place of one.
    """
    native = importlib.import_module("msmq_fast._native.tables")
    tables = importlib.import_module("msmq_fast._native.memorystore").MemoryTables()
    for table in (Table.POSITION, Table.CONTENT, Table.FEED, Table.HISTORY):
        tables.tables[table][key] = value
    packed: dict[int, bytes] = {}
    with contextlib.suppress(native.StoreError):
        packed = tables.pack_positions()
    try:
        queue, lookup_id = decode.position_key(key)
        decode.position(value)
    except decode.DecodeError:
        assert not packed
    else:
        assert packed == {queue: lookup_id.to_bytes(8, "little") + value[: decode.POSITION.size]}
        assert len(packed[queue]) == _POSITION_ROW
    for table in (Table.FEED, Table.HISTORY):
        with contextlib.suppress(native.StoreError):
            tables.next_number(table)
    with contextlib.suppress(native.StoreError):
        assert len(tables.read_content(int.from_bytes(key[:8], "big"), len(value))) == len(value)


def one_input(data: bytes) -> None:
    """What a fuzzer calls."""
    kind, length = (data + b"\0\0")[:2]
    key, value = data[2 : 2 + length], data[2 + length :]
    readers: list[Callable[[], object]] = [
        lambda: (decode.position_key(key), decode.position(value)),
        lambda: (decode.content_key(key), decode.content([value], max(len(value) - 1, 0))),
        lambda: (decode.feed_span(key, value), decode.feed(key, value)),
        lambda: decode.history(key, value),
        lambda: (decode.queue_key(key), decode.queue(value)),
        lambda: decode.cold(value),
        lambda: decode.outgoing_stream(value),
        lambda: decode.incoming_stream(key, value),
    ]
    with contextlib.suppress(decode.DecodeError):
        readers[kind % len(readers)]()
    if key:
        load_natively(key, value)


def run_random(seconds: float, seed: int) -> int:
    """Mutates until the time is over; returns the number of inputs."""
    rng, corpus = random.Random(seed), seeds()
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(200):
            one_input(mutate(rng, rng.choice(corpus)))
        count += 200
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", help="directory of the corpus and of findings (default: a new one)")
    parser.add_argument("--native", help="a tables extension module to test instead of the installed one")
    options = parser.parse_args()
    if options.native:
        fuzz_native.load("tables", options.native)
    try:
        import atheris
    except ImportError:
        print(f"{run_random(options.seconds, options.seed)} inputs without a finding")
        return
    work = Path(options.work or tempfile.mkdtemp(prefix="fuzz-store-"))
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for index, good in enumerate(seeds()):
        (corpus / f"seed-{index}").write_bytes(good)
    for name, function in vars(decode).items():
        if isinstance(function, FunctionType) and function.__module__ == decode.__name__:
            setattr(decode, name, atheris.instrument_func(function))
    limits = ["-max_len=1024", f"-max_total_time={options.seconds}", "-rss_limit_mb=1024"]
    flags = [*limits, f"-seed={options.seed + 1}", f"-artifact_prefix={work}/"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

"""The batch writer on a real disk: one commit with the two puts of each message, and its sync."""

from __future__ import annotations

import select
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bench.micro import MESSAGES
from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbWriter
from msmq_fast.store.schema import CONTENT_KEY, POSITION, Table

pytestmark = pytest.mark.benchmark(group=f"batch, {MESSAGES} messages and one sync")


def _wait(writer: LmdbWriter) -> None:
    poll = select.poll()
    poll.register(writer.fileno(), select.POLLIN)
    while writer.busy:
        poll.poll(1_000)
        writer.complete()


@pytest.mark.parametrize("body", [256, 1_024, 4_096, 65_536])
def test_commit(benchmark: Any, tmp_path: Path, body: int) -> None:
    tables = LmdbTables(tmp_path, map_size=1 << 34)
    writer = LmdbWriter(tables)
    packet, position, numbers = bytes(body), bytes(POSITION.size), count(1)

    def commit() -> None:
        for _ in range(MESSAGES):
            number = next(numbers)
            writer.begin_unit()
            writer.put_content(number, packet)
            writer.put_record(Table.POSITION, (1).to_bytes(4, "big") + number.to_bytes(8, "big"), position)
            writer.keep_unit()
        writer.submit()
        _wait(writer)

    benchmark.pedantic(commit, rounds=60, warmup_rounds=5)
    assert not writer.failed
    assert CONTENT_KEY.size == 10
    writer.close()
    tables.close()

"""A reader in bulk keeps no page of the store from being used again, however long its client takes."""

from __future__ import annotations

from pathlib import Path

from msmq_fast._native.columnevents import EventEncoder
from msmq_fast._native.columnrows import scan
from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast.bulk.reader import CLASSES, KINDS, TRANSPORTS
from tests.support.bulk.packets import plain
from tests.support.worlds.cores import EVER, OF_MESSAGES, Core, dicts

COUNT = 300


def turn_over(core: Core, keys: list[int]) -> list[int]:
    """Other messages in the place of these."""
    fresh = core.put(*(plain(bytes(2000)) for _ in range(COUNT)))
    for key in keys:
        assert core.queue.remove(key)
    core.settle()
    return fresh


def pages(core: Core) -> int:
    assert isinstance(core.tables, LmdbTables)
    return core.tables.space()["pages"]


def test_a_stream_that_rests_does_not_let_the_file_grow(tmp_path: Path) -> None:
    core = Core(tmp_path / "store")
    core.ledger.feed = False
    keys: list[int] = []
    for _ in range(3):
        keys = turn_over(core, keys)
    before = pages(core)
    encoder = core.encoder()
    columns = [("feed_seq", "int64")]
    events = EventEncoder(core.contents, columns, {}, CLASSES, KINDS, TRANSPORTS, lambda _: None)
    for _ in range(6):
        rows = scan(core.queue, 0, EVER, 100, 1 << 20)
        assert len(dicts(OF_MESSAGES, encoder.encode(rows))) == 100
        events.encode(1, EVER, 100)
        keys = turn_over(core, keys)
    assert pages(core) <= before * 1.1
    core.close()

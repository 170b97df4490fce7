"""The tables of a store: their numbers and names are the same in Python and in native code."""

from pathlib import Path

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.tables import DATABASES
from msmq_fast.store.schema import Table


def test_every_table_keeps_its_name_and_number() -> None:
    old = [
        b"meta",
        b"position",
        b"content",
        b"feed",
        b"history",
        b"queue",
        b"queue_index",
        b"directory",
        b"sequence",
    ]
    assert list(DATABASES[: len(old)]) == old
    assert [table.value for table in Table] == list(range(len(DATABASES)))


def test_a_new_store_has_every_table(tmp_path: Path) -> None:
    tables = LmdbTables(tmp_path)
    try:
        assert [tables.last(table) for table in Table] == [None] * len(Table)
    finally:
        tables.close()

"""The tables of a store: their numbers and names are the same in Python and in native code."""

from pathlib import Path

import pytest

from msmq_fast._native import lmdbstore
from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.tables import DATABASES, StoreError
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


def test_a_store_of_a_version_before_a_table_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backups and the reader of data directories open it before a server has made the table."""
    LmdbTables(tmp_path).close()
    monkeypatch.setattr(lmdbstore, "DATABASES", (*DATABASES[:-1], b"later"))
    monkeypatch.setattr(lmdbstore, "FIRST_TABLES", len(Table))
    with pytest.raises(StoreError, match="cannot open the store"):
        LmdbTables(tmp_path, read_only=True)  # one that every store has is missing: this is no store
    monkeypatch.setattr(lmdbstore, "FIRST_TABLES", len(Table) - 1)
    tables = LmdbTables(tmp_path, read_only=True)
    later = len(Table) - 1
    try:
        assert tables.get(later, b"key") is None
        assert tables.scan(later) == []
        assert tables.last(later) is None
        assert tables.count(later) == 0
        assert tables.space()["tables"]["later"] == {"entries": 0, "pages": 0}
        assert tables.space()["page_size"] > 0
    finally:
        tables.close()
    LmdbTables(tmp_path).close()  # a server makes the table
    tables = LmdbTables(tmp_path, read_only=True)
    try:
        assert tables.scan(later) == []
    finally:
        tables.close()

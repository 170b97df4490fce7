"""Upgrades an older store to the current schema, one version at a time; each step and its new version number
are one commit.

Version 0 (before the first release) had no incarnation and no time stamp of transactional sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmq_fast._native.batch import Writer
from msmq_fast._native.tables import Tables
from msmq_fast.store import records
from msmq_fast.store.errors import StoreVersionError
from msmq_fast.store.meta import read_meta
from msmq_fast.store.schema import SCHEMA_VERSION, MetaName, Table


def _from_0(tables: Tables, writer: Writer, now_s: int) -> None:
    writer.put_record(Table.META, MetaName.INCARNATION, records.cold(1))
    writer.put_record(Table.META, MetaName.TX_TIMESTAMP, records.cold(now_s))


STEPS: Final[dict[int, Callable[[Tables, Writer, int], None]]] = {0: _from_0}


def upgrade(tables: Tables, writer: Writer, now_s: int, commit: Callable[[], None]) -> int:
    """Runs the upgrade steps that the store still needs. Returns the schema version that the store had
    before. Raises StoreVersionError if the store is newer.
    """
    found = read_meta(tables, MetaName.SCHEMA, SCHEMA_VERSION)
    if not isinstance(found, int) or not 0 <= found <= SCHEMA_VERSION:
        raise StoreVersionError(f"the store has schema version {found}; known are 0 to {SCHEMA_VERSION}")
    for version in range(found, SCHEMA_VERSION):
        with writer.unit():
            STEPS[version](tables, writer, now_s)
            writer.put_record(Table.META, MetaName.SCHEMA, records.cold(version + 1))
        commit()
    return found

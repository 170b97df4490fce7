"""Changes a store that no server has open, for restoring and compacting. Renews the identity in the store, so
that the next start does not take the changed store for a copy.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msmq_fast._native.batch import Writer
from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbWriter
from msmq_fast._native.tables import Tables
from msmq_fast.store import decode, records
from msmq_fast.store.errors import StoreError, status_text
from msmq_fast.store.identity import identity_of
from msmq_fast.store.schema import MetaName, Table


@contextmanager
def edit_store(directory: Path) -> Iterator[tuple[Tables, Writer]]:
    """Opens the store in `directory`. The writes made inside the context are one commit, which is durable
    when the context ends. Raises StoreError.

    The store must be a copy without a redo log. Its data file may be renamed afterwards, but not copied,
    because the identity that is written contains its inode.
    """
    tables = LmdbTables(directory, settled=True)
    try:
        writer = LmdbWriter(tables)
        ended: list[int] = []
        try:
            yield tables, writer
            stored = tables.get(Table.META, MetaName.IDENTITY)
            before = decode.cold(stored) if stored is not None else None
            token = before[-1] if isinstance(before, list) and before else ""
            writer.put_record(
                Table.META, MetaName.IDENTITY, records.cold(identity_of(directory, token).stored())
            )
            writer.when_durable(ended.append)
            writer.flush()
            while not ended:
                select.select([writer.fileno()], [], [])
                writer.complete()
        finally:
            writer.close()
        if ended[0]:
            raise StoreError(f"cannot write the store in {directory}: {status_text(ended[0])}", ended[0])
    finally:
        tables.close()

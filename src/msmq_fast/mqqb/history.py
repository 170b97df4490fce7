"""The stored duplicate history (MS-MQQB 3.1.1.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmq_fast._native.history import DuplicateHistory
from msmq_fast.store.schema import MetaName
from msmq_fast.store.store import Store

__all__ = ["load_history"]

_SEED_BYTES: Final = 16


def load_history(store: Store, random_bytes: Callable[[int], bytes]) -> DuplicateHistory:
    """Load the identifiers of messages that were accepted before the last stop.

    Blocks until the seed of a new store is durable. A store without a seed was written by an earlier version:
    its entries hold identifiers only, and every message with such an identifier counts as a duplicate until
    the entry expires.
    """
    seed = store.meta(MetaName.HISTORY_SEED)
    known = isinstance(seed, bytes) and len(seed) == _SEED_BYTES
    if not known:
        seed = random_bytes(_SEED_BYTES)
        with store.unit():
            store.put_meta(MetaName.HISTORY_SEED, seed)
        store.commit()
    history = DuplicateHistory(seed=seed)
    for item in store.load_history():
        history.add(
            item.source + item.ordinal.to_bytes(4, "little"),
            item.time_s,
            fingerprint=item.fingerprint if known else 0,
            origin=history.origin(item.source),
        )
    return history

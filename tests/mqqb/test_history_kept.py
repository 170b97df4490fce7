"""The duplicate history over restarts, of stores of this version and of the one before."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from msmq_fast._native.history import DURABLE, NEW, DuplicateHistory
from msmq_fast.mqqb.history import load_history
from msmq_fast.store.decode import HistoryItem
from msmq_fast.store.schema import MetaName, Table
from msmq_fast.store.store import Store
from tests.support.mqqb import wire
from tests.support.worlds import golden_store as make
from tests.support.worlds.hosts import Host
from tests.support.worlds.stores import history_entry, open_store

_PACKET = wire.message(make.ITEM.ordinal)
GOLDEN = Path(__file__).parent.parent / "store" / "golden"


def check(history: DuplicateHistory, item: HistoryItem, fingerprint: int) -> int:
    return history.check(item.source + item.ordinal.to_bytes(4, "little"), item.time_s, fingerprint)


@pytest.mark.rule("KV-11", "SR-130", "SR-110")
def test_messages_that_were_taken_before_a_restart_are_known_after_it(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    first = load_history(store, Random(1).randbytes)
    packet = first.fingerprint(_PACKET)
    store.writer.add_entry(Table.HISTORY, history_entry(make.ITEM._replace(fingerprint=packet)))
    store.close()
    store = open_store(tmp_path)
    again = load_history(store, Random(2).randbytes)
    assert again.fingerprint(_PACKET) == packet, "the seed is kept with the store"
    assert check(again, make.ITEM, packet) == DURABLE
    assert check(again, make.ITEM, packet ^ 1) == NEW
    store.close()


@pytest.mark.rule("QB-080", "KV-11")
def test_an_entry_has_the_identifier_of_its_message_and_the_time_in_seconds() -> None:
    store = Store.in_memory(now_s=1, random=Random(1))
    host = Host(tables=store.tables, history=load_history(store, Random(1).randbytes))
    host.opened().receive(wire.message(7, recoverable=True), 101.0)
    host.commit()
    (item,) = store.load_history()
    assert (item.source, item.ordinal, item.time_s) == (wire.PEER.bytes_le, 7, host.ledger.now_s)
    assert host.ledger.now_s == 2_000


def test_the_history_of_an_older_store_stands_for_any_content(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "store-1" / "data.mdb", tmp_path)
    store = open_store(tmp_path)
    assert store.meta(MetaName.HISTORY_SEED) is None
    history = load_history(store, Random(1).randbytes)
    assert check(history, make.ITEM, 77) == DURABLE
    # What comes from now on has fingerprints, in records of the same table.
    marked = make.ITEM._replace(ordinal=100, fingerprint=78)
    store.writer.add_entry(Table.HISTORY, history_entry(marked))
    store.close()
    store = open_store(tmp_path)
    history = load_history(store, Random(1).randbytes)
    assert check(history, make.ITEM, 77) == DURABLE
    assert check(history, marked, 78) == DURABLE
    assert check(history, marked, 79) == NEW
    store.close()


def test_a_seed_that_is_damaged_is_replaced_and_nothing_comes_twice() -> None:
    store = Store.in_memory(now_s=1, random=Random(1))
    with store.unit():
        store.put_meta(MetaName.HISTORY_SEED, b"short")
        store.writer.add_entry(Table.HISTORY, history_entry(make.ITEM._replace(fingerprint=78)))
    store.commit()
    history = load_history(store, Random(1).randbytes)
    assert len(store.meta(MetaName.HISTORY_SEED)) == 16
    assert check(history, make.ITEM, 12345) == DURABLE

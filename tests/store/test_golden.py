"""Stores that earlier versions wrote, under the queue manager of today."""

from __future__ import annotations

import random
import select
import shutil
from pathlib import Path

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from msmq_fast.qm.access import Access
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.outgoing import OutgoingState
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.store.schema import LOGGED_SCHEMA_VERSION, MetaName
from msmq_fast.store.store import Store
from tests.support.worlds.golden_store import Clock
from tests.support.worlds.stores import crash, open_store

GOLDEN = Path(__file__).parent / "golden"


def _turn(store: Store, manager: QueueManager) -> None:
    manager.tick()
    manager.before_submit()
    store.commit()
    while select.select([store.reader.fileno()], [], [], 0.05)[0]:  # type: ignore[attr-defined]
        store.reader.complete()
        manager.before_submit()
        store.commit()


@pytest.mark.rule("REC-01", "REC-03", "REC-04", "KV-06")
@pytest.mark.parametrize("version", [0, 1])
def test_a_store_of_any_version_serves(tmp_path: Path, version: int) -> None:
    shutil.copy(GOLDEN / f"managed-{version}" / "data.mdb", tmp_path)
    store = open_store(tmp_path, now_s=1_700_000_500)
    assert store.meta(MetaName.SCHEMA) == LOGGED_SCHEMA_VERSION
    assert store.incarnation == 1 + version, "a copy, which version 0 could not tell"
    assert store.tx_timestamp >= 1_700_000_000
    settings = QueueManagerSettings(computer_name="GOLDEN")
    manager = QueueManager(store, settings, Clock(), random.Random(5))
    manager.start()
    assert not manager.damage
    orders = manager.find("orders")
    assert (orders.label, orders.properties.quota_kb, orders.properties.journaling) == (
        "Aufträge",
        5000,
        True,
    )
    assert manager.find("taken").properties.authenticated
    (outgoing,) = manager.outgoing()
    assert (outgoing.outgoing_state, outgoing.messages) == (OutgoingState.ON_HOLD, 1)
    assert (orders.messages, manager.find("taken").messages) == (4, 3)
    got: list[Received] = []
    for name in ("orders", "taken"):
        manager.open(name, Access.RECEIVE).subscribe(got.extend, 10, acknowledge=False)
    for _ in range(3):
        _turn(store, manager)
    bodies = [Message.from_packet(message.packet).body[:1] for message in got]
    assert bodies == [b"3", b"2", b"1", b"0", b"2", b"1", b"0"]
    highest = max(message.arrival_seq for message in got)
    sent = manager.open("orders", Access.SEND).send(Message(body=b"new", delivery=1))
    store.commit()
    assert sent.result().arrival_seq > highest
    crash(store)
    store = open_store(tmp_path, seed=1)
    assert store.incarnation == 1 + version
    crash(store)

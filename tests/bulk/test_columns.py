"""Messages as columns, beside the model over the codec of packet/."""

from __future__ import annotations

import os
import random
import threading
from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msmq_fast._native.columnmessages import MessageEncoder
from msmq_fast._native.columnrows import pick, scan
from msmq_fast._native.columnstore import Contents, stored
from msmq_fast._native.moving import move
from msmq_fast._native.queue import QueueCore
from msmq_fast.bulk.reader import CLASSES
from msmq_fast.protocol.columns import DELIVERY_SEQUENCE, MESSAGE_COLUMNS, Column
from msmq_fast.store.decode import POSITION_KEY, WHOLE_BYTES
from msmq_fast.store.schema import Table
from tests.support.bulk import model
from tests.support.bulk.packets import packets, plain
from tests.support.worlds.cores import CONSTANTS, EVER, NOW_US, OF_MESSAGES, Core, dicts


@pytest.fixture(params=["disk", "cache", "memory"])
def core(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Core]:
    """The packets come from the store, from memory, or from a store in memory."""
    core = Core(
        None if request.param == "memory" else tmp_path / "store", cache=(request.param == "cache") << 30
    )
    yield core
    core.close()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(packets(), min_size=1, max_size=6))
def test_every_column_says_what_the_packet_says(core: Core, sent: list[bytes]) -> None:
    keys = core.put(*sent)
    expected = [model.row(key, packet, arrived_us=NOW_US) for key, packet in zip(keys, sent, strict=True)]
    assert core.rows() == expected
    core.queue.purge()
    while core.ledger.pending_deletes:
        core.ledger.reap()
        core.settle()


def test_the_columns_of_the_queue_are_the_same_in_all_rows(core: Core) -> None:
    core.put(plain(b"a"), plain(b"b"))
    found = scan(core.queue, 0, EVER, 10, 1 << 20)
    rows = dicts(MESSAGE_COLUMNS, core.encoder(MESSAGE_COLUMNS, **CONSTANTS).encode(found))
    assert [{name: row[name] for name in CONSTANTS} for row in rows] == [CONSTANTS, CONSTANTS]
    assert [row["body"] for row in rows] == [b"a", b"b"]


def test_bodies_of_every_length_around_the_chunks(core: Core) -> None:
    head = len(plain())
    sizes = [0, 1, *(WHOLE_BYTES - head + d for d in (-1, 0, 1, 2)), 2 * WHOLE_BYTES, 4_000_000]
    sent = [plain(random.Random(size).randbytes(size)) for size in sizes]
    core.put(*sent)
    assert [row["raw_packet"] for row in core.rows()] == sent


def test_counts_and_reasons_of_a_message_with_a_history(core: Core) -> None:
    (key,) = core.put(plain(b"x"))
    assert core.queue.claim(key, 77)
    rows = dicts(OF_MESSAGES, core.encoder().encode(scan(core.queue, 0, EVER, 10, 1 << 20), {77: "nightly"}))
    assert rows == [model.row(key, plain(b"x"), arrived_us=NOW_US, holder="nightly")]
    rows = dicts(OF_MESSAGES, core.encoder().encode(scan(core.queue, 0, EVER, 10, 1 << 20), {78: "other"}))
    assert rows[0]["lease_holder"] is None


def test_when_a_message_was_moved(core: Core) -> None:
    """It stands in the position record only, whether the packet is in memory or not."""
    stays, goes, express = core.put(plain(b"stays"), plain(b"goes"), plain(b"express", recoverable=False))
    target = QueueCore(core.ledger, 21, parent=core.queue)
    core.ledger.tick(NOW_US + 7_000_000)
    for key in (goes, express):
        assert move(core.queue, key, target)
    core.settle()
    rows = dicts(OF_MESSAGES, core.encoder().encode(scan(target, 0, EVER, 10, 1 << 20)))
    assert [(row["body"], row["move_count"]) for row in rows] == [(b"goes", 1), (b"express", 1)]
    assert [row["last_move_time"] for row in rows] == [model.seconds(1_700_000_007), None]
    assert [row["lookup_id"] for row in core.rows()] == [stays]


def test_a_message_that_is_removed_between_look_and_read_is_passed_over(tmp_path: Path) -> None:
    core = Core(tmp_path / "store")
    keys = core.put(*(plain(bytes([n])) for n in range(5)))
    found = scan(core.queue, 0, EVER, 10, 1 << 20)
    for key in keys[1:3]:
        assert core.queue.remove(key)
    core.settle()
    encoded = core.encoder().encode(found)
    assert [row["body"] for row in dicts(OF_MESSAGES, encoded)] == [b"\0", b"\3", b"\4"]
    assert (encoded.gone, encoded.damaged) == (2, 0)
    core.close()


def test_one_that_is_in_memory_is_read_although_it_was_removed(tmp_path: Path) -> None:
    core = Core(tmp_path / "store", cache=1 << 20)
    (key,) = core.put(plain(b"still here"))
    found = scan(core.queue, 0, EVER, 10, 1 << 20)
    assert core.queue.remove(key)
    core.settle()
    assert [row["body"] for row in dicts(OF_MESSAGES, core.encoder().encode(found))] == [b"still here"]
    core.close()


def spoil(core: Core, key: int, value: bytes) -> None:
    """Other bytes in the place of a stored packet."""
    content = (key & (EVER - 1)).to_bytes(8, "big") + bytes(2)
    core.writer.put_record(Table.CONTENT, content, value)
    core.settle()


DAMAGES = [("disk", damage) for damage in ("short", "version", "packet", "empty")]
DAMAGES += [("memory", "short"), ("memory", "packet")]  # it has no versions


@pytest.mark.parametrize(("place", "damage"), DAMAGES)
def test_a_damaged_packet_harms_no_other(tmp_path: Path, place: str, damage: str) -> None:
    core = Core(tmp_path / "store" if place == "disk" else None)
    packet = plain(b"body")
    keys = core.put(packet, packet, packet)
    wrong = {
        "short": b"\1" + packet[:-4],
        "version": b"\2" + packet,
        "packet": b"\1" + b"\xff" * len(packet),
        "empty": b"\1",
    }
    spoil(core, keys[1], wrong[damage])
    found = scan(core.queue, 0, EVER, 10, 1 << 20)
    encoded = core.encoder().encode(found)
    assert [row["lookup_id"] for row in dicts(OF_MESSAGES, encoded)] == [keys[0], keys[2]]
    assert (encoded.gone, encoded.damaged) == (0, 1)
    corrupt = (*OF_MESSAGES, Column("_corrupt", "binary"))
    rows = dicts(corrupt, core.encoder(corrupt).encode(found))
    assert [row["lookup_id"] for row in rows] == keys
    assert [row["body"] for row in rows] == [b"body", None, b"body"]
    assert rows[1]["message_id"] is None
    assert rows[0]["_corrupt"] is None
    assert rows[1]["_corrupt"] == (b"\xff" * len(packet) if damage == "packet" else b"")
    core.close()


def test_chosen_messages_come_in_the_order_asked_for(core: Core) -> None:
    keys = core.put(*(plain(bytes([n]), priority=n) for n in range(6)))
    wanted = [keys[4], 12345, keys[0], keys[2]]
    columns = (DELIVERY_SEQUENCE, *OF_MESSAGES)
    found = pick(core.queue, array("Q", wanted), array("Q", [10, 11, 12, 13]), 0, 100, 1 << 20)
    rows = dicts(columns, core.encoder(columns).encode(found))
    assert [(row["delivery_seq"], row["body"]) for row in rows] == [(10, b"\4"), (12, b"\0"), (13, b"\2")]
    assert (found.gone, found.finished, found.next) == (1, True, 4)
    found = pick(core.queue, array("Q", wanted), array("Q", [10, 11, 12, 13]), 0, 1, 1 << 20)
    assert (len(found), found.next, found.finished) == (1, 1, False)
    found = pick(core.queue, array("Q", wanted), array("Q", [10, 11, 12, 13]), 1, 9, 1)
    assert (len(found), found.next, found.gone) == (1, 3, 1)
    with pytest.raises(ValueError, match="delivery number"):
        pick(core.queue, array("Q", wanted), array("Q", [1]), 0, 1, 1)


def test_a_store_is_read_without_a_server(tmp_path: Path) -> None:
    core = Core(tmp_path / "store")
    sent = [plain(bytes([n]) * 1000, priority=n % 8, ordinal=n) for n in range(50)]
    keys = core.put(*sent)
    core.writer.put_record(Table.POSITION, POSITION_KEY.pack(20, keys[7]), b"\x01nonsense")
    core.settle()
    columns = (*OF_MESSAGES, Column("store_key", "binary"), Column("state", "string"))
    expected = {
        key: model.row(key, packet, arrived_us=NOW_US)
        | {"store_key": POSITION_KEY.pack(20, key), "state": "available"}
        for key, packet in zip(keys, sent, strict=True)
        if key != keys[7]
    }
    rows, damaged, position = [], [], 0
    while True:
        found = stored(core.tables, 20, position, (1 << 64) - 1, 7, 5000)
        assert len(found) <= 5
        rows += dicts(columns, core.encoder(columns).encode(found))
        damaged += found.damaged
        position = found.next
        if found.finished:
            break
    assert rows == [expected[key] for key in sorted(expected)]
    assert damaged == [POSITION_KEY.pack(20, keys[7])]
    core.close()


def test_names_of_columns_are_checked(core: Core) -> None:
    with pytest.raises(ValueError, match="no column 'labels'"):
        MessageEncoder(core.contents, [("labels", "string")], {}, {})
    core.contents.close()
    with pytest.raises(Exception, match="closed"):
        core.encoder().encode(scan(core.queue, 0, EVER, 1, 1))


def test_a_reader_in_the_background_is_called_back(tmp_path: Path) -> None:
    core = Core(tmp_path / "store", cache=1 << 30)
    core.put(*[plain(bytes(60_000))] * 500)
    contents = Contents(core.tables, background=True)
    encoder = MessageEncoder(contents, [(c.name, c.kind) for c in OF_MESSAGES], {}, CLASSES)
    policies: set[int] = set()
    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(threading.get_native_id).result()
        while not policies:  # again, should it be over before it is seen
            found = scan(core.queue, 0, EVER, 500, 1 << 30)
            encoding = pool.submit(encoder.encode, found)
            while not encoding.done():
                if os.sched_getscheduler(thread) == os.SCHED_IDLE and contents.boost():
                    policies.add(os.sched_getscheduler(thread))
            assert encoding.result().rows == 500
            assert os.sched_getscheduler(thread) == os.SCHED_OTHER
    contents.close()
    core.close()
    assert policies == {os.SCHED_OTHER}

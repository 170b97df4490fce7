"""Opening, identity, counters, upgrade, damage: the store as its owner sees it."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from msmq_fast.store import decode, records
from msmq_fast.store.errors import StoreError, StoreLockedError, StorePlaceError, StoreVersionError
from msmq_fast.store.identity import Identity, is_copy
from msmq_fast.store.lock import StoreLock
from msmq_fast.store.place import check_place, file_system_of
from msmq_fast.store.schema import LOGGED_SCHEMA_VERSION, SCHEMA_VERSION, MetaName, Table
from msmq_fast.store.store import Store
from tests.support.worlds import stores
from tests.support.worlds.stores import crash, history_entry, open_store, queues_of, reserve_now

pytestmark = pytest.mark.smoke


@pytest.fixture(autouse=True, params=[True, False], ids=["log", "no log"])
def _with_and_without_a_log(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "SMALL", replace(stores.SMALL, log=request.param))


def _schema() -> int:
    """What META says while the store is open."""
    return LOGGED_SCHEMA_VERSION if stores.SMALL.log else SCHEMA_VERSION


@pytest.mark.rule("KV-01")
def test_identity_stays_over_restarts_and_crashes(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    guid = store.guid
    assert (len(guid), store.incarnation, store.was_clean, store.is_copy) == (16, 1, True, False)
    assert (store.meta(MetaName.SCHEMA), store.meta(MetaName.GUID)) == (_schema(), guid)
    crash(store)
    store = open_store(tmp_path, seed=1)
    assert (store.guid, store.incarnation, store.was_clean) == (guid, 1, False)
    store.close()
    store = open_store(tmp_path, seed=2)
    assert (store.guid, store.incarnation, store.was_clean) == (guid, 1, True)
    store.close()


def test_the_guid_is_of_version_4_and_random(tmp_path: Path) -> None:
    stores = [open_store(tmp_path / str(seed), seed=seed) for seed in (1, 2)]
    assert stores[0].guid != stores[1].guid
    for store in stores:
        assert store.guid[7] >> 4 == 4
        assert store.guid[8] >> 6 == 2
        store.close()


@pytest.mark.rule("KV-01")
def test_reserved_numbers_are_never_given_twice(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert reserve_now(store, MetaName.SEQUENCE_HW, 1000) == (0, 1000)
    crash(store)
    store = open_store(tmp_path)
    assert reserve_now(store, MetaName.SEQUENCE_HW, 1000) == (1000, 2000)
    store.close({MetaName.SEQUENCE_HW: 1005})
    store = open_store(tmp_path)
    assert reserve_now(store, MetaName.SEQUENCE_HW, 1000) == (1005, 2005)
    store.close()


def test_a_reservation_counts_when_it_is_durable() -> None:
    store = Store.in_memory(now_s=1, random=random.Random(1))
    told: list[int] = []
    assert store.reserve(b"counter", 10, told.append) == 10
    store.writer.submit()
    assert not told
    store = Store.in_memory(now_s=1, random=random.Random(1), tables=store.writer.crash())  # type: ignore[attr-defined]
    assert reserve_now(store, b"counter", 10) == (0, 10)
    store.reserve(b"counter", 10, told.append)
    store.commit()
    assert told == [0]
    assert store.meta(b"counter") == 20


def test_a_unit_that_raises_leaves_nothing() -> None:
    store = Store.in_memory(now_s=1, random=random.Random(1))

    def fail_half_way() -> None:
        with store.unit() as writer:
            writer.put_record(Table.META, b"half", records.cold(1))
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    store.commit()
    assert store.meta(b"half") is None


def test_a_second_process_is_told_who_holds_the_store(tmp_path: Path) -> None:
    store = open_store(tmp_path, now_s=0)
    code = (
        "import random, sys\nfrom msmq_fast.store.store import Store, StoreOptions\n"
        "options = StoreOptions(force_place=True)\n"
        "try: Store.open(sys.argv[1], now_s=1, random=random.Random(), options=options)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith(
        f"StoreLockedError the store in {tmp_path} is held by process {os.getpid()} (msmq-fast) on "
    )
    assert f"on {socket.gethostname()} since 1970-01-01T00:00:00+00:00" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    with pytest.raises(StoreLockedError):
        open_store(tmp_path)
    store.close()
    open_store(tmp_path).close()


def test_an_unreadable_lock_file_still_locks(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    (tmp_path / "store.lock").write_bytes(b"\xff{")
    with pytest.raises(StoreLockedError, match="held by another process"):
        open_store(tmp_path)
    store.close()


def test_a_copied_store_takes_a_new_incarnation_once(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a", now_s=500)
    first = store.tx_timestamp
    store.close()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    warnings: list[str] = []
    store = open_store(tmp_path / "b", now_s=400, warn=warnings.append)
    assert (store.incarnation, store.is_copy) == (2, True)
    assert store.tx_timestamp > first, "also with a clock that went back"
    assert len(warnings) == 1
    assert "new incarnation" in warnings[0]
    assert store.meta(MetaName.MESSAGE_ID_HW) >= 1 << 30  # far from what the original sends
    store.close()
    for directory, incarnation in (("b", 2), ("a", 1)):
        store = open_store(tmp_path / directory)
        assert store.incarnation == incarnation
        store.close()


def test_an_old_state_put_back_under_the_same_inode_takes_a_new_incarnation(tmp_path: Path) -> None:
    open_store(tmp_path, seed=1).close()
    old = (tmp_path / "data.mdb").read_bytes()
    for seed in (2, 3):
        open_store(tmp_path, seed=seed).close()
    with (tmp_path / "data.mdb").open("r+b") as file:
        file.write(old)
        file.truncate()
    store = open_store(tmp_path, seed=4)
    assert store.incarnation == 2
    store.close()


def test_a_moved_directory_is_no_copy(tmp_path: Path) -> None:
    open_store(tmp_path / "a").close()
    (tmp_path / "a").rename(tmp_path / "b")
    store = open_store(tmp_path / "b", seed=9)
    assert store.incarnation == 1
    store.close()


@pytest.mark.parametrize(
    ("now", "copy"),
    [
        (Identity(1, 2, "m", "new"), False),
        (Identity(9, 2, "m", "new"), True),
        (Identity(1, 2, "container", "new"), False),
        (Identity(1, 9, "m", "new"), False),
        (Identity(1, 9, "other", "new"), True),
    ],
)
def test_what_makes_a_copy(now: Identity, copy: bool) -> None:
    before = Identity(1, 2, "m", "t1").stored()
    assert is_copy(before, now, ["t0", "t1"]) is copy
    assert is_copy(before, now, ["t2", "t3"]) is True
    assert is_copy(before, now, []) is copy
    assert is_copy(None, now, []) is False


def test_version_0_is_upgraded(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    guid = store.guid
    with store.unit() as writer:
        writer.put_record(Table.META, MetaName.SCHEMA, records.cold(0))
        writer.delete_record(Table.META, MetaName.INCARNATION)
        writer.delete_record(Table.META, MetaName.TX_TIMESTAMP)
        writer.delete_record(Table.META, MetaName.IDENTITY)
    store.commit()
    crash(store)
    store = open_store(tmp_path, now_s=77)
    assert (store.guid, store.incarnation, store.tx_timestamp) == (guid, 1, 77)
    assert store.meta(MetaName.SCHEMA) == _schema()
    store.close()


@pytest.mark.rule("REC-01")
@pytest.mark.parametrize("version", [LOGGED_SCHEMA_VERSION + 1, -1, "new"])
def test_a_newer_store_is_refused_and_left_alone(tmp_path: Path, version: object) -> None:
    store = open_store(tmp_path)
    store.put_meta(MetaName.SCHEMA, version)
    store.commit()
    store.tables.settle()  # type: ignore[attr-defined]
    crash(store)
    before = (tmp_path / "data.mdb").read_bytes()
    with pytest.raises(StoreVersionError, match=f"schema version {version}"):
        open_store(tmp_path)
    assert (tmp_path / "data.mdb").read_bytes() == before
    StoreLock(tmp_path).release()


def test_a_damaged_file_is_one_clear_error(tmp_path: Path) -> None:
    tmp_path.joinpath("data.mdb").write_bytes(b"not a store" * 1000)
    with pytest.raises(StoreError, match=r"cannot open the store in .*MDB_INVALID"):
        open_store(tmp_path)
    StoreLock(tmp_path).release()


def test_an_unwritable_place_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorePlaceError, match="cannot create"):
        open_store(tmp_path / "file" / "store")
    with pytest.raises(StorePlaceError, match="cannot write in /proc"):
        StoreLock(Path("/proc"))


def test_a_new_directory_and_its_missing_parents_are_for_their_owner_only(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    path = there / "a" / "b" / "data"
    open_store(path).close()
    made = (path, path.parent, path.parent.parent, there)
    assert [oct(directory.stat().st_mode & 0o777) for directory in made] == ["0o700"] * 3 + ["0o755"]


def test_a_directory_of_another_user_names_the_user_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("msmq_fast.store.lock.os.open", refuse)
    wanted = rf"Permission denied; this process is user {os.geteuid()}, .* chown {os.geteuid()}:.* fsGroup"
    with pytest.raises(StorePlaceError, match=wanted):
        StoreLock(tmp_path)


MOUNTS = """\
21 1 254:0 / / rw,relatime shared:1 - overlay overlay rw
30 21 0:20 / /data rw shared:2 - ext4 /dev/sda rw
31 30 0:21 / /data/remote rw - nfs4 server:/x rw
32 30 0:22 / /data/with\\040space rw - fuse.sshfs x rw
"""


def test_network_and_overlay_file_systems_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path, kind in (
        ("/", "overlay"),
        ("/data", "ext4"),
        ("/data/x/y", "ext4"),
        ("/data/remote/x", "nfs4"),
        ("/data/with space/x", "fuse.sshfs"),
        ("/database", "overlay"),
    ):
        assert file_system_of(Path(path), MOUNTS) == kind
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    monkeypatch.setattr("msmq_fast.store.place.MOUNTS", mounts)
    check_place(Path("/data/x"))
    for path in ("/data/remote", "/data/with space", "/srv"):
        with pytest.raises(StorePlaceError, match="file system"):
            check_place(Path(path))
        check_place(Path(path), force=True)


def test_little_address_space_makes_a_smaller_map_and_one_line(tmp_path: Path) -> None:
    code = (
        "import random, resource, sys\nfrom msmq_fast.store.store import Store, StoreOptions\n"
        "resource.setrlimit(resource.RLIMIT_AS, (40 << 30, 40 << 30))\n"
        "options = StoreOptions(force_place=True)\n"
        "s = Store.open(sys.argv[1], now_s=1, random=random.Random(), warn=print, options=options)\n"
        "print(s.tables.space()['map_size'] >> 30); s.close()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == [
        f"the store in {tmp_path} is limited to 16 GiB: the address space allows no more",
        "16",
    ]


@pytest.mark.rule("KV-11")
def test_history_and_queues_are_loaded(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    items = [decode.HistoryItem(number, bytes([number]) * 16, number, 5) for number in range(1, 8)]
    for item in items:
        store.writer.add_entry(Table.HISTORY, history_entry(item))
        if item.number % 3 == 0:
            store.commit()
    store.writer.put_record(
        Table.QUEUE, decode.ORDINAL_KEY.pack(300), records.cold({"path": "x", "quota": None})
    )
    store.writer.put_record(Table.QUEUE, decode.ORDINAL_KEY.pack(2), records.cold({"path": "y"}))
    store.close()
    store = open_store(tmp_path)
    assert list(store.load_history()) == items
    assert queues_of(store) == [(2, {"path": "y"}), (300, {"path": "x", "quota": None})]
    assert store.trim(Table.HISTORY, 6) == 1
    store.commit()
    assert [item.number for item in store.load_history()] == [4, 5, 6, 7]
    assert store.trim(Table.HISTORY, 100) == 1
    store.commit()
    assert [item.number for item in store.load_history()] == [7], "the newest record carries the numbering on"
    store.close()


def test_the_lock_file_names_the_holder(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    held = json.loads((tmp_path / "store.lock").read_text())
    assert held["pid"] == os.getpid()
    assert set(held) == {"pid", "host", "name", "started", "tokens"}
    store.close()
    assert stores.SMALL.holder == held["name"]

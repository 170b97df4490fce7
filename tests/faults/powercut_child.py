"""A store under a random load: `python powercut_child.py DIRECTORY SEED COMMITS LEDGER LOG-SIZE [N FILE]`.

Adds and removes messages, several units a commit, and writes to LEDGER two JSON lines per commit, before it
and once it is durable: {"done": …, "add": [[id, size], …], "remove": [id, …], "events": number of the last
event}. The body of a message follows from its id and size. With a LOG-SIZE above 0, the store has a redo log,
and an odd SEED brings lone small messages, which are committed on the calling thread. Creates FILE after N
commits.
"""

from __future__ import annotations

import json
import os
import random
import select
import sys

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbWriter
from msmq_fast._native.tables import StoreError
from msmq_fast.store import decode, records
from msmq_fast.store.schema import MetaName, Table

SIZES = (0, 1, 300, 1100, 4000, 9000, 30_000, 70_000, 200_000)
QUEUE = 7


def body(message: int, size: int) -> bytes:
    return random.Random(message).randbytes(size)


def position(message: int, size: int) -> bytes:
    fields = (1, 3, 0, 0, 0, message, size, 0, 0, 0, 0, bytes(16), message, 0, message, 0, 0, 0, 0)
    return records.position(decode.Position(*fields))


def add(writer: LmdbWriter, message: int, size: int) -> int:
    writer.begin_unit()
    writer.put_content(message, body(message, size))
    writer.put_record(1, decode.POSITION_KEY.pack(QUEUE, message), position(message, size))
    event = writer.add_entry(3, message.to_bytes(8, "little") * 7)
    writer.keep_unit()
    return event


def remove(writer: LmdbWriter, message: int, size: int) -> None:
    writer.begin_unit()
    writer.delete_record(1, decode.POSITION_KEY.pack(QUEUE, message))
    writer.delete_content(message, size)
    writer.keep_unit()


def commit(writer: LmdbWriter) -> int:
    statuses: list[int] = []
    writer.when_durable(statuses.append)
    while not statuses:
        if not writer.submit_or_commit():
            select.select([writer.fileno()], [], [])
            writer.complete()
    return statuses[0]


def start_log(tables: LmdbTables, writer: LmdbWriter, size: int) -> None:
    writer.put_record(Table.META, MetaName.SCHEMA, records.cold(1))
    assert commit(writer) == 0
    tables.start_log(size)


def main() -> None:
    directory, seed, commits, ledger_path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    rng = random.Random(seed)
    ledger = os.open(ledger_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    tables = LmdbTables(directory, map_size=1 << 30)
    log_size = int(sys.argv[5])
    lone = log_size > 0 and seed % 2 == 1
    if lone:
        log_size *= 4  # a commit on the calling thread wants room for several large ones
    # What a line names is one commit.
    writer = LmdbWriter(tables, max_bytes=1 << 30, inline_us=1_000_000 if lone else 0)
    if log_size:
        start_log(tables, writer, log_size)
    before = writer.statistics()["batches"]
    present: dict[int, int] = {}
    message = tables.last_content()
    trigger = (int(sys.argv[6]), sys.argv[7]) if len(sys.argv) > 7 else (0, "")
    for nth in range(commits):
        if trigger[0] and nth == trigger[0]:
            os.close(os.open(trigger[1], os.O_CREAT | os.O_WRONLY))
        added, removed, event = [], [], 0
        for _ in range(1 if lone else rng.choice((1, 2, 8, 30))):
            message += 1
            size = rng.choice(SIZES[: 4 if lone else rng.choice((4, 4, 6, 9))])
            event = add(writer, message, size)
            added.append((message, size))
        removals = rng.choice((0, 1) if lone else (0, 1, 10, 40))
        for gone in rng.sample(sorted(present), min(len(present), removals)):
            remove(writer, gone, present.pop(gone))
            removed.append(gone)
        present.update(added)
        entry = {"add": added, "remove": removed, "events": event}
        os.write(ledger, json.dumps({"done": False, **entry}).encode() + b"\n")
        status = commit(writer)
        if status:
            print(f"status {status} failed {writer.failed}", flush=True)
            try:
                add(writer, message + 1, 10)
            except StoreError:
                print("refused", flush=True)
            os._exit(3)
        assert writer.statistics()["batches"] == before + nth + 1
        os.write(ledger, json.dumps({"done": True, **entry}).encode() + b"\n")
        if log_size and rng.random() < 0.1:
            tables.settle()
    inline = writer.statistics()["log"]["inline_commits"]
    assert not lone or commits < 20 or inline > commits // 2, inline
    os._exit(0)


if __name__ == "__main__":
    main()

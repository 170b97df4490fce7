"""A store under a random load: `python powercut_child.py DIRECTORY SEED COMMITS LEDGER [N FILE]`.

Adds and removes messages, several units a commit, and writes to LEDGER two JSON lines per commit, before it
and once it is durable: {"done": …, "add": [[id, size], …], "remove": [id, …], "events": number of the last
event}. The body of a message follows from its id and size. Creates FILE after N commits.
"""

from __future__ import annotations

import json
import os
import random
import select
import sys

from msmq_fast._native.lmdbstore import LmdbTables, LmdbWriter
from msmq_fast._native.tables import StoreError
from msmq_fast.store import decode, records

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


def main() -> None:
    directory, seed, commits, ledger_path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    rng = random.Random(seed)
    ledger = os.open(ledger_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    tables = LmdbTables(directory, map_size=1 << 30)
    writer = LmdbWriter(tables, max_bytes=1 << 30)  # what a line names is one commit
    present: dict[int, int] = {}
    message = tables.last_content()
    trigger = (int(sys.argv[5]), sys.argv[6]) if len(sys.argv) > 6 else (0, "")
    for commit in range(commits):
        if trigger[0] and commit == trigger[0]:
            os.close(os.open(trigger[1], os.O_CREAT | os.O_WRONLY))
        added, removed, event = [], [], 0
        for _ in range(rng.choice((1, 2, 8, 30))):
            message += 1
            size = rng.choice(SIZES[: rng.choice((4, 4, 6, 9))])
            event = add(writer, message, size)
            added.append((message, size))
        for gone in rng.sample(sorted(present), min(len(present), rng.choice((0, 1, 10, 40)))):
            remove(writer, gone, present.pop(gone))
            removed.append(gone)
        present.update(added)
        entry = {"add": added, "remove": removed, "events": event}
        os.write(ledger, json.dumps({"done": False, **entry}).encode() + b"\n")
        statuses: list[int] = []
        writer.when_durable(statuses.append)
        while not statuses:
            writer.submit()
            select.select([writer.fileno()], [], [])
            writer.complete()
        if statuses[0]:
            print(f"status {statuses[0]} failed {writer.failed}", flush=True)
            try:
                add(writer, message + 1, 10)
            except StoreError:
                print("refused", flush=True)
            os._exit(3)
        assert writer.statistics()["batches"] == commit + 1
        os.write(ledger, json.dumps({"done": True, **entry}).encode() + b"\n")
    os._exit(0)


if __name__ == "__main__":
    main()

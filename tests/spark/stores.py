"""Stores with known contents for the reader: written by a queue manager, then stopped."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any
from uuid import UUID

from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.settings import QueueManagerSettings
from tests.support.worlds.golden_store import Clock
from tests.support.worlds.stores import open_store

COMPUTER = "HOST"
SIZES = (0, 1, 100, 1024, 65_000, 70_000, 200_000)


def message(number: int, rng: random.Random) -> Message:
    """Everything that a message can say, in turn."""
    size = SIZES[number % len(SIZES)] if number % 5 == 0 else rng.randrange(300)
    return Message(
        body=rng.randbytes(size),
        label=("", "label", "größe 𝄞", "x" * 249)[number % 4],
        priority=number % 8,
        delivery=Delivery.RECOVERABLE,
        body_type=(0, 8, 0x300, 0x2011, 0xFFFFFFFF)[number % 5],
        app_specific=number * 977 % 2**32,
        extension=rng.randbytes(number % 3 * 5),
        correlation_id=rng.randbytes(20),
        acknowledge=Acknowledge(number % 16),
        journal=Journal(number % 4),
        time_to_reach_queue=0xFFFFFFFF if number % 2 else 1000 + number,
        time_to_be_received=0xFFFFFFFF if number % 3 else 100_000 + number,
        admin_queue=(
            None,
            parse_format_name(r"DIRECT=OS:HOST\private$\taken"),
            parse_format_name(f"PRIVATE={UUID(int=77)}\\0000000a"),
            parse_format_name(f"PUBLIC={UUID(int=78)}"),
        )[number % 4],
        response_queue=(None, parse_format_name(r"DIRECT=TCP:10.1.1.1\private$\größe".replace("öß", "os")))[
            number % 2
        ],
        trace=number % 7 == 0,
        connector_type=UUID(int=5) if number % 11 == 0 else None,
        security=SecurityHeader(sender_id_type=2, sender_id=UUID(int=9).bytes_le, certificate=b"cert")
        if number % 6 == 0
        else None,
        destinations=(
            parse_format_name(f"PUBLIC={UUID(int=79)}"),
            parse_format_name(r"DIRECT=OS:a\private$\b"),
        )
        if number % 9 == 0
        else (),
    )


class Keeper:
    """A queue manager over a store in a directory, driven by hand."""

    def __init__(self, directory: Path, seed: int = 5) -> None:
        self.store = open_store(directory, now_s=1_700_000_000)
        settings = QueueManagerSettings(computer_name=COMPUTER)
        self.manager = QueueManager(self.store, settings, Clock(), random.Random(seed))
        self.manager.start()
        self.settle()

    def settle(self) -> None:
        """Everything that was begun is durable."""
        for _ in range(3):
            self.manager.tick()
            self.manager.before_submit()
            self.store.commit()

    def queue(self, name: str, **properties: Any) -> None:
        self.manager.create_queue(name, **properties)
        self.settle()

    def open(self, name: str, access: Access = Access.SEND) -> OpenQueue:
        return self.manager.open(name, access)

    def fill(self, name: str, count: int, seed: int = 1) -> None:
        """Messages of every sort."""
        rng, handle = random.Random(seed), self.open(name)
        for number in range(count):
            handle.send(message(number, rng))
            if number % 50 == 49:
                self.settle()
        handle.close()
        self.settle()

    def close(self) -> None:
        """The store is stopped."""
        self.manager.stop()
        self.settle()
        self.store.close()


def damage(directory: Path, table: str, key: bytes, value: bytes | None) -> None:
    """Write (or delete) one record behind everybody's back."""
    import lmdb

    with lmdb.open(str(directory), max_dbs=10, map_size=1 << 30) as environment:
        database = environment.open_db(table.encode())
        with environment.begin(database, write=True) as transaction:
            if value is None:
                transaction.delete(key)
            else:
                transaction.put(key, value)


def records(directory: Path, table: str) -> dict[bytes, bytes]:
    """All records of a table."""
    import lmdb

    with lmdb.open(str(directory), max_dbs=10, readonly=True, lock=False) as environment:
        database = environment.open_db(table.encode(), create=False)
        with environment.begin(database) as transaction:
            return {bytes(key): bytes(value) for key, value in transaction.cursor()}


def position_key(ordinal: int, lookup_id: int) -> bytes:
    return struct.pack(">IQ", ordinal, lookup_id)

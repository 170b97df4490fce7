"""Captured conversations and the rows that the source makes of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from msmq_fast.spark.pcap.tables import Scan, read
from tests.spark import traffic
from tests.spark.traffic import Talk

PORTS = frozenset((1801, 3527))


def rows(*files: Path, table: str = "frames", **options: Any) -> list[dict[str, Any]]:
    """All rows of a table, put together from `shares` shares."""
    shares = options.pop("shares", 1)
    found: list[dict[str, Any]] = []
    for share in range(shares):
        scan = Scan(table, tuple(map(str, files)), PORTS, share=share, shares=shares, **options)
        for batch in read(scan):
            assert batch.num_rows
            found += batch.to_pylist()
    return found


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [row["packet_type"] for row in found]


def conversation(count: int, talk: Talk | None = None, *, size: int = 900) -> Talk:
    """A whole session with `count` messages, each acknowledged."""
    talk = (talk or Talk()).open()
    asks, answers = traffic.opening()
    talk.say(asks[:572]).say(answers[:572], 1).say(asks[572:]).say(answers[572:], 1)
    rng = random.Random(count)
    for number in range(1, count + 1):
        talk.say(traffic.message(number, rng.randbytes(size), session=number % 3 == 0))
        if number % 8 == 0:
            talk.say(traffic.acknowledgment(number), 1)
    return talk.close()

"""Cutting the stream, finding the fields of a message, building one."""

from __future__ import annotations

from typing import Any

import pytest

from bench.micro import MESSAGES
from bench.packets import user_message
from msmq_fast._native.framing import parse
from msmq_fast._native.packetbuild import build_user_message
from msmq_fast._native.scanner import PacketScanner

pytestmark = pytest.mark.benchmark(group=f"framing, {MESSAGES} messages")

BODY = bytes(1024)
PACKET = user_message("TCP:127.0.0.1\\private$\\bench", BODY, recoverable=True)
NAME = PACKET[64 : 64 + 2 + int.from_bytes(PACKET[64:66], "little")]


def test_scan(benchmark: Any) -> None:
    scanner, stream = PacketScanner(), PACKET * MESSAGES

    def scan() -> int:
        scanner.feed(stream)
        found = 0
        while scanner.take() is not None:
            found += 1
        return found

    assert benchmark(scan) == MESSAGES


def test_parse(benchmark: Any) -> None:
    def parse_all() -> int:
        return sum(parse(PACKET).body_length for _ in range(MESSAGES))

    assert benchmark(parse_all) == MESSAGES * len(BODY)


def test_build(benchmark: Any) -> None:
    name = NAME + bytes(-len(NAME) % 4)

    def build() -> bytes:
        for number in range(MESSAGES):
            packet = build_user_message(name, body=BODY, delivery=1, message_id=number)
        return packet

    assert bytes(parse(benchmark(build)).body) == BODY

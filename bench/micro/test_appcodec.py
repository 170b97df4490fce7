"""Application frames to stored packets and back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import msgpack
import pytest

from bench.micro import MESSAGES
from msmq_fast._native.appcodec import PacketBuilder
from msmq_fast._native.appencode import Encoder
from msmq_fast.packet.fields import destination_field
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.replies import ReplyNames

pytestmark = pytest.mark.benchmark(group=f"appcodec, {MESSAGES} messages")

SOURCE, NOBODY = UUID("4f1d3c2b-8a6e-4d4f-9c01-0203040506ff"), UUID(int=0)


def _builder() -> PacketBuilder:
    field = destination_field(parse_format_name(r"DIRECT=OS:here\private$\bench"))
    names = ReplyNames("here", SOURCE, NOBODY)
    return PacketBuilder(SOURCE.bytes_le, NOBODY.bytes_le, field.kind, field.wire, names)


def _payload(body: int) -> bytes:
    packed: bytes = msgpack.packb([1, 0, [[bytes(body), "", 1]] * MESSAGES])
    return packed


@pytest.mark.parametrize("body", [0, 1_024, 4_096])
def test_send_to_packets(benchmark: Any, body: int) -> None:
    builder, payload = _builder(), _payload(body)
    assert len(benchmark(builder.packets, payload, 1, 1_700_000_000)) == MESSAGES


@pytest.mark.parametrize("body", [0, 1_024, 4_096])
def test_packets_to_delivery(benchmark: Any, body: int) -> None:
    encoder = Encoder()
    packets = _builder().packets(_payload(body), 1, 1_700_000_000)
    stored = [
        SimpleNamespace(
            packet=packet, lookup_id=i, arrival_seq=i, arrived_time=1_700_000_000, abort_count=0, move_count=0
        )
        for i, packet in enumerate(packets)
    ]
    parts = benchmark(encoder.delivery, 6, 1, stored, 1 << 20)
    assert sum(len(part) for part in parts) > MESSAGES * body

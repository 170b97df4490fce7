"""The generator's own encoder gives the published bytes: what it sends are real packets."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest

from bench.packets import (
    MAX_PACKET,
    connection_parameters,
    establish_connection,
    session_ack,
    user_message,
)
from msmq_fast._native import framing

pytestmark = pytest.mark.smoke

CLIENT = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
SERVER = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
SID = bytes.fromhex("010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000")


@pytest.fixture(scope="module")
def published() -> dict[str, bytes]:
    """The published frames, by their names."""
    path = Path(__file__).parents[1] / "interop" / "vectors" / "mqqb-section4.json"
    return {frame["name"]: bytes.fromhex(frame["hex"]) for frame in json.loads(path.read_text())}


def test_establish_connection_is_the_published_frame_3(published: dict[str, bytes]) -> None:
    packet = establish_connection(CLIENT, SERVER, 501140046, reserved=0xC0)
    assert packet == published["frame3_establish_connection_request"]


def test_connection_parameters_are_the_published_frame_5(published: dict[str, bytes]) -> None:
    assert (
        connection_parameters(1496, 120000, reserved=0xC0)
        == published["frame5_connection_parameters_request"]
    )


def test_session_ack_is_the_published_frame_8(published: dict[str, bytes]) -> None:
    assert session_ack(1, reserved=0xCD) == published["frame8_session_ack"]


def test_user_message_is_the_published_frame_7_as_far_as_it_is_printed(published: dict[str, bytes]) -> None:
    packet = user_message(
        "OS:a04bm02\\q",
        "a".encode("utf-16-le") * 1000,
        recoverable=False,
        source=CLIENT,
        message_id=2286,
        sent_time=0x524F494C,
        label="mqsender label",
        body_type=8,
        acknowledge=15,
        time_to_reach_queue=345600,
        sid=SID,
        hash_algorithm=0x8004,
        encryption_algorithm=0x6801,
    )
    frame = published["frame7_user_message_express"]
    assert len(packet) == 2224
    assert packet[: len(frame)] == frame


@pytest.mark.parametrize("body", [0, 1, 2, 3, 4, 256, 1024, 65536, 1 << 20])
@pytest.mark.parametrize("recoverable", [False, True])
def test_the_server_reads_what_the_generator_writes(body: int, recoverable: bool) -> None:
    packet = user_message(
        "TCP:127.0.0.1\\private$\\bench",
        (bytes(range(256)) * 4096)[:body],
        recoverable=recoverable,
        source=CLIENT,
        message_id=77,
    )
    read = framing.parse(packet)
    assert (read.size, read.delivery, read.message_id) == (len(packet), int(recoverable), 77)
    assert bytes(read.body) == (bytes(range(256)) * 4096)[:body]
    assert bytes(read.source) == CLIENT.bytes_le


def test_a_body_that_does_not_fit_the_protocol_is_refused() -> None:
    with pytest.raises(ValueError, match=str(MAX_PACKET)):
        user_message("TCP:127.0.0.1\\private$\\bench", bytes(MAX_PACKET), recoverable=False)

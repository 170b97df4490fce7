"""docs/reference/application-protocol.md: its byte examples and tables agree with the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from msmq_fast._native.appcodec import PacketBuilder
from msmq_fast._native.appread import send_head
from msmq_fast.protocol.frames import OUT_FIELDS, Frame, FrameCutter, In, Out, unpack_payload

DOCUMENT = (Path(__file__).parents[2] / "docs" / "reference" / "application-protocol.md").read_text()
EXAMPLES = re.findall(r"```frame\n(\w+) (\d+) (.*)\n((?:[0-9a-f ]+\n)+)```", DOCUMENT)


def table_rows(section: str) -> list[list[str]]:
    """The rows of the first table behind a heading whose first column is a number or a type."""
    part = DOCUMENT.split(f"\n{section}", 1)[1].split("\n#", 1)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in part.splitlines()
        if line.startswith("|")
    ]
    return [row for row in rows if re.fullmatch(r"[0-9A-F]{1,2}", row[0].strip("| "))]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize(("name", "request_id", "value", "hexadecimal"), EXAMPLES)
def test_example(name: str, request_id: str, value: str, hexadecimal: str) -> None:
    ((kind, number, payload),) = FrameCutter().feed(bytes.fromhex(hexadecimal))
    assert kind == Frame[name]
    assert number == int(request_id)
    assert unpack_payload(payload) == ast.literal_eval(value)


def test_the_send_example_is_a_message() -> None:
    hexadecimal = next(text for name, _, _, text in EXAMPLES if name == "SEND")
    ((_, _, payload),) = FrameCutter().feed(bytes.fromhex(hexadecimal))
    assert send_head(payload) == (7, 0, 1, 0)
    (packet,) = PacketBuilder(bytes(16), bytes(16), 5, bytes(16), lambda _: (0, b"")).packets(payload, 1, 0)
    assert isinstance(packet, bytes)
    assert b"hello" in packet


def test_frame_types() -> None:
    listed = {(int(row[0], 16), row[1].strip("`")) for row in table_rows("## 2. Frame types")}
    assert listed == {(frame.value, frame.name) for frame in Frame}


def test_positions_of_sent_messages() -> None:
    rows = table_rows("## 4. Sending")
    assert [int(row[0]) for row in rows] == list(range(OUT_FIELDS))
    assert [row[1].replace(" ", "_").upper() for row in rows] == [field.name for field in Out]


def test_positions_of_received_messages() -> None:
    rows = table_rows("### 5.1 Message array")
    words = [row[1].replace(" ", "_").upper() for row in rows]
    assert words == [field.name for field in In]

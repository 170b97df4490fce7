"""The tables in the C# sources agree with those of the server. No compiler is needed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.hresults import HRESULTS
from msmq_fast.security.masks import QueueRight

SOURCE = Path(__file__).parents[2] / "contrib" / "dotnet" / "src"
LINES = 600
_MEMBER = re.compile(r"^\s+(\w+) = (?:unchecked\(\(int\))?(0x[0-9A-F]+)\)?,$", re.MULTILINE)

pytestmark = pytest.mark.smoke


def members(file: str, enumeration: str) -> dict[str, int]:
    """The members of an enumeration that have a number in hexadecimal."""
    text = (SOURCE / file).read_text(encoding="utf-8")
    found = re.search(rf"enum {enumeration}\b[^{{]*\{{(.*?)\n    \}}", text, re.DOTALL)
    assert found is not None, enumeration
    return {name: int(number, 16) for name, number in _MEMBER.findall(found[1])}


def test_frame_types_are_those_of_the_protocol() -> None:
    ours = members("Wire/FrameKind.cs", "FrameKind")
    theirs = {frame.name.title().replace("_", ""): int(frame) for frame in Frame}
    assert ours == {name: theirs[name] for name in ours}


def test_error_codes_are_those_of_the_specification() -> None:
    codes = members("MessageQueueErrorCode.cs", "MessageQueueErrorCode")
    assert codes.pop("Base") == 0xC00E0000
    assert set(codes.values()) <= set(HRESULTS)
    assert len(set(codes.values())) == len(codes)
    assert HRESULTS[codes["IOTimeout"]] == "MQ_ERROR_IO_TIMEOUT"


def test_acknowledgments_are_message_classes() -> None:
    classes = members("Enumerations.cs", "Acknowledgment")
    assert set(classes.values()) <= {int(one) for one in MessageClass}


def test_rights_are_those_of_a_queue() -> None:
    rights = members("Enumerations.cs", "MessageQueueAccessRights")
    assert sum(rights.values()) == QueueRight.QUEUE_GENERIC_ALL


def test_files_are_short() -> None:
    long = {path.name for path in SOURCE.rglob("*.cs") if len(path.read_text().splitlines()) > LINES}
    assert not long

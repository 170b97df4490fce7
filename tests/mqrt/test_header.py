"""The C sources state the names and numbers of the Python ones; every function of mq.h is exported."""

from __future__ import annotations

import re

import pytest

from msmq_fast.protocol.frames import IN_FIELDS, OUT_FIELDS, Frame, MessageSizes
from msmq_fast.protocol.hresults import HRESULTS
from tests.mqrt.building import LIBRARY

pytestmark = pytest.mark.smoke

INCLUDE = LIBRARY / "include"
FRAMES = (LIBRARY / "src" / "frames.h").read_text()
LINES = 600


def test_every_published_error_has_its_number():
    text = (INCLUDE / "mqerrors.h").read_text()
    found = {
        name: int(code, 16) for name, code in re.findall(r"#define (MQ\w+) \(\(HRESULT\)(0x\w+)\)", text)
    }
    assert found == {name: code for code, name in HRESULTS.items()}


def test_frame_types_are_those_of_the_protocol():
    found = {name: int(number, 16) for name, number in re.findall(r"F_(\w+) = (0x\w+)", FRAMES)}
    assert len(found) > 30
    assert {name: Frame[name].value for name in found} == found


def test_messages_have_the_positions_of_the_protocol():
    for name, number in (
        ("OUT_FIELDS", OUT_FIELDS),
        ("IN_FIELDS", IN_FIELDS),
        ("LIMIT_FIELDS", len(MessageSizes())),
    ):
        assert f"{name} = {number}" in FRAMES


def test_each_function_of_the_header_is_defined():
    declared = set(re.findall(r"^MQAPI \S+ APIENTRY (MQ\w+)\(", (INCLUDE / "mq.h").read_text(), re.MULTILINE))
    sources = "\n".join(path.read_text() for path in (LIBRARY / "src").glob("*.c"))
    defined = set(re.findall(r"^MQAPI \S+ APIENTRY (MQ\w+)\(", sources, re.MULTILINE))
    assert len(declared) == 34
    assert defined == declared


def test_no_file_is_longer_than_600_lines():
    files = [path for path in LIBRARY.rglob("*.[ch]") if "build" not in path.parts]
    assert [path.name for path in files if len(path.read_text().splitlines()) > LINES] == []

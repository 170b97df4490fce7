"""Codes that callers get: Microsoft's, as published. One of our own would have to show that it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import msmq_fast
from msmq_fast.protocol.hresults import HRESULTS

pytestmark = pytest.mark.smoke

PUBLISHED = {  # by the upper word: MS-MQMQ 2.4, and REMOTE_CANCELED_BY_CLIENT of MS-MQQP
    0x400E: ("1-6 9-B 3E9"),
    0xC00E: ("1-9 B D 10-11 13-14 18-28 2A-31 33 35-46 48-4C 4E 50-51 55-56 58 5A-96 99-9C 504"),
}
VENDOR = 0x20000000  # MS-MQQP 1.8


def published() -> set[int]:
    found = set()
    for upper, text in PUBLISHED.items():
        for run in text.split():
            first, _, last = run.partition("-")
            found |= {upper << 16 | low for low in range(int(first, 16), int(last or first, 16) + 1)}
    return found


@pytest.mark.rule("QP-013")
def test_a_code_of_our_own_carries_the_bit_of_vendors() -> None:
    sources = Path(msmq_fast.__file__).parent.rglob("*.py")
    literals = {
        int(code, 16)
        for source in sources
        for code in re.findall(r"\b0x[46CE]00E[0-9A-F]{4}\b", source.read_text(encoding="utf-8"))
    }
    used = literals | HRESULTS.keys() - {0}
    assert len(used) > 100
    assert [hex(code) for code in sorted(used - published()) if not code & VENDOR] == []

"""The fuzzer of SRMP: a moment in `make test`, minutes guided by coverage in long tests; it finds bugs that
are planted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from msmq_fast.srmp import incoming, multipart, reading
from msmq_fast.srmp.http import server
from msmq_fast.srmp.values import Nonconforming
from tests.faults import srmp_inputs
from tests.faults.fuzz_native import ROOT, run
from tests.support.fuzzing import seconds

FUZZER = ROOT / "tests" / "faults" / "fuzz_srmp.py"


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    srmp_inputs.forget_scene()
    yield
    srmp_inputs.forget_scene()
    logging.disable(logging.NOTSET)


def test_sound_requests_become_packets() -> None:
    for seed in srmp_inputs.SEEDS:
        srmp_inputs.one_input(seed)
    # Two are receipts with a body, which is not taken; the last one is three in one.
    assert srmp_inputs.scene().packets == len(srmp_inputs.SEEDS)
    taken = srmp_inputs.scene().station
    assert taken.taken("tx")
    assert taken.taken("in")
    assert taken.sent()


def test_no_finding_in_a_second() -> None:
    inputs, packets = srmp_inputs.run_random(1, seed=1)
    assert inputs >= 20
    assert packets >= 3


@pytest.mark.needs(modules=["atheris"])
@pytest.mark.long(seconds=60, fuzz=seconds())
@pytest.mark.timeout(seconds() + 300)
def test_damaged_requests_for_long(tmp_path: Path) -> None:
    """Ten minutes, unless MSMQ_FAST_FUZZ_SECONDS says otherwise."""
    result = run(FUZZER, seconds(), tmp_path / "work", None)
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    print(result.stderr[-400:])


def _part_end(body: bytes, start: int, head: Any, forms: list[bytes]) -> tuple[int, int]:
    """As a careless author might have written it: who says a length is believed."""
    if head.length is None or not 0 <= head.length <= len(body) - start:
        return multipart._next_delimiter(body, start, forms)
    end = start + head.length
    return end, multipart._next_delimiter(body, end, forms)[1]


def _parse_xml(xml: bytes) -> Any:
    """Without a look at what the text declares."""
    try:
        return etree.fromstring(xml)
    except etree.XMLSyntaxError as problem:
        raise Nonconforming(str(problem)) from None


PLANTED: dict[str, tuple[Any, str, Any]] = {
    "a connection goes on behind two lengths": (server, "_TWO_LENGTHS", frozenset((b"never",))),
    "a document type is read": (reading, "parse_xml", _parse_xml),
    "a body that ends where its part does not": (multipart, "_part_end", _part_end),
    "an exception that nobody expects": (incoming, "_u32", lambda value: value.to_bytes(4)),
}


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[bug])
    with pytest.raises((AssertionError, TypeError, OverflowError)):
        srmp_inputs.run_random(240, seed=1)

"""A short run of the store's fuzzer, so that it keeps working."""

from __future__ import annotations

from tests.faults import fuzz_store


def test_no_finding_in_two_seconds() -> None:
    assert fuzz_store.run_random(2, seed=1) >= 1000


def test_good_records_are_good() -> None:
    for data in fuzz_store.seeds():
        fuzz_store.one_input(data)

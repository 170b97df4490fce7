"""Programs in .NET beside those in Python, in the same run. `python -m bench.dotnet` shows the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.dotnet import measure


@pytest.mark.long(seconds=40)
@pytest.mark.needs("mcs")
def test_a_program_is_not_much_slower_than_one_in_python(tmp_path: Path) -> None:
    figures = measure(2000, 1, tmp_path)
    assert [figure.operation for figure in figures] == [
        "send",
        "receive",
        "send in transactions",
        "receive in transactions",
        "begin receive",
    ]
    # One round on a busy machine. A send of .NET has about half the speed of a batch of Python's, and less
    # beside other tests; one that waits for its answer, as it must not there, would have a hundredth.
    slow = [figure for figure in figures if "transactions" in figure.operation and (figure.ratio or 0) < 0.05]
    assert not slow, figures

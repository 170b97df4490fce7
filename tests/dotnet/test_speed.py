"""Programs in .NET beside those in Python, in the same run. `python -m bench.dotnet` shows the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.dotnet import measure


@pytest.mark.long(seconds=40)
@pytest.mark.needs("mcs")
def test_a_program_is_about_as_fast_as_one_in_python(tmp_path: Path) -> None:
    figures = measure(2000, 1, tmp_path)
    assert [figure.operation for figure in figures] == [
        "send",
        "receive",
        "send in transactions",
        "receive in transactions",
        "begin receive",
    ]
    # What else the machine does matters more than a factor of two.
    slow = [figure for figure in figures if figure.ratio is not None and figure.ratio < 0.5]
    assert not slow, figures

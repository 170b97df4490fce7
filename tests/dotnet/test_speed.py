"""Programs in .NET beside those in Python, in the same run. `python -m bench.dotnet` shows the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.dotnet import measure

_ROUNDS = 5  # the best of each program counts, since the machine is shared
_LEAST = 0.4  # on an idle machine the ratios are near 1 or above: bench/notebook.md


@pytest.mark.long(seconds=25)
@pytest.mark.needs("mcs")
def test_a_program_is_not_much_slower_than_one_in_python(tmp_path: Path) -> None:
    figures = measure(2000, _ROUNDS, tmp_path, best=True)
    assert [figure.operation for figure in figures] == [
        "send",
        "receive",
        "send in transactions",
        "receive in transactions",
        "begin receive",
    ]
    slow = [figure for figure in figures if figure.ratio is not None and figure.ratio < _LEAST]
    assert not slow, figures

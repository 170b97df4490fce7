"""What the tests of the batch writers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from msmq_fast._native.lmdbstore import LmdbTables


@pytest.fixture
def tables(tmp_path: Path) -> LmdbTables:
    """A new store on disk."""
    return LmdbTables(tmp_path, map_size=1 << 30)

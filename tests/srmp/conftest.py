"""What the tests of SRMP share."""

from __future__ import annotations

import pytest

from tests.support.srmp.station import Station


@pytest.fixture
def station() -> Station:
    """A queue manager with a queue `in` and a transactional queue `tx`."""
    made = Station()
    made.make("in")
    made.make("tx", transactional=True)
    return made

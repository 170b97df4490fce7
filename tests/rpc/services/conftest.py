"""The worlds that several modules of tests have."""

from __future__ import annotations

import pytest

from tests.support.rpc.peers import RemoteWorld


@pytest.fixture(params=[False, True], ids=["ndr", "ndr64"])
def remote(request: pytest.FixtureRequest) -> RemoteWorld:
    return RemoteWorld(ndr64=request.param)

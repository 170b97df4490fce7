"""Servers for the tests of libmqrt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mqrt.building import Build, build
from tests.support.processes.servers import Server, data_directory


@pytest.fixture
def server() -> Iterator[Server]:
    with data_directory() as directory:
        started = Server(directory).start()
        try:
            yield started
        finally:
            started.kill()


@pytest.fixture(scope="session", params=["address,undefined", "thread"], ids=["asan", "tsan"])
def checked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The library and the suite under sanitizers."""
    return build(tmp_path_factory.mktemp("mqrt"), request.param)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The library and the suite as users build them."""
    return build(tmp_path_factory.mktemp("mqrt"), flags="-O2")

"""What the tests of the image share: one build, and containers that end with the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.packaging.containers import Engine


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """podman with the image of this tree."""
    engine = Engine(tmp_path_factory.mktemp("engine"))
    engine.build()
    return engine


@pytest.fixture
def engine(built: Engine) -> Iterator[Engine]:
    built.remove_all()
    try:
        yield built
    finally:
        built.remove_all()

"""What the tests of messages share."""

from __future__ import annotations

import pytest

from tests.support.worlds.queue_manager import World


@pytest.fixture
def world() -> World:
    """A queue manager with the queue `orders`; several modules have a world of their own."""
    world = World()
    world.create()
    return world

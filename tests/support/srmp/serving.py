"""A server process that takes messages over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.processes.servers import Server, data_directory

__all__ = ["serving"]


@contextmanager
def serving(config: str) -> Iterator[Server]:
    """One with this configuration file, at a port of its own."""
    with data_directory() as data:
        file = data.parent / "server.toml"
        file.write_text(config)
        running = Server(data, "--http-port", "0", "--config", str(file))
        try:
            yield running.start()
        finally:
            running.kill()

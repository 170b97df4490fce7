"""The checkpoints of the streaming queries of an archive, which one process at a time may use."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.layout import Lake

__all__ = ["CHECKPOINTS", "RUN", "Checkpoints"]

CHECKPOINTS: Final = "_state/checkpoints"
RUN: Final = "msmq-run"
"""The file in a checkpoint with the name of its run, under which the batches of the query are committed."""


class Checkpoints:
    """The checkpoints of the archive `name`, a directory for each kind of content.

    They are in the lake, or, because Spark cannot write into an object store without further jars, in
    `directory`. A checkpoint and the run in it begin and end together: without its checkpoint, a query counts
    its batches from 0 again, and under the old run these batches would seem to be in the lake.
    """

    def __init__(self, lake: Lake, name: str, directory: str | None = None) -> None:
        if directory is None and lake.local:
            directory = lake.path(CHECKPOINTS)
        self._root = Path(directory or _default(lake)).absolute() / name
        self._name = name

    def path(self, content: str) -> str:
        """Returns the directory for Spark's checkpoint of one kind of content."""
        return str(self._root / content)

    def run(self, content: str) -> str:
        """Returns the name of the run of one kind of content; begins a new run without a checkpoint."""
        file = self._root / content / RUN
        try:
            return file.read_text(encoding="ascii")
        except FileNotFoundError:
            run = f"{self._name}-{content}-{uuid.uuid4()}"
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(f".{RUN}.{uuid.uuid4().hex}")
        aside.write_text(run, encoding="ascii")
        aside.rename(file)
        return run

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lets no other process of this machine run this archive while the context is open. Raises
        CommandError if one does.
        """
        import fcntl

        self._root.mkdir(parents=True, exist_ok=True)
        with (self._root / "lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CommandError(
                    Exit.IN_USE,
                    f"an archive named {self._name!r} with its checkpoints in {self._root} is running "
                    "already: wait for its end, or give this one another --name",
                ) from None
            yield


def _default(lake: Lake) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "msmq-lake" / hashlib.sha256(lake.root.encode()).hexdigest()[:16]

"""Stores one micro-batch of the archive. A batch is part of the lake only if its directories are complete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from msmq_fast.spark.lake import manifest
from msmq_fast.spark.lake.landing import ARRIVING, Landed
from msmq_fast.spark.lake.layout import SUCCESS, Lake, batch_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BODIES: Final = "bronze/bodies"


class Placing:
    """A function for foreachBatch, which stores one batch in the lake. It is called with the rows of
    LandingSource, which describe the files of the batch, and with the number of the batch.

    A batch that is already complete is skipped, because the same batch always has the same rows. After every
    other batch, `placed` is called with the number of rows in the batch.
    """

    def __init__(self, lake: Lake, table: str, run: str, placed: Callable[[int], None]) -> None:
        self._lake = lake
        self._table = table
        self._run = run
        self._placed = placed

    def tidy(self) -> None:
        """Deletes the files that tasks of an earlier query left behind. Call it before the query starts."""
        self._lake.delete(f"{ARRIVING}/{self._run}")

    def __call__(self, files: DataFrame, number: int) -> None:
        target = batch_directory(self._table, self._run, number)
        if self._lake.exists(f"{target}/{SUCCESS}"):
            return
        self.place([Landed(*row) for row in files.collect()], number)

    def place(self, files: Iterable[Landed], number: int) -> None:
        """Moves the files of the batch `number` to their directories, and marks the batch as complete."""
        main = f"bronze/{self._table}"
        layers: dict[str, list[Landed]] = defaultdict(list)
        for file in files:
            layers[file.layer].append(file)
        rows = sum(file.rows for file in layers[main])
        # Other tasks may have found bodies of an earlier attempt there and not stored their own, so those
        # bodies stay. The table itself is last: it makes the batch count.
        for layer in sorted(layers, key=lambda layer: (layer == main, layer)):
            directory = self._directory(layer, number)
            if layer != _BODIES:
                self._lake.delete(directory)
            names = {file.path.rpartition("/")[2]: file for file in layers[layer]}
            for name, file in names.items():
                self._lake.move(file.path, f"{directory}/{name}")
            manifest.note(self._lake, directory, {name: file.rows for name, file in names.items()})
            self._lake.create_file(f"{directory}/{SUCCESS}").close()
        self._placed(rows)

    def _directory(self, layer: str, number: int) -> str:
        place, _, table = layer.partition("/")
        return batch_directory(table, self._run, number).replace("bronze/", f"{place}/", 1)

"""Stores one micro-batch of the archive: its directories are complete, or do not count."""

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
    """The function that foreachBatch calls with the files of a batch (the rows of LandingSource) and its
    number.

    A batch that is complete is not read again: the same batch has the same rows. `placed` hears how many
    there were.
    """

    def __init__(self, lake: Lake, table: str, run: str, placed: Callable[[int], None]) -> None:
        self._lake = lake
        self._table = table
        self._run = run
        self._placed = placed

    def tidy(self) -> None:
        """Before the query starts: what tasks left of an earlier one."""
        self._lake.delete(f"{ARRIVING}/{self._run}")

    def __call__(self, files: DataFrame, number: int) -> None:
        target = batch_directory(self._table, self._run, number)
        if self._lake.exists(f"{target}/{SUCCESS}"):
            return
        self.place([Landed(*row) for row in files.collect()], number)

    def place(self, files: Iterable[Landed], number: int) -> None:
        """Puts files where they belong; the batch counts when this returns."""
        main = f"bronze/{self._table}"
        layers: dict[str, list[Landed]] = defaultdict(list)
        for file in files:
            layers[file.layer].append(file)
        rows = sum(file.rows for file in layers[main])
        # Others may have found bodies of an earlier try there, and not stored theirs: they stay. The table
        # itself comes last: it makes the batch count.
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

"""Manifests with the number of rows in each file of a batch, so that lost files are noticed."""

from __future__ import annotations

from typing import Final

from msmq_fast.spark.lake.layout import Lake

_NAME: Final = "_COUNTS"


def note(lake: Lake, directory: str, rows: dict[str, int]) -> None:
    """Writes the manifest of a batch; `rows` is the number of rows by file name. Call this function before
    the batch is marked as complete.
    """
    lake.write_json(f"{directory}/{_NAME}", rows)


def counted(lake: Lake, directory: str) -> dict[str, int]:
    """Returns, by file name, the number of rows in each existing file of a directory, from the metadata of
    the files. Raises pyarrow's exceptions.
    """
    from pyarrow import parquet

    found = {}
    for path, _ in lake.files(directory):
        with lake.open_file(path) as stream:
            found[path.rpartition("/")[2]] = parquet.read_metadata(stream).num_rows
    return found


def missing(lake: Lake, directory: str) -> list[str]:
    """Returns the names of files that are missing, or have another number of rows than in the manifest; none
    if there is no manifest, because an earlier release wrote the batch.
    """
    noted = lake.read_json(f"{directory}/{_NAME}")
    if noted is None:
        return []
    found = counted(lake, directory)
    return sorted(name for name, rows in noted.items() if found.get(name) != rows)

"""The file systems of lakes: local disks through pyarrow, object stores and HDFS through deltalake.

Both give a pyarrow file system whose paths are relative to the root of the lake. Credentials and endpoints of
object stores come from the environment (AWS_*, GOOGLE_*, AZURE_*), on the driver and on the executors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

__all__ = ["SCHEMES", "file_system", "normalized"]

SCHEMES: Final = ("s3", "s3a", "gs", "abfs", "abfss", "az", "hdfs", "viewfs")
"""URL schemes of stores that deltalake opens, other than local ones."""


def normalized(root: str) -> str:
    """Returns the root in its canonical form: an absolute path, or a URL without a slash at its end. Raises
    ValueError if no lake can be there.
    """
    parts = urlsplit(root)
    if parts.scheme == "file":
        return str(Path(unquote(parts.path)).resolve())
    if not parts.scheme:
        return str(Path(root).resolve())
    if parts.scheme not in SCHEMES:
        raise ValueError(
            f"a lake is a directory or a URL that begins with file:, s3:, gs:, abfss:, az: or hdfs:, "
            f"not with {parts.scheme}:"
        )
    if not parts.netloc:
        raise ValueError(f"a URL of an object store names a bucket, such as {parts.scheme}://bucket/lake")
    scheme = "s3" if parts.scheme == "s3a" else parts.scheme
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def file_system(root: str) -> Any:
    """Returns a pyarrow file system whose paths are relative to `root`, a value that `normalized` returned.
    Raises OSError.
    """
    from pyarrow import fs

    if "://" not in root:
        return fs.SubTreeFileSystem(root, fs.LocalFileSystem())
    return fs.PyFileSystem(_handler(root))


def _handler(root: str) -> Any:
    import pyarrow as pa
    from deltalake.fs import DeltaStorageHandler

    class Handler(DeltaStorageHandler):  # type: ignore[misc, unused-ignore]
        """deltalake's store; its output streams take bytes only, and pyarrow gives them buffers."""

        def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> Any:
            return pa.PythonFile(_Output(self._handler.open_output_stream(path, metadata)), mode="w")

    return Handler(root)


class _Output:
    """A file that takes anything with a buffer, and counts its bytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._bytes = 0

    @property
    def closed(self) -> bool:
        return bool(self._stream.closed)

    def write(self, data: Any) -> int:
        count = len(memoryview(data))
        self._stream.write(bytes(data))
        self._bytes += count
        return count

    def tell(self) -> int:
        return self._bytes

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self._stream.close()

"""Rejects a truncated data file before it is mapped into memory."""

from __future__ import annotations

from pathlib import Path

from msmq_fast.store.errors import StoreError
from msmq_fast.store.identity import DATA_NAME
from msmq_fast.store.pages import shortage


def check_data_file(directory: Path, *, used: bool) -> None:
    """Raises StoreError if the data file in `directory` is truncated or cannot be read. A missing file is
    accepted: LMDB creates it. For `used` see `pages.shortage`.
    """
    path = directory / DATA_NAME
    try:
        missing = shortage(path, used=used)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}", error.errno or 0) from error
    if missing is not None:
        raise StoreError(f"{path} is truncated: {missing}; restore a backup")

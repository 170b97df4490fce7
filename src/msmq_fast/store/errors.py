"""Errors of a store. Each message names the directory and says what to do."""

from __future__ import annotations

from msmq_fast._native.lmdbstore import status_is_full as status_is_full
from msmq_fast._native.lmdbstore import status_text as status_text
from msmq_fast._native.tables import StoreError as StoreError


class StoreLockedError(StoreError):
    """Another process has the store open."""


class StoreVersionError(StoreError):
    """The store was written by a newer, unknown version of the program."""


class StorePlaceError(StoreError):
    """The directory is not suitable for a store: access is denied, or its file system may lose synced
    data.
    """


class BackupError(StoreError):
    """A backup could not be finished or cannot be restored."""

"""Errors of a store; every message names the directory and what to do."""

from __future__ import annotations

from msmq_fast._native.lmdbstore import status_is_full as status_is_full
from msmq_fast._native.lmdbstore import status_text as status_text
from msmq_fast._native.tables import StoreError as StoreError


class StoreLockedError(StoreError):
    """Another process holds the store."""


class StoreVersionError(StoreError):
    """The store was written by a version of the program that this one does not know."""


class StorePlaceError(StoreError):
    """The directory is not fit for a store: missing rights, or a file system that does not keep what it
    acknowledges.
    """


class BackupError(StoreError):
    """A backup could not be finished, or is not one that can be restored."""

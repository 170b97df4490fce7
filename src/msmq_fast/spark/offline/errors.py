"""The one error of this room."""

from __future__ import annotations


class OfflineError(RuntimeError):
    """The store cannot be read; the message is one clear line that says what to do."""

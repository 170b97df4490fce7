"""The exception of this package."""

from __future__ import annotations


class OfflineError(RuntimeError):
    """Raised if the store cannot be read. The text of the error is one line that also says what to do."""

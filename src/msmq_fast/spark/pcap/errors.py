"""The exception of this package."""

from __future__ import annotations


class CaptureError(ValueError):
    """Raised if a file is not a capture, or is damaged. The text is one line that tells where."""

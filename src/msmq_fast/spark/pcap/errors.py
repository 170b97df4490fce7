"""The error of captures."""

from __future__ import annotations


class CaptureError(ValueError):
    """The file is not a capture, or is damaged; the text names the place in one line."""

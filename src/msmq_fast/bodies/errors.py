"""The one error of the decoders."""

from __future__ import annotations


class BodyError(ValueError):
    """The bytes are not what was asked for; the text says in one line what was wrong."""

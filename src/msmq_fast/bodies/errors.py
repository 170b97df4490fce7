"""The error of the decoders and encoders."""

from __future__ import annotations


class BodyError(ValueError):
    """The bytes of a body cannot be decoded, or a value cannot be encoded; the text says in one line what is
    wrong.
    """

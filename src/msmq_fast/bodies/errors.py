"""The error of the decoders and encoders."""

from __future__ import annotations


class BodyError(ValueError):
    """The bytes are not a valid body of the requested type, or a value cannot be encoded; the text says in
    one line what is wrong.
    """

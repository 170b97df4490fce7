"""Malformed input of a client: the only ValueError whose text is intended for the client."""

__all__ = ["Malformed"]


class Malformed(ValueError):
    """One line that says what is wrong with a request, a stream or a value."""

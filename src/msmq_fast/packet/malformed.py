"""Malformed input of a client: the only ValueError whose text is intended for the client."""

__all__ = ["Malformed"]


class Malformed(ValueError):
    """The input of a client is malformed; the text states, on one line, what is wrong with it."""

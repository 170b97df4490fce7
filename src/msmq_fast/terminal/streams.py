"""Handles standard streams that the caller of a command has closed, as `>&-` in a shell does."""

from __future__ import annotations

import os
import sys

__all__ = ["open_closed_streams"]

_STREAMS = (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))


def open_closed_streams() -> None:
    """Open the standard streams that are closed, before a file or a socket takes their descriptors.

    Standard input, if it was closed, then returns no data. Standard output, if it was closed, cannot be
    flushed (EBADF), so that a command does not report lost output as printed. Standard error, if it was
    closed, drops all text.
    """
    for name, flags, mode in _STREAMS:  # in this order: the system hands out the lowest free descriptor
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))

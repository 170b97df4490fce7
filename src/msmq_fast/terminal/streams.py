"""Handles standard streams that the caller of a command has closed, as `>&-` in a shell does."""

from __future__ import annotations

import os
import sys

__all__ = ["open_closed_streams"]

_STREAMS = (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))


def open_closed_streams() -> None:
    """Open the standard streams that are closed, before a file or a socket takes their descriptors.

    Reading a closed input returns no data. Flushing a closed output fails (EBADF), so that a command does not
    report lost output as printed. Text written to a closed error output is dropped.
    """
    for name, flags, mode in _STREAMS:  # in this order: the system hands out the lowest free descriptor
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))

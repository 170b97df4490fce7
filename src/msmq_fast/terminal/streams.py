"""Standard streams that the caller of a command closed, as `>&-` of a shell does."""

from __future__ import annotations

import os
import sys

__all__ = ["open_closed_streams"]

_STREAMS = (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))


def open_closed_streams() -> None:
    """Open the standard streams that are closed, before a file or a socket takes their descriptors.

    A closed input is empty. A closed output fails when it is flushed (EBADF): what could not be printed must
    not pass as printed. What goes to a closed error output is dropped.
    """
    for name, flags, mode in _STREAMS:  # in this order: the system hands out the lowest free descriptor
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))

"""Exit codes, and the one exception by which a verb ends with one of them and one line on stderr."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["CommandError", "Exit"]


class Exit(IntEnum):
    """What a script can tell from the exit code; docs/how-to/operations.md lists them for users."""

    OK = 0
    FAILURE = 1
    USAGE = 2  # wrong arguments or a wrong configuration
    NOT_FOUND = 3  # no such queue, no such message
    EMPTY = 4  # timed out: no message within --timeout, no answer to a ping
    UNREACHABLE = 5  # no server behind the endpoint
    REFUSED = 6  # access, quota, size: the queue manager said no
    IN_USE = 7  # the port or the data directory belongs to another process
    INTERRUPTED = 130


class CommandError(Exception):
    """Ends the command: `code` is the exit code, the text goes to stderr as one line."""

    def __init__(self, code: Exit, text: str) -> None:
        super().__init__(text)
        self.code = code

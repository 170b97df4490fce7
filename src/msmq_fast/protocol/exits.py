"""Exit codes, and the one exception by which a verb ends with one of them and one line on stderr."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["MEANINGS", "CommandError", "Exit"]


class Exit(IntEnum):
    """What a script can tell from the exit code; MEANINGS has the meaning of each."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    EMPTY = 4
    UNREACHABLE = 5
    REFUSED = 6
    IN_USE = 7
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "done",
    Exit.FAILURE: "a failure that has no code of its own",
    Exit.USAGE: "wrong arguments or a wrong configuration",
    Exit.NOT_FOUND: "no such queue, message or user",
    Exit.EMPTY: "no message within --timeout, or no answer to a ping",
    Exit.UNREACHABLE: "no server behind the endpoint",
    Exit.REFUSED: "the queue manager refused the request: access, quota, size or name",
    Exit.IN_USE: "the port or the data directory belongs to another process",
    Exit.INTERRUPTED: "interrupted with Ctrl+C",
}
"""For help pages and the reference."""


class CommandError(Exception):
    """Ends the command: `code` is the exit code, the text goes to stderr as one line."""

    def __init__(self, code: Exit, text: str) -> None:
        super().__init__(text)
        self.code = code

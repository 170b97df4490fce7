"""Exit codes, and the exception with which a command ends with an exit code and one line on stderr."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["MEANINGS", "CommandError", "Exit"]


class Exit(IntEnum):
    """Exit codes of commands, for scripts; MEANINGS holds the meaning of each."""

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
"""The meaning of each exit code, for help pages and the reference."""


class CommandError(Exception):
    """Ends the command: `code` is the exit code, and the text is written to stderr as one line."""

    def __init__(self, code: Exit, text: str) -> None:
        super().__init__(text)
        self.code = code

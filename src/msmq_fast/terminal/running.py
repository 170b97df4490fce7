"""Runs one command of a tree of commands. An expected failure becomes one line on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Group, parse
from msmq_fast.terminal.parser import shortened
from msmq_fast.terminal.streams import open_closed_streams

__all__ = ["run"]


def run(root: Group, words: Sequence[str]) -> int:
    """Run the command that `words` name and return its exit code. Raises SystemExit, after printing, if
    `words` ask for help or contain a mistake.
    """
    open_closed_streams()
    command, arguments = parse(root, words)
    try:
        code = command.run(arguments)
        sys.stdout.flush()
    except CommandError as error:
        print(f"{root.name} {arguments.command}: {shortened(str(error), words)}", file=sys.stderr)
        return error.code
    except BrokenPipeError:
        # The reader of our output ended (`| head`): there is nothing to report, and no place for a report.
        _discard_output()
        return Exit.FAILURE
    except OSError as error:
        _discard_output()
        what = error.filename if error.filename is not None else "cannot write the output"
        print(f"{root.name} {arguments.command}: {what}: {error.strerror or error}", file=sys.stderr)
        return Exit.FAILURE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return code


def _discard_output() -> None:
    """Discard the buffered standard output, so that the interpreter does not try to write it again when it
    exits.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""The entry point `msmq-fast`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from msmq_fast.cli.tree import ROOT
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.running import run

__all__ = ["main"]


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Without `words`, run that of the process's own command line;
    the process may then end here.
    """
    whole_process = words is None
    words = sys.argv[1:] if words is None else words
    if list(words) == ["--version"]:
        from msmq_fast.release import release  # importing it takes as long as all the rest

        print(f"msmq-fast {release()}")
        return Exit.OK
    code = run(ROOT, words)
    if whole_process and "obstore" in sys.modules:
        _end(code)
    return code


def _end(code: int) -> NoReturn:
    """End the process without finalizing the interpreter: the threads of obstore may take the GIL at any
    time, and one that does so meanwhile aborts the process.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())

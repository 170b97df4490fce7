"""The entry point `msmq-fast`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from msmq_fast.cli.tree import ROOT
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.running import run

__all__ = ["main"]


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = sys.argv[1:] if words is None else words
    if list(words) == ["--version"]:
        from msmq_fast.release import release  # importing it takes as long as all the rest

        print(f"msmq-fast {release()}")
        return Exit.OK
    return run(ROOT, words)


if __name__ == "__main__":
    sys.exit(main())

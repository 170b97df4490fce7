"""The commands of the lake: the group `msmq-fast lake`, and the same commands as the program `msmq-lake`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from msmq_fast.spark.lake.verbs import Verbs
from msmq_fast.terminal.commands import Group
from msmq_fast.terminal.running import run

__all__ = ["COMMAND", "main"]

_HERE: Final = "msmq_fast.spark.lake"

COMMAND: Final = Group(
    name="lake",
    help="archive, check and report the messages of queue managers",
    description="""Archive, check and report the messages that pass queue managers. The commands need the
        extra `spark`; see docs/how-to/spark.md. `msmq-lake` is a short name of `msmq-fast lake`.""",
    commands=Verbs(
        {
            "archive": f"{_HERE}.archive",
            "audit": f"{_HERE}.audit",
            "report": f"{_HERE}.report",
            "compact": f"{_HERE}.compact",
            "verify": f"{_HERE}.verify",
            "migrate": f"{_HERE}.migrate",
            "settle": f"{_HERE}.settle",
            "replay": f"{_HERE}.replay",
            "import": f"{_HERE}.importing",
        }
    ),
)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return run(replace(COMMAND, name="msmq-lake"), sys.argv[1:] if words is None else words)


if __name__ == "__main__":
    sys.exit(main())

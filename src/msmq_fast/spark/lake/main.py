"""The entry point `msmq-lake`: finds the verb, turns expected failures into one line and an exit code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.failures import explained
from msmq_fast.terminal.parser import Parser

__all__ = ["VERBS", "build_parser", "main"]

VERBS: Final = {
    "archive": "archive",
    "audit": "audit",
    "report": "report",
    "compact": "compact",
    "verify": "verify",
    "settle": "settle",
    "replay": "replay",
    "import": "importing",
}
"""Verb -> module with `add_parser(verbs)` and `run(arguments)`."""


def build_parser() -> Parser:
    """The arguments of all verbs."""
    parser = Parser(
        prog="msmq-lake",
        description="Archive, check and report what passes MSMQ queue managers; see docs/how-to/spark.md.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        _module(verb).add_parser(verbs)
    return parser


def _module(verb: str) -> ModuleType:
    return importlib.import_module(f"msmq_fast.spark.lake.{VERBS[verb]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parsed = build_parser().parse_args(arguments)
    try:
        return int(_module(parsed.verb).run(parsed))
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:
        failure = error if isinstance(error, CommandError) else explained(error)
        if failure is None:
            raise
        print(f"msmq-lake {parsed.verb}: {failure}", file=sys.stderr)
        return failure.code


if __name__ == "__main__":
    sys.exit(main())

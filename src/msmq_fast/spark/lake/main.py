"""The entry point `msmq-lake`: finds the verb, turns expected failures into one line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

from msmq_fast.cli.exits import CommandError, Exit
from msmq_fast.spark.lake.failures import explained

__all__ = ["main"]

_VERBS: Final = {
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="msmq-lake",
        description="Archive, check and report what passes MSMQ queue managers; see docs/spark.md.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    modules: dict[str, ModuleType] = {}
    for verb, name in _VERBS.items():
        modules[verb] = importlib.import_module(f"msmq_fast.spark.lake.{name}")
        modules[verb].add_parser(verbs)
    parsed = parser.parse_args(arguments)
    try:
        return int(modules[parsed.verb].run(parsed))
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

"""The parser of a command line that is mistyped now and then."""

from __future__ import annotations

import argparse
from typing import NoReturn

from msmq_fast.cli.exits import Exit

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of a page of usage."""

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with Exit.USAGE."""
        self.exit(Exit.USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")

"""Generates the reference of the command line from the commands themselves.

`python -m tools.commands` compares docs/reference/cli.md with them and returns 1 if it differs; with
`--write` it writes the page.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from msmq_fast.cli.tree import ROOT
from msmq_fast.terminal.markdown import reference

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"

INTRODUCTION = """\
<!-- Written by python -m tools.commands --write from src/msmq_fast/cli/commands. -->

# Command line

`msmq-fast COMMAND --help` shows the same as this page; `msmq-fast help --man DIR` writes man pages, and
`msmq-fast completion bash` (or `zsh`, `fish`) prints completion for a shell.

- Times are written with a unit: `500ms`, `30s`, `5m`, `1h`, `2d`. A bare number is seconds.
- Sizes are written with a unit: `64MiB` is binary, `64MB` decimal, `64m` short for `64MiB`. A bare number is
  bytes.
- `NAME` is a path or a format name; `orders` is short for `.\\private$\\orders`.
- `--json`, or `-o json`, prints one JSON object a line; `-o raw` prints bare values with tabs between them.

"""


def page() -> str:
    """Return the text of the page."""
    os.environ["COLUMNS"] = "80"
    return INTRODUCTION + reference(ROOT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    print(f"{PAGE}: differs from the commands: run python -m tools.commands --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

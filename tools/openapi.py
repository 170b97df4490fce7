"""Writes the OpenAPI document of the management API from the table of its operations.

`python -m tools.openapi` compares docs/reference/management-api.openapi.json with the table and returns 1
if they differ; with `--write` it writes the file.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from msmq_fast.admin.api.openapi import document

FILE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "management-api.openapi.json"


def main() -> int:
    """Compare the file, or write it. Return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the file instead of comparing it")
    write = parser.parse_args().write
    text = json.dumps(document(), indent=2, ensure_ascii=False) + "\n"
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text:
        return 0
    if not write:
        print(f"not current: {FILE.name}; run: python -m tools.openapi --write", file=sys.stderr)
        return 1
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Prints the requirements of parts of pyproject.toml, one a line: `build`, or the name of an extra."""

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"

content = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
extras = content["project"]["optional-dependencies"]
for part in sys.argv[1:]:
    print(*(content["build-system"]["requires"] if part == "build" else extras[part]), sep="\n")

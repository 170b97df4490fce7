"""Prints the requirements of one part of pyproject.toml, one a line: `build`, or the name of an extra."""

import sys
import tomllib
from pathlib import Path

content = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
for part in sys.argv[1:]:
    extras = content["project"]["optional-dependencies"]
    print(*(content["build-system"]["requires"] if part == "build" else extras[part]), sep="\n")

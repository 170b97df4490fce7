"""Prints the requirements of parts of pyproject.toml, one a line: `build`, `runtime`, or an extra."""

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"

content = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
parts = content["project"]["optional-dependencies"]
parts |= {"build": content["build-system"]["requires"], "runtime": content["project"]["dependencies"]}
for name in sys.argv[1:]:
    print(*parts[name], sep="\n")

"""Prints the requirements of parts of pyproject.toml, one a line: `build`, `runtime`, or an extra.

An extra that names another one of this project ("msmq-fast[bulk]") is printed as what that one holds.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"

content = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
project = content["project"]
parts = project["optional-dependencies"]
parts |= {"build": content["build-system"]["requires"], "runtime": project["dependencies"]}
own = re.compile(re.escape(project["name"]) + r"\[([^]]+)\]")


def requirements(part: str) -> Iterator[str]:
    """Those of `part` and of the parts that it names."""
    for line in parts[part]:
        named = own.fullmatch(line)
        if named is None:
            yield line
        else:
            for other in named[1].split(","):
                yield from requirements(other.strip())


for name in sys.argv[1:]:
    print(*requirements(name), sep="\n")

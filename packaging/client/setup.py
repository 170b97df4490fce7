"""Stages the packages of the client from the sources of the repository; an sdist brings them along.

What is staged is not in version control. The version is that of the server.
"""

import shutil
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = ("bodies", "client", "protocol")
FILES = ("__init__.py", "py.typed")


def stage() -> None:
    """Copy the sources, the license and the version beside this file."""
    target = HERE / "src" / "msmq_fast"
    shutil.rmtree(HERE / "src", ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in PACKAGES:
        shutil.copytree(ROOT / "src" / "msmq_fast" / name, target / name, ignore=ignored)
    for name in FILES:
        shutil.copy2(ROOT / "src" / "msmq_fast" / name, target / name)
    shutil.copy2(ROOT / "LICENSE", HERE / "LICENSE")
    with (ROOT / "pyproject.toml").open("rb") as file:
        (HERE / "VERSION").write_text(tomllib.load(file)["project"]["version"], encoding="ascii")


if (ROOT / "src" / "msmq_fast" / "client").is_dir():
    stage()
setup(version=(HERE / "VERSION").read_text(encoding="ascii"))

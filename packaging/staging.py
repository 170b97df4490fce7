"""Stages sources of the repository beside the `pyproject.toml` of a distribution that is made of them.

What is staged is not in version control; an sdist brings it along. The version is that of the server.
"""

import shutil
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("__init__.py", "py.typed")


def stage(target: Path, packages: Iterable[str], files: Iterable[str] = ()) -> None:
    """Copy `packages` of msmq_fast and `files`, whose paths begin at src/, below `target`/src, and the
    license and the version beside it.
    """
    source, made = ROOT / "src", target / "src"
    shutil.rmtree(made, ignore_errors=True)
    for name in packages:
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(source / "msmq_fast" / name, made / "msmq_fast" / name, ignore=ignored)
    for path in (*(f"msmq_fast/{name}" for name in FILES), *files):
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / path, made / path)
    shutil.copy2(ROOT / "LICENSE", target / "LICENSE")
    with (ROOT / "pyproject.toml").open("rb") as file:
        (target / "VERSION").write_text(tomllib.load(file)["project"]["version"], encoding="ascii")

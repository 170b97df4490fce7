"""Clean environments for interpreters of this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def run(*command: str | Path, cwd: Path) -> str:
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def make_environment(python: str, folder: Path) -> Path:
    run(python, "-m", "venv", folder, cwd=folder.parent)
    return folder / "bin"

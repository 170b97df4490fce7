"""Stages the packages of the client from the sources of the repository, unless this is an sdist."""

import sys
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent

if (HERE.parent / "staging.py").is_file():
    sys.path.insert(0, str(HERE.parent))
    from staging import stage

    stage(HERE, ("bodies", "client", "protocol"))
setup(version=(HERE / "VERSION").read_text(encoding="ascii"))

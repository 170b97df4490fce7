"""Builds of the modules that make columns, for the fuzzer."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.faults.fuzz_native import INSTRUMENTED, build

NATIVE = (
    "columncells",
    "columntext",
    "columnsoap",
    "columnstore",
    "columnencoder",
    "columnmessages",
    "columnevents",
)
"""In the order in which they import one another."""


def instrumented(directory: Path, changed: str = "", change: tuple[str, str, str] | None = None) -> Path:
    """All of them with coverage counters and address checks; `change` goes into `changed`."""
    modules = directory / "modules"
    modules.mkdir(parents=True)
    for name in NATIVE:
        wanted = change if name == changed else None
        shutil.copy(build(name, directory / name, wanted, flags=INSTRUMENTED, compiler="clang"), modules)
    return modules

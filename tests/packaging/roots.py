"""Debian in a directory, made with debootstrap: a base for images, and a place to install packages."""

from __future__ import annotations

import subprocess
import tarfile
import time
import zlib
from pathlib import Path

__all__ = ["BUILT", "debian"]

_TREE = zlib.crc32(bytes(Path(__file__).resolve().parents[2]))
BUILT = Path("/var/tmp/msmq-fast-tests") / f"{_TREE:08x}"
"""What the tests of this tree keep for their next run: some GB. Not inside it, where setuptools would read
all directories.
"""

_SUITE = "bookworm"
_OLDEST_S = 7 * 86_400.0
# As the slim images of Debian have it.
_NOT_IN_IMAGES = (
    "./usr/share/man/",
    "./usr/share/info/",
    "./usr/share/locale/",
    "./usr/share/lintian/",
    "./var/cache/apt/",
    "./var/lib/apt/lists/",
    "./var/log/",
)


def debian() -> Path:
    """Return an archive (tar) of a minimal Debian 12 with Python and certificates, at most a week old.

    Needs root and a mirror of Debian. Raises AssertionError with the last lines of debootstrap if it fails.
    """
    archive = BUILT / f"{_SUITE}.tar"
    if archive.exists() and time.time() - archive.stat().st_mtime < _OLDEST_S:
        return archive
    root = BUILT / _SUITE
    subprocess.run(["rm", "-rf", root], check=True)
    BUILT.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = ["debootstrap", "--variant=minbase", "--include=ca-certificates,python3", _SUITE, root]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, f"debootstrap failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    fresh = archive.with_suffix(".fresh")
    with tarfile.open(fresh, "w") as target:
        target.add(root, ".", filter=_slim)
    fresh.replace(archive)
    subprocess.run(["rm", "-rf", root], check=True)
    return archive


def _slim(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what slim images do not have: pages, translations, caches."""
    if member.name.startswith(_NOT_IN_IMAGES) and not member.isdir():
        return None
    if member.name.startswith("./usr/share/doc/") and not (
        member.isdir() or member.name.endswith("/copyright")
    ):
        return None
    return member
